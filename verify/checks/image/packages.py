"""Installed packages against the lock: versions, strays, requirements, CUDA majors."""

from __future__ import annotations

import importlib
import re
from functools import partial
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

from verify import remedies, versions
from verify.checks.image.torch_files import torch_version_file
from verify.claims import claimed_version
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import NOT_AN_IMAGE, failed, inside, listed, passed, skipped, unknown

FRESH = "or start a fresh container from the image"
TRIO = ("torch", "torchvision", "torchaudio")
OF_TORCH = re.compile(r"(?i)(?<![\w.-])(torch|torchvision|torchaudio|triton|nvidia-[\w-]+)(?![\w-])")
"""A sentence of ``broken_requirements`` that has one of these on either side."""
PARSERS = ("packaging", "setuptools._vendor.packaging", "pip._vendor.packaging")


def normalised(name: str) -> str:
    """The name as an index spells it: my_Pkg is my-pkg."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> Dict[str, str]:
    """Every installed distribution and its version."""
    pages = (found.metadata for found in distributions())
    return {normalised(str(page["Name"])): str(page["Version"]) for page in pages if page["Name"]}


def distributions() -> Iterator[Any]:
    """The installed distributions. Imported late: a quick look needs none, and the import is a tenth of its time."""
    from importlib import metadata

    return iter(metadata.distributions())


def probe_installed() -> Facts:
    """List what is installed, and what torch's own version file says."""
    return {"installed": installed(), "version_file": torch_version_file()}


def evaluate_versions(facts: Facts, claims: Claims) -> Verdict:
    """The tag, the labels and the packages must be one truth."""
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
        return failed(text, expected, repair(wrong), Owner.IMAGE)
    return passed(listed(f"{name} {seen[name]}" for name in wanted), expected)


def repair(packages: Mapping[str, str]) -> str:
    """The command that puts the locked versions back."""
    pins = " ".join(f"{name}=={version.partition('+')[0]}" for name, version in sorted(packages.items()))
    return f"uv pip install --no-deps --reinstall {pins}, {FRESH}"


def evaluate_lock(facts: Facts, claims: Claims) -> Verdict:
    """pip replaces locked packages without a word when something else asks for it."""
    lock: Mapping[str, str] = claims.image.get("packages") or {}
    if not lock:
        return skipped(NOT_AN_IMAGE)
    have: Mapping[str, str] = facts["installed"]
    wanted = {normalised(name): str(version) for name, version in lock.items()}
    wrong = {n: v for n, v in wanted.items() if not versions.same(have.get(n, ""), v)}
    expected = f"the {len(wanted)} locked packages"
    if wrong:
        text = listed(f"{n} is {have.get(n, 'missing')} instead of {v}" for n, v in sorted(wrong.items()))
        return failed(f"{len(wrong)} of {len(wanted)} differ: {text}", expected, repair(wrong), Owner.START)
    return passed(f"all {len(wanted)} locked packages are installed as locked", expected)


def evaluate_strays(facts: Facts, claims: Claims) -> Verdict:
    """A package beside the lock came in unpinned, at build or later by a user."""
    lock: Mapping[str, str] = claims.image.get("packages") or {}
    if not lock:
        return skipped(NOT_AN_IMAGE)
    locked = {normalised(name) for name in lock}
    strays = sorted(f"{n}=={v}" for n, v in facts["installed"].items() if n not in locked)
    if strays:
        remedy = "if you installed them: all is well; in a fresh image: add them to the lock and rebuild"
        return failed(f"beside the lock: {listed(strays)}", "none", remedy, Owner.START, packages=strays)
    return passed(f"nothing beside the {len(locked)} locked packages", "none")


def probe_requirements() -> Facts:
    """Every requirement of every installed package that is not met, as ``pip check`` does it."""
    have, needs = {}, []
    for found in distributions():
        # Once for both: each look at the metadata reads and parses its file again.
        metadata = found.metadata
        if metadata["Name"]:
            name = str(metadata["Name"])
            have[normalised(name)] = str(metadata["Version"])
            needs += [(name, need) for need in metadata.get_all("Requires-Dist") or found.requires or ()]
    # Last, because importing a vendored copy puts its neighbours on the path as if they were installed.
    parser = requirement_parser()
    if parser is None:
        return {"parser": not needs, "broken": [], "count": len(have)}
    return {"parser": True, "broken": broken_requirements(needs, have, parser), "count": len(have)}


def requirement_parser() -> Any:
    """The Requirement class of the first ``packaging`` there is, on its own or vendored."""
    for name in PARSERS:
        try:
            return importlib.import_module(f"{name}.requirements").Requirement
        except ImportError:
            continue
    return None


def broken_requirements(needs: Iterable[Tuple[str, str]], have: Mapping[str, str], parser: Any) -> List[str]:
    """The needs that hold here (markers, no extras) and that ``have`` does not meet."""
    broken = []
    for owner, text in needs:
        need = parser(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        version = have.get(normalised(need.name))
        if version is None:
            broken.append(f"{owner} needs {need.name}, which is missing")
        elif not need.specifier.contains(version, prereleases=True):
            broken.append(f"{owner} needs {need.name}{need.specifier}, found {version}")
    return sorted(set(broken))


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
        probe=probe_installed,
        evaluate=evaluate_lock,
        why="pip replaces locked packages, torch among them, without a word when another package asks for it.",
        repairs=("uv pip install --no-deps --reinstall NAME==VERSION (the finding names them)", remedies.FRESH),
        needs_claims=True,
    ),
    _check(
        id="lock-strays",
        group="environment",
        title="Nothing is installed beside the lock",
        probe=probe_installed,
        evaluate=evaluate_strays,
        why="A package that is not in the lock came in unpinned.",
        repairs=("nothing, if you installed it yourself", "add it to the lock and rebuild"),
        needs_claims=True,
    ),
    _check(
        id="pip-check",
        title="All requirements are met",
        probe=probe_requirements,
        evaluate=evaluate_requirements,
        why="After a swap pip prints one line and exits 0; only the unmet requirements are left to see.",
        repairs=(remedies.LOCKED, remedies.FRESH),
    ),
    _check(
        id="cuda-majors",
        title="One CUDA major among the packages",
        probe=probe_installed,
        evaluate=evaluate_cuda_majors,
        why="Two CUDA majors in one environment load each other's libraries.",
        repairs=("uninstall the packages of the major torch was not built for", remedies.FRESH),
    ),
]
