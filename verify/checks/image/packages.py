"""Installed packages against the lock: versions, strays, requirements, CUDA majors."""

from __future__ import annotations

import re
from functools import partial
from typing import Dict, Iterable, List, Mapping

from verify import remedies, versions
from verify.checks.image.installed import normalised, probe_installed, probe_packages
from verify.claims import claimed_version
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import NOT_AN_IMAGE, failed, inside, listed, passed, skipped, unknown

FRESH = "or start a fresh container from the image"
TRIO = ("torch", "torchvision", "torchaudio")
CORE = re.compile(r"torch|torchvision|torchaudio|triton|nvidia-[\w-]+")
"""What an image is chosen for: with another version of one of these it is another image."""
OF_TORCH = re.compile(r"(?i)(?<![\w.-])(torch|torchvision|torchaudio|triton|nvidia-[\w-]+)(?![\w-])")
"""A sentence of ``broken_requirements`` that has one of these on either side."""


def installed_later(facts: Facts, claims: Claims) -> Dict[str, str]:
    """Packages that somebody changed, removed or added after the image was built, with what was done.

    The image's own packages share one time, so what came in with its build and differs from the lock is not here.
    """
    have, times, lock = facts["installed"], facts.get("times") or {}, locked_versions(claims)
    built = {times.get(name) for name, version in lock.items() if versions.same(have.get(name, ""), version)} - {None}
    if not built:
        return {}  # Nothing of the lock is here: this is another image, not one that somebody changed.
    later = {name: version for name, version in have.items() if times.get(name) not in built}
    done = {name: f"{name} is missing instead of {lock[name]}" for name in lock if name not in have}
    for name, version in later.items():
        if name not in lock:
            done[name] = f"{name}=={version} was added"
        elif not versions.same(version, lock[name]):
            done[name] = f"{name} is {version} instead of {lock[name]}"
    return done


def locked_versions(claims: Claims) -> Dict[str, str]:
    """The image's lock, by normalised name; torch and its siblings with the local version that the image claims.

    The index serves the CUDA build without a local version, so the lock alone could not tell it from ``+cpu``.
    """
    lock = {normalised(name): str(version) for name, version in (claims.image.get("packages") or {}).items()}
    for name in TRIO:
        claimed = claimed_version(claims, name)
        if name in lock and versions.same(claimed, lock[name]):
            lock[name] = claimed
    return lock


def differing(facts: Facts, claims: Claims) -> Dict[str, str]:
    """Locked packages that are missing or of another version, with the version in the lock."""
    have: Mapping[str, str] = facts["installed"]
    return {n: v for n, v in locked_versions(claims).items() if not versions.same(have.get(n, ""), v)}


def who_changed(names: Iterable[str], facts: Facts, claims: Claims) -> Owner:
    """Whoever installed these packages: the image's build, or somebody later."""
    return Owner.START if set(names) & set(installed_later(facts, claims)) else Owner.IMAGE


def evaluate_versions(facts: Facts, claims: Claims) -> Verdict:
    """Tag, labels and packages must name the same versions."""
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    have: Mapping[str, str] = facts["installed"]
    full = str(facts["version_file"].get("__version__") or have.get("torch", ""))
    seen = {**{name: have.get(name, "missing") for name in TRIO}, "torch": full}
    wanted = {name: claimed_version(claims, name) for name in TRIO if claimed_version(claims, name)}
    wrong = {name: want for name, want in wanted.items() if not versions.same(seen[name], want)}
    expected = listed(f"{name} {want}" for name, want in wanted.items())
    if wrong:
        text = listed(f"{name} is {seen[name]}" for name in wrong)
        return failed(text, expected, repair(wrong), who_changed(wrong, facts, claims))
    return passed(listed(f"{name} {seen[name]}" for name in wanted), expected)


def repair(packages: Mapping[str, str]) -> str:
    """The command that puts the locked versions back."""
    pins = " ".join(f"{name}=={version.partition('+')[0]}" for name, version in sorted(packages.items()))
    return f"uv pip install --no-deps --reinstall {pins}, {FRESH}"


def evaluate_lock(facts: Facts, claims: Claims) -> Verdict:
    """pip silently replaces locked packages when another package asks for it.

    A package that was moved on purpose, with every requirement still met, is a note; torch, its siblings and NVIDIA's
    libraries are the image, so they fail whatever the requirements say.
    """
    lock = locked_versions(claims)
    if not lock:
        return skipped(NOT_AN_IMAGE)
    wrong = differing(facts, claims)
    expected = f"the {len(lock)} locked packages"
    if not wrong:
        return passed(f"all {len(lock)} locked packages are installed as locked", expected)
    have: Mapping[str, str] = facts["installed"]
    text = listed(f"{n} is {have.get(n, 'missing')} instead of {v}" for n, v in sorted(wrong.items()))
    unmet = [need for need in facts.get("broken") or () if any(_named(name, need) for name in wrong)]
    if any(map(CORE.fullmatch, wrong)) or unmet or not facts.get("parser"):
        why = f"; not met: {listed(unmet, 2)}" if unmet else ""
        owner = who_changed(wrong, facts, claims)
        return failed(f"{len(wrong)} of {len(lock)} differ: {text}{why}", expected, repair(wrong), owner)
    return passed(
        f"{len(lock) - len(wrong)} as locked, {len(wrong)} changed with all requirements met: {text}", expected
    )


def _named(name: str, need: str) -> bool:
    """Whether a sentence of ``broken_requirements`` is about the package, on either side."""
    return name in map(normalised, re.findall(r"[\w.-]*\w", need))


def evaluate_strays(facts: Facts, claims: Claims) -> Verdict:
    """What came with the image and is not in its lock is unpinned; what somebody installed later is their own."""
    lock = locked_versions(claims)
    if not lock:
        return skipped(NOT_AN_IMAGE)
    strays = {name: version for name, version in facts["installed"].items() if name not in lock}
    expected = "the image brought no package that is not in its lock"
    built = sorted(f"{n}=={v}" for n, v in strays.items() if n not in installed_later(facts, claims))
    if built:
        remedy = "add them to the lock and rebuild: gpuyard lock, then gpuyard build"
        return failed(f"in the image, not in its lock: {listed(built)}", expected, remedy, Owner.IMAGE, packages=built)
    if strays:
        later = sorted(f"{n}=={v}" for n, v in strays.items())
        return passed(f"{len(later)} packages installed later: {listed(later)}", expected, packages=later)
    return passed(f"nothing beside the {len(lock)} locked packages", expected)


def evaluate_requirements(facts: Facts, claims: Claims) -> Verdict:
    """A package that was swapped leaves others with a requirement that is not met.

    In an image that is not ours only those between torch and its libraries are a link of the chain.
    """
    if not facts["parser"]:
        return unknown("no packaging module is installed to read requirements with", "install packaging")
    broken = facts["broken"]
    if broken and not inside(claims) and not any(OF_TORCH.search(text) for text in broken):
        return passed(f"{len(broken)} not met, none of them torch's: {listed(broken)}", "torch's requirements met")
    if broken:
        remedy = f"put the locked versions back (verify --only lock names them), {FRESH}"
        return failed(f"{len(broken)} not met: {listed(broken)}", "all requirements met", remedy, Owner.START)
    return passed(f"requirements of {facts['count']} packages are met", "all requirements met")


def evaluate_cuda_majors(facts: Facts, claims: Claims) -> Verdict:
    """Two CUDA majors in one environment load each other's libraries."""
    majors = cuda_majors(facts["installed"])
    expected = "NVIDIA's packages of one CUDA major"
    if not majors and not inside(claims):
        return passed("no CUDA library came by pip: no two majors of it", expected)
    if not majors:
        return failed("no CUDA library package is installed", expected, FRESH[3:], Owner.IMAGE)
    if len(majors) > 1:
        text = "; ".join(f"CUDA {major}: {listed(names, 3)}" for major, names in sorted(majors.items()))
        remedy = f"uninstall those of the major torch was not built for, {FRESH}"
        return failed(text, expected, remedy, Owner.START)
    major, names = next(iter(majors.items()))
    return passed(f"CUDA {major} only, {len(names)} packages", expected)


def cuda_majors(have: Mapping[str, str]) -> Dict[str, List[str]]:
    """NVIDIA's packages by CUDA major: the name's suffix, else the CUDA runtime's own version.

    From CUDA 13 on the names carry no suffix, but the parts that follow CUDA's own numbering do.
    """
    found: Dict[str, List[str]] = {}
    for name, version in have.items():
        suffix = re.fullmatch(r"nvidia-.+-cu(\d+)", name)
        plain = name in ("nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-cupti")
        major = suffix.group(1) if suffix else str(versions.major(version)) if plain else ""
        if major:
            found.setdefault(major, []).append(name)
    return found


_check = partial(Check, group="packages", level=Level.IMAGE, isolation=Isolation.CHILD, timeout=60.0)

CHECKS: List[Check] = [
    _check(
        id="torch-versions",
        explained_by=("lock", "user-site"),
        title="torch, torchvision, torchaudio as claimed",
        probe=probe_installed,
        evaluate=evaluate_versions,
        why="Tags have claimed one torch and held another. Tag, label, claim and packages must be one truth.",
        repairs=(remedies.LOCKED, remedies.REBUILD),
        needs_claims=True,
    ),
    _check(
        id="lock",
        title="Installed packages equal the lock",
        probe=probe_packages,
        evaluate=evaluate_lock,
        why="pip silently replaces locked packages, torch among them, when another package asks for it.",
        repairs=("uv pip install --no-deps --reinstall NAME==VERSION (the finding names them)", remedies.FRESH),
        needs_claims=True,
    ),
    _check(
        id="lock-strays",
        group="environment",
        title="The image brought nothing beside its lock",
        probe=probe_installed,
        evaluate=evaluate_strays,
        why="A package that an image brings and its lock does not name came in unpinned. Yours, installed later, pass.",
        repairs=("add the package to the lock and rebuild: gpuyard lock, then gpuyard build",),
        needs_claims=True,
    ),
    _check(
        id="pip-check",
        explained_by=("lock", "user-site"),
        title="All requirements are met",
        probe=probe_packages,
        evaluate=evaluate_requirements,
        why="After a swap pip prints one line and exits 0; only the unmet requirements are left to see.",
        repairs=(remedies.LOCKED, remedies.FRESH),
    ),
    _check(
        id="cuda-majors",
        explained_by=("lock", "user-site"),
        title="One CUDA major among the packages",
        probe=probe_installed,
        evaluate=evaluate_cuda_majors,
        why="Two CUDA majors in one environment load each other's libraries.",
        repairs=("uninstall the packages of the major torch was not built for", remedies.FRESH),
    ),
]
