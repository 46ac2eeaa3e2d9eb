"""The compiled parts of the environment: everything they need is here, and CUDA's libraries are here once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Set

from verify import remedies
from verify.checks.image.installed import distributions, normalised
from verify.checks.image.optional import OF_TORCH_OR_CUDA, ON_DEMAND, import_errors, variants
from verify.checks.image.packages import locked_versions
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes.elf import Library, read_library
from verify.probes.gpu_signs import loader_folders
from verify.verdicts import failed, listed, passed, skipped

OF_THE_DRIVER = re.compile(r"lib(cuda|nvidia-[\w-]+|nvcuvid|nvoptix|cudadebugger)\.so(\.\d+)*")
CUDA_LIBRARY = re.compile(
    r"lib(cudart|cudnn\w*|nccl|cublas|cublasLt|cufft|curand|cusolver|cusparse|cusparseLt|nvJitLink|nvrtc|cupti)"
    r"\.so\.\d+"
)
OWN_COPY = "/triton/backends/"
"""Triton loads its profiler's library by full path, so that copy is used by nothing else."""
TOOLKITS = "cuda*/lib64"


def probe_compiled() -> Facts:
    """Read the ELF header of every compiled file in the environment, and look for CUDA's libraries there, on the
    loader's path and in a toolkit of the system.
    """
    files = list(compiled_files(packages()))
    libraries = [library for library in map(read_library, files) if library]
    known = {Path(file).name for file in files} | {library.soname for library in libraries} | cached_names()
    copies = cuda_copies([*files, *outside_files()])
    lacking = unmet(libraries, known)
    spare = sorted(variants(lacking, (library.path for library in libraries)))
    doubtful = [path for path in lacking if path not in spare and not ON_DEMAND.search(path)]
    owned = owners([*doubtful, *(path for paths in copies.values() for path in paths)])
    return {
        "count": len(libraries),
        "unmet": lacking,
        "variants": spare,
        "import_errors": import_errors(doubtful),
        "owners": owned,
        "copies": {name: [f"{path} ({owned[path]})" for path in paths] for name, paths in copies.items()},
    }


def packages() -> List[str]:
    """The folders of installed packages on the search path."""
    return [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages")) and Path(entry).is_dir()]


def compiled_files(folders: Iterable[str]) -> Iterator[str]:
    """Every file below the folders with the name of a shared library."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            yield from (f"{place}/{name}" for name in names if name.endswith(".so") or ".so." in name)


def outside_files() -> List[str]:
    """Libraries where the loader looks, and in a toolkit of the system."""
    folders = [*loader_folders(), *Path("/usr/local").glob(TOOLKITS)]
    return [str(path) for folder in folders for path in (folder.glob("*.so.*") if folder.is_dir() else ())]


def cached_names() -> Set[str]:
    """Names the loader finds in its cache and in its usual folders."""
    try:
        listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, timeout=10, check=False)
        cached = re.findall(r"^\s+(\S+) \(", listing.stdout, re.M)
    except (OSError, subprocess.SubprocessError):
        cached = []
    return {*cached, *(Path(path).name for path in outside_files())}


def unmet(libraries: Sequence[Library], known: Set[str]) -> Dict[str, List[str]]:
    """Each file with the names it needs that are nowhere; the driver's come from the host and don't count."""
    found = {}
    for library in libraries:
        missing = [name for name in library.needed if name not in known and not OF_THE_DRIVER.fullmatch(name)]
        missing = [name for name in missing if not any(Path(folder, name).exists() for folder in library.search)]
        if missing:
            found[library.path] = missing
    return found


def cuda_copies(files: Iterable[str]) -> Dict[str, List[str]]:
    """CUDA libraries of which there are several files, by name."""
    found: Dict[str, Set[str]] = {}
    for file in files:
        name = Path(file).name
        if CUDA_LIBRARY.match(name) and OWN_COPY not in file:
            real = os.path.realpath(file)
            found.setdefault(re.match(r".*?\.so\.\d+", name).group(0), set()).add(real)  # type: ignore[union-attr]
    return {name: sorted(paths) for name, paths in sorted(found.items()) if len(paths) > 1}


def owners(paths: Sequence[str]) -> Dict[str, str]:
    """Which package brought each file: pip's records first, then dpkg's."""
    if not paths:
        return {}
    wanted = {os.path.realpath(path): path for path in paths}
    found = dict.fromkeys(paths, "no package owns it")
    for package in distributions():
        for file in package.files or ():
            real = os.path.realpath(str(package.locate_file(file))) if ".so" in file.name else ""
            if real in wanted:
                found[wanted[real]] = f"{package.metadata['Name']} {package.version}"
    for path in [path for path, owner in found.items() if owner.startswith("no ")]:
        found[path] = dpkg_owner(path) or found[path]
    return found


def dpkg_owner(path: str) -> str:
    """The Debian package of a file, empty where there is none or no dpkg."""
    try:
        done = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.split(":")[0] if done.returncode == 0 else ""


def evaluate_needed(facts: Facts, claims: Claims) -> Verdict:
    """An extension built for another CUDA major fails at its first import, which may be weeks later.

    A file may lack a library if it is one of several variants, or a plug-in without which its package imports, unless
    the library is torch's or CUDA's.
    """
    expected = "every library that compiled files need is here"
    if not facts["count"]:
        return skipped("no compiled packages on this Python's path")
    missing: Mapping[str, List[str]] = facts["unmet"]
    vital = {path: names for path, names in missing.items() if _is_vital(path, names, facts)}
    if vital:
        text = listed((f"{_short(path)} needs {', '.join(names)}" for path, names in sorted(vital.items())), 3)
        remedy = "install the build for this torch and CUDA, or uninstall it: uv pip uninstall " + _distributions(
            vital, facts
        )
        owner = _installer(vital, facts, claims)
        return failed(f"{len(vital)} files lack a library: {text}", expected, remedy, owner, unmet=vital)
    extra = f"; {len(missing)} optional plug-ins and variants lack a library, and nothing needs them" if missing else ""
    return passed(f"{facts['count']} compiled files{extra}", expected, plugins=missing)


def _is_vital(path: str, names: Sequence[str], facts: Facts) -> bool:
    if ON_DEMAND.search(path) or path in (facts.get("variants") or ()):
        return False
    return any(map(OF_TORCH_OR_CUDA.fullmatch, names)) or bool((facts.get("import_errors") or {}).get(path, "unknown"))


def _installer(paths: Iterable[str], facts: Facts, claims: Claims) -> Owner:
    """The image where its locked packages brought all of the files, else whoever installed the others."""
    named = {normalised((facts.get("owners") or {}).get(path, "").split(" ")[0]) for path in paths}
    lock = locked_versions(claims)
    return Owner.START if lock and named - set(lock) else Owner.IMAGE


def _distributions(paths: Iterable[str], facts: Facts) -> str:
    """The packages that brought the files, as pip takes them; NAME where no record names one."""
    owned = [(facts.get("owners") or {}).get(path, "") for path in paths]
    return " ".join(sorted({owner.split(" ")[0] for owner in owned if owner and not owner.startswith("no ")})) or "NAME"


def _short(path: str) -> str:
    return re.sub(r".*/(site|dist)-packages/", "", path)


def evaluate_copies(facts: Facts, claims: Claims) -> Verdict:
    """With two copies of a library, all packages get the one that is loaded first."""
    copies: Mapping[str, List[str]] = facts["copies"]
    if copies:
        text = "; ".join(f"{name}: {listed(paths, 3)}" for name, paths in list(copies.items())[:3])
        more = f"; and {len(copies) - 3} more libraries" if len(copies) > 3 else ""
        remedy = "uninstall the package that torch does not require (its name stands beside the file)"
        files = [path.partition(" (")[0] for paths in copies.values() for path in paths]
        owner = _installer(files, facts, claims)
        return failed(text + more, "each CUDA library once", remedy, owner, copies=copies)
    return passed("each CUDA library is here once", "each CUDA library once")


_check = partial(Check, group="packages", level=Level.IMAGE, isolation=Isolation.CHILD, timeout=90.0)

CHECKS: List[Check] = [
    _check(
        id="needed-libraries",
        explained_by=("lock", "user-site"),
        title="Compiled packages find the libraries they need",
        probe=probe_compiled,
        evaluate=evaluate_needed,
        why="Packages built for another CUDA major import only when they are first used, and fail then.",
        repairs=("pip uninstall NAME (the finding names the file)", remedies.FRESH),
    ),
    _check(
        id="cuda-copies",
        explained_by=("lock", "user-site"),
        title="Each CUDA library is installed once",
        probe=probe_compiled,
        evaluate=evaluate_copies,
        why="With two copies of one CUDA library the first one loaded decides, and it changes with the import order.",
        repairs=("pip uninstall NAME (the finding names the owner)", remedies.FRESH),
    ),
]
