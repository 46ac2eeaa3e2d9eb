"""Profiles: which checks a run selects, and which of them must pass."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import FrozenSet, Iterable, List, Optional, Set, Tuple

from verify.engine.registry import at_most, names, resolve, unknown_text, with_needs
from verify.model import Check, Claims, Level

ADVISORY_GROUPS = frozenset({"shm", "limits", "environment", "network"})
"""They depend on how somebody started the container, not on the image: red in the table, but the
default profile does not require them, so that a plain ``docker run IMAGE verify`` judges the image."""


@dataclass(frozen=True)
class Profile:
    """A named choice of levels and groups. All that is chosen must pass; where it ``fits``, all that fits the machine.

    ``disturbs`` takes in the checks that leave a trace on the machine.
    """

    name: str
    purpose: str
    levels: Tuple[Level, ...]
    groups: Tuple[str, ...] = ()
    quick: bool = False
    fits: bool = False
    disturbs: bool = False


@dataclass(frozen=True)
class Plan:
    """What one run does: the checks in order, the required ids, required names no check has, names asked for."""

    profile: str
    checks: List[Check]
    required: FrozenSet[str]
    absent: Tuple[str, ...] = ()
    named: FrozenSet[str] = frozenset()


_ONE_MACHINE = (Level.IMAGE, Level.CONTAINER, Level.CPU)
PROFILES = (
    Profile("default", "everything that fits this machine", tuple(Level), fits=True),
    Profile("full", "default, and what disturbs others on the GPU", tuple(Level), fits=True, disturbs=True),
    Profile("image", "what the image holds, nothing is computed", (Level.IMAGE,)),
    Profile("cpu", "all that needs no GPU", _ONE_MACHINE),
    Profile("gpu", "all that one GPU can prove", (*_ONE_MACHINE, Level.GPU)),
    Profile("multi-gpu", "all that several GPUs can prove", (*_ONE_MACHINE, Level.GPU, Level.MULTI_GPU)),
    Profile("quick", "half a second: no torch, no cuInit", (), quick=True),
    Profile("train", "shared memory and the training steps", (), ("shm", "train")),
)


class UnknownProfile(Exception):
    """A profile that does not exist; the text names the nearest."""

    id = "verify-unknown-name"


def find_profile(name: str) -> Profile:
    """The profile of that name."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    raise UnknownProfile(unknown_text("profile", name, (profile.name for profile in PROFILES)))


def plan_profile(
    profile: Profile,
    checks: List[Check],
    claims: Claims,
    require: Iterable[str],
    gpus: int,
    level: Optional[Level] = None,
) -> Plan:
    """The plan of a profile. ``gpus`` is the number of GPUs of which there is a sign.

    The default profile requires the GPU's checks only where there is a sign of a GPU, and those of
    several GPUs only where there are several; the image's own list is added to it. ``level`` leaves
    out what needs more of a machine, but for what ``require`` names.
    """
    chosen = {c.id for c in checks if _has(profile, c)}
    must = set(chosen)
    absent: Tuple[str, ...] = ()
    if profile.name == "quick":
        must = {c.id for c in checks if c.id in chosen and _fits(c, gpus)} - _resting_on_advice(checks)
    if profile.fits:
        own, absent = _claimed(checks, claims)
        must = {c.id for c in checks if c.id in chosen and _fits(c, gpus)} - _resting_on_advice(checks) | own
    if profile.name != "image" and not claims.image:
        must -= {c.id for c in checks if c.needs_claims}
    must -= _without_package(checks, claims)
    if level:
        chosen &= set(at_most(checks, level))
        must &= chosen
    must |= set(resolve(checks, require))
    return _plan(profile.name, checks, chosen | must, must, absent, require)


def plan_only(checks: List[Check], only: Iterable[str], require: Iterable[str]) -> Plan:
    """The plan of ``--only``: what is named must pass, and so must what it needs."""
    asked = {*resolve(checks, only), *resolve(checks, require)}
    return _plan("only", checks, asked, asked, named=[*only, *require])


def _plan(
    name: str,
    checks: List[Check],
    chosen: Iterable[str],
    must: Set[str],
    absent: Tuple[str, ...] = (),
    named: Iterable[str] = (),
) -> Plan:
    selected = set(with_needs(checks, chosen))
    required = frozenset(with_needs(checks, must))
    return Plan(name, [c for c in checks if c.id in selected], required, absent, frozenset(named))


def _has(profile: Profile, check: Check) -> bool:
    if check.disturbs and not profile.disturbs:
        return False
    return check.level in profile.levels or check.group in profile.groups or (profile.quick and check.quick)


def _without_package(checks: List[Check], claims: Claims) -> Set[str]:
    """Checks of a package that is neither installed nor claimed."""
    claimed = claims.image.get("packages") or {}
    return {
        c.id for c in checks if c.package and c.package not in claimed and importlib.util.find_spec(c.package) is None
    }


def _fits(check: Check, gpus: int) -> bool:
    needed = {Level.GPU: 1, Level.MULTI_GPU: 2, Level.MULTI_NODE: 1 << 30}
    return gpus >= needed.get(check.level, 0)


def _claimed(checks: List[Check], claims: Claims) -> Tuple[Set[str], Tuple[str, ...]]:
    """The image's required checks, and the names in its list that this suite does not have.

    A level in that list means what the profile means by it: without the advisory groups.
    """
    wanted = [str(name) for name in claims.image.get("required") or ()]
    known = names(checks)
    exact = {c.id for c in checks if c.id in wanted or (c.group in wanted and not c.disturbs)}
    by_level = {c.id for c in checks if c.level.value in wanted and not c.disturbs} - _resting_on_advice(checks)
    return exact | by_level, tuple(name for name in wanted if name not in known)


def _resting_on_advice(checks: List[Check]) -> Set[str]:
    """Checks of advisory groups and all that need one of them."""
    advisory = {check.id for check in checks if check.group in ADVISORY_GROUPS}
    return {check.id for check in checks if advisory & set(with_needs(checks, [check.id]))}
