"""What the index offers beyond the catalogue: patch releases, new lines, other Pythons. Proposals, never a change."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import date

import tomlkit
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from gpuyard.catalogue.lock import compile_, entries
from gpuyard.catalogue.table import Catalogue, Line
from gpuyard.errors import UserError
from gpuyard.indexes import Settings
from gpuyard.packages.index import client, links
from gpuyard.packages.locked import Locked

Offer = Mapping[Version, frozenset[str]]
"""The releases of a project with wheels for x86-64 Linux, and the Pythons (``3.12``) that each has one for."""
Resolve = Callable[[list[str], str], Mapping[str, str]]
"""Requirements and a Python to packages and their versions."""
NEXT_SECTION = "# ---------------------------------------------------------------- images"
"""What follows the rows of the lines in the catalogue: a new row goes before it."""


@dataclass(frozen=True)
class Proposal:
    """Values that a row of the catalogue should have instead of its own; of a new line, all that are known."""

    line: str
    values: Mapping[str, str | tuple[str, ...]]
    new: bool = False


def offered(project: str) -> Offer:
    """What this machine's indexes offer of a project, without pre-releases and withdrawn files."""
    settings = Settings.read()
    found: dict[Version, set[str]] = defaultdict(set)
    for link in links(Locked(project, "", ()), settings, client(settings)):
        if link.is_wheel and not link.is_yanked:
            version, pythons = read_name(link.filename)
            if not version.is_prerelease and not version.local:
                found[version] |= pythons
    if not any(found.values()):
        raise UserError(
            "project-not-offered", f"no index of this machine offers {project} for x86-64 Linux. See: pip config list"
        )
    return {version: frozenset(pythons) for version, pythons in found.items() if pythons}


def read_name(filename: str) -> tuple[Version, set[str]]:
    """A wheel's version, and the ordinary (not free-threaded) builds of CPython on x86-64 Linux that it names."""
    _, version, _, tags = parse_wheel_filename(filename)
    pythons = set()
    for tag in tags:
        number = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        if number and tag.abi == tag.interpreter and tag.platform.endswith("x86_64") and "linux" in tag.platform:
            pythons.add(f"3.{number[1]}")
    return version, pythons


def resolve(requirements: list[str], python: str) -> dict[str, str]:
    """uv's answer from the indexes of this machine."""
    return {name: version for name, version, _ in entries(compile_(requirements, (), python))}


def proposals(catalogue: Catalogue, torch: Offer, audio: Offer, resolver: Resolve = resolve) -> list[Proposal]:
    """What differs from the catalogue, line by line, then a line that it lacks."""
    found = []
    for name, line in catalogue.line.items():
        if values := _differing(line, _row(catalogue, _newest(torch, name), torch, audio, resolver)):
            found.append(Proposal(name, values))
    newest = max(torch)
    series = f"{newest.major}.{newest.minor}"
    if all(newest > Version(line.torch) for line in catalogue.line.values()) and series not in catalogue.line:
        found.append(Proposal(series, _row(catalogue, newest, torch, audio, resolver), new=True))
    return found


def _newest(offer: Offer, series: str) -> Version:
    fitting = [version for version in offer if f"{version.major}.{version.minor}" == series]
    if not fitting:
        raise UserError("line-withdrawn", f"the index no longer offers any torch {series}: it can't be locked again")
    return max(fitting)


def _row(
    catalogue: Catalogue, version: Version, torch: Offer, audio: Offer, resolver: Resolve
) -> dict[str, str | tuple[str, ...]]:
    """The row of that release from its metadata, without the arch list, which only the binary has."""
    python = catalogue.os[catalogue.default_os].python
    # A torchaudio without a requirement on torch would fit all of them: take the one of the same number, if any.
    sibling = f"torchaudio=={version}" if version in audio else "torchaudio"
    packages = resolver([f"torch=={version}", "torchvision", sibling], python)
    pythons = sorted(torch[version], key=Version)
    return {
        "torch": str(version),
        "torchvision": packages["torchvision"],
        "torchaudio": packages["torchaudio"],
        "cuda": ".".join(_nvidia(packages, "cuda-runtime").split(".")[:2]),
        "cudnn": _nvidia(packages, "cudnn"),
        "nccl": _nvidia(packages, "nccl"),
        "pythons": tuple(pythons),
    }


def _nvidia(packages: Mapping[str, str], part: str) -> str:
    for name, version in packages.items():
        if re.fullmatch(rf"nvidia-{part}(-cu\d+)?", name):
            return version
    raise UserError("torch-without-cuda", f"torch from this index needs no nvidia-{part}: it is not a CUDA build")


def _differing(line: Line, row: Mapping[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    return {key: value for key, value in row.items() if getattr(line, key) != value}


def apply(text: str, found: Iterable[Proposal]) -> str:
    """The catalogue's text with the proposals in it; everything else, comments too, stays as it was."""
    document = tomlkit.parse(text)
    lines = document["line"]
    assert isinstance(lines, MutableMapping)
    rows = ""
    for proposal in found:
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in proposal.values.items()}
        if proposal.new:
            rows += _new_row(proposal.line, values)
        else:
            lines[proposal.line].update(values)
    return tomlkit.dumps(document).replace(NEXT_SECTION, rows + NEXT_SECTION, 1)


def _new_row(line: str, values: Mapping[str, str | list[str]]) -> str:
    """A row whose arch list is left open: only the binary has it."""
    row = tomlkit.table()
    row.update(values)
    row["arch_list"] = tomlkit.array()
    row["arch_list"].comment("torch._C._cuda_getArchFlags() of the wheel; drivers.bundled needs this CUDA too")
    lines = tomlkit.table(is_super_table=True)
    lines[line] = row
    document = tomlkit.document()
    document["line"] = lines
    return tomlkit.dumps(document) + "\n"


def difference(before: str, after: str, name: str) -> str:
    """A unified diff that `git apply` takes; empty without a difference."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(lines)


def retired(python: str, today: date) -> bool:
    """Whether CPython's makers ended its support: the end of October, five years after its release."""
    minor = int(python.split(".")[1])
    return today > date(2016 + minor, 10, 31)
