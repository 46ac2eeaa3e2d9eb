"""What the image claims against what lies in it: Python, torch's files, driver files, paths, variables."""

from __future__ import annotations

import os
import platform
import re
import shutil
import site
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Dict, Iterable, List

from verify import remedies, versions
from verify.checks.image.torch_files import torch_folders, torch_version_file
from verify.claims import claimed_version
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.probes.gpu_signs import driver_folders, loader_folders
from verify.verdicts import NOT_AN_IMAGE, failed, inside, listed, passed, skipped

REBUILD = "rebuild the image with gpuyard build; do not publish this one"
DRIVER_FILE = re.compile(
    r"(libcuda|libcudadebugger|libnvidia-[\w-]+|libnvcuvid|libnvoptix)\.so(\.[\d.]+)?"
    r"|nvidia-(smi|debugdump|persistenced|cuda-mps-control|cuda-mps-server|modprobe)"
)
PROGRAM_FOLDERS = ("/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/nvidia/bin")
COMPAT_FOLDERS = ("/usr/local/cuda/compat", "/usr/local/cuda/lib64", "/usr/local/lib")
SHADOWED = ("torch", "torchvision", "torchaudio", "triton", "numpy", "nvidia")


def probe_python() -> Facts:
    """This interpreter, and the one that ``python`` means on PATH."""
    found = shutil.which("python")
    on_path = str(Path(found).parent.parent.resolve()) if found else ""
    prefix = str(Path(sys.prefix).resolve())
    over = bool(on_path) and on_path != prefix and lies_over(Path(on_path), prefix)
    return {"version": platform.python_version(), "prefix": prefix, "on_path": on_path, "over": over}


def lies_over(environment: Path, prefix: str) -> bool:
    """Whether a virtual environment finds the packages of another one, as those that a start makes do."""
    files = environment.glob("lib/python*/site-packages/*.pth")
    return any(f"{prefix}/lib/" in system.read(file) for file in files)


def evaluate_python(facts: Facts, claims: Claims) -> Verdict:
    """Images have shipped torch in another interpreter than the one that ``python`` starts."""
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    want, have = claimed_version(claims, "python"), str(facts["version"])
    if not versions.starts_with(have, want):
        return failed(f"Python {have}", f"Python {want}", REBUILD, Owner.IMAGE)
    if facts.get("over"):
        text = f"Python {have} in {facts['prefix']}, below the user's environment {facts['on_path']}"
        return passed(text, f"Python {want}")
    if facts["on_path"] and facts["on_path"] != facts["prefix"]:
        text = f"python on PATH is in {facts['on_path']}, the suite runs in {facts['prefix']}"
        remedy = "export PATH=/opt/venv/bin:$PATH"
        return failed(text, "one Python", remedy, Owner.START)
    return passed(f"Python {have} in {facts['prefix']}", f"Python {want}")


def probe_one_torch() -> Facts:
    """Look for torch on the whole search path and read its version file."""
    return {"folders": torch_folders(sys.path), "version_file": torch_version_file()}


def evaluate_one_torch(facts: Facts, claims: Claims) -> Verdict:
    """A second torch shadows the first; a CPU build looks the same until the first kernel."""
    folders, found = facts["folders"], facts["version_file"]
    version, cuda = str(found.get("__version__") or ""), str(found.get("cuda") or "")
    expected = "one torch, built for CUDA"
    repair = "reinstall the image's torch, or start a fresh container from the image"
    if not folders or not version:
        return failed("no torch is installed for this Python", expected, repair, Owner.IMAGE)
    if len(folders) > 1:
        return failed(f"{len(folders)} torch packages: {listed(folders)}", expected, repair, Owner.IMAGE)
    if not cuda:
        return failed(f"torch {version} is a CPU build", expected, repair, Owner.IMAGE)
    want = claimed_version(claims, "cuda")
    if want and not versions.same(cuda, want):
        return failed(f"torch {version} is built for CUDA {cuda}", f"CUDA {want}", repair, Owner.IMAGE)
    return passed(f"torch {version}, built for CUDA {cuda}", expected)


def probe_user_site() -> Facts:
    """Whether packages of the user's home, or those in PYTHONPATH, can shadow the image's."""
    user = site.getusersitepackages()
    # The image's command takes PYTHONPATH from the suite and hands it over under the other name, to be judged.
    given = os.environ.get("GPUYARD_USER_PYTHONPATH") or os.environ.get("PYTHONPATH", "")
    folders = [folder for folder in given.split(":") if folder]
    return {
        "enabled": bool(site.ENABLE_USER_SITE),
        "on_path": user in sys.path,
        "folder": user,
        "pythonpath": given,
        "shadows": [f"{folder}/{name}" for folder in folders for name in SHADOWED if _package(folder, name)],
    }


def _package(folder: str, name: str) -> bool:
    return Path(folder, name).is_dir() or Path(folder, f"{name}.py").is_file()


def evaluate_user_site(facts: Facts, claims: Claims) -> Verdict:
    """A home mounted from the host brings its ~/.local with it."""
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    if facts["on_path"]:
        remedy = "export PYTHONNOUSERSITE=1 (the image sets it, and something unset it)"
        text = f"packages in {facts['folder']} shadow the image's"
        return failed(text, "no user site on the path", remedy, Owner.START)
    if facts["shadows"]:
        text = f"PYTHONPATH puts {listed(facts['shadows'])} before the image's"
        return failed(
            text,
            "nothing in PYTHONPATH that hides the image's torch or NumPy",
            "unset PYTHONPATH, or remove the folder from it",
            Owner.START,
        )
    path = f"; PYTHONPATH={facts['pythonpath']}" if facts["pythonpath"] else ""
    return passed(f"user site is off{path}", "no user site on the path")


def probe_driver_files() -> Facts:
    """Driver files in the usual places, each with the mount it lies on (empty: it is the image's)."""
    points = set(system.mounts(system.read(Path("/proc/self/mountinfo"))))
    folders = [*driver_folders(), *(Path(folder) for folder in (*PROGRAM_FOLDERS, *COMPAT_FOLDERS))]
    return {"files": driver_files(folders, points)}


def driver_files(folders: Iterable[Path], points: Iterable[str]) -> Dict[str, str]:
    """Driver files in the folders; links count as what they point to, dangling ones not at all."""
    known, found = set(points), {}
    for folder in folders:
        for path in _entries(folder):
            real = Path(os.path.realpath(path))
            if DRIVER_FILE.fullmatch(path.name) and real.is_file():
                found[str(real)] = system.mounted_at(str(real), known)
    return found


def _entries(folder: Path) -> List[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def evaluate_driver_files(facts: Facts, claims: Claims) -> Verdict:
    """Baked driver files fight with those the host mounts: 803 and 'version mismatch'."""
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    own = sorted(file for file, mount in facts["files"].items() if not mount)
    if own:
        remedy = f"remove them where they were installed ({_package_hint(own)}) and rebuild the image"
        return failed(f"driver files in the image: {listed(own)}", "none", remedy, Owner.IMAGE, files=own)
    return passed(f"none in the image, {len(facts['files'])} mounted from the host", "none in the image")


def _package_hint(files: List[str]) -> str:
    return f"dpkg -S {files[0]} names the package"


def probe_loader_path() -> Facts:
    """Folders and cached libraries the loader uses."""
    # The container toolkit adds this file where it wants forward compatibility; cuInit judges that.
    added = {line for file in Path("/etc/ld.so.conf.d").glob("00-compat*") for line in system.read(file).splitlines()}
    folders = [str(folder) for folder in loader_folders() if folder.is_dir() and str(folder) not in added]
    try:
        cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, timeout=10, check=False)
        cached = re.findall(r"libcuda\.so\S* .*=> (\S+)", cache.stdout)
    except (OSError, subprocess.SubprocessError):
        cached = []
    cached = [path for path in cached if str(Path(path).parent) not in added]
    return {"folders": folders, "cached": cached, "variable": os.environ.get("LD_LIBRARY_PATH", "")}


def evaluate_loader_path(facts: Facts, _claims: Claims) -> Verdict:
    """stubs gives error 34, compat gives 803 and 804 on the wrong machine."""
    places = [*facts["variable"].split(":"), *facts["folders"], *facts["cached"]]
    wrong = sorted({place for place in places if re.search(r"/(stubs|compat)(/|$)", place)})
    expected = "no stubs folder (error 34), no compat folder (errors 803, 804)"
    if wrong:
        by_variable = any(place in facts["variable"].split(":") for place in wrong)
        owner = Owner.START if by_variable else Owner.IMAGE
        remedy = (
            "take it out of LD_LIBRARY_PATH" if by_variable else "remove it from /etc/ld.so.conf.d, then run ldconfig"
        )
        return failed(f"on the loader path: {listed(wrong)}", expected, remedy, owner)
    return passed(f"LD_LIBRARY_PATH={facts['variable'] or '(unset)'}", expected)


_check = partial(Check, group="image", level=Level.IMAGE)

CHECKS: List[Check] = [
    _check(
        id="python",
        title="Python is the one the image claims",
        probe=probe_python,
        evaluate=evaluate_python,
        why="Images have shipped with torch in one Python and another Python on PATH.",
        repairs=(remedies.REBUILD, "leave /opt/venv/bin first in PATH"),
        needs_claims=True,
    ),
    _check(
        id="one-torch",
        explained_by=("lock", "user-site"),
        group="packages",
        title="One torch, built for CUDA",
        probe=probe_one_torch,
        evaluate=evaluate_one_torch,
        why="A second torch shadows the first, and a CPU build looks right until the first kernel.",
        repairs=(remedies.LOCKED, remedies.FRESH),
    ),
    _check(
        id="user-site",
        title="No packages from the user's home",
        probe=probe_user_site,
        evaluate=evaluate_user_site,
        why="A home mounted from the host brings its ~/.local along, whose packages shadow the image's.",
        repairs=("set PYTHONNOUSERSITE=1, as the image does",),
        quick=True,
        needs_claims=True,
    ),
    _check(
        id="driver-files",
        title="No driver files in the image",
        probe=probe_driver_files,
        evaluate=evaluate_driver_files,
        why="Driver files in an image fight with those that the container toolkit mounts from the host.",
        repairs=("dpkg -S FILE names the package: do not install it", remedies.REBUILD),
        needs_claims=True,
    ),
    _check(
        id="loader-path",
        title="No stub or compat folder on the loader's path",
        probe=probe_loader_path,
        evaluate=evaluate_loader_path,
        isolation=Isolation.CHILD,
        why="A stubs folder gives CUDA error 34; a compat folder gives 803 or 804 on the wrong machine.",
        repairs=("take the folder out of LD_LIBRARY_PATH", "remove it from /etc/ld.so.conf.d and run ldconfig"),
        quick=True,
    ),
]
