"""What is installed: versions, times and unmet requirements, read from the packages' own metadata."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

from verify.checks.image.torch_files import torch_version_file
from verify.model import Facts

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
    """List what is installed and when, and what torch's own version file says."""
    return _listed(_pages())


def _pages() -> List[Tuple[str, Any, Any]]:
    """Name, distribution and metadata of each package. Read once: each look at the metadata parses its file again."""
    found = [(entry, entry.metadata) for entry in distributions()]
    return [(str(page["Name"]), entry, page) for entry, page in found if page["Name"]]


def _listed(pages: List[Tuple[str, Any, Any]]) -> Dict[str, Any]:
    return {
        "installed": {normalised(name): str(page["Version"]) for name, _, page in pages},
        "times": {normalised(name): installed_at(entry) for name, entry, _ in pages},
        "version_file": torch_version_file(),
    }


def installed_at(distribution: Any) -> int:
    """When the package's folder of metadata was written; every layer of an image has the image's one time there."""
    try:
        return int(Path(getattr(distribution, "_path", "")).stat().st_mtime)
    except OSError:
        return 0


def probe_packages() -> Facts:
    """Compare each package's requirements with what is installed, as ``pip check`` does."""
    pages = _pages()
    here = _listed(pages)
    needs = [
        (name, need) for name, entry, page in pages for need in page.get_all("Requires-Dist") or entry.requires or ()
    ]
    # Last, because importing a vendored copy puts its neighbours on the path as if they were installed.
    parser = requirement_parser()
    broken = broken_requirements(needs, here["installed"], parser) if parser else []
    return {**here, "parser": bool(parser) or not needs, "broken": broken, "count": len(here["installed"])}


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
