"""How the container was started: shared memory, limits, writable folders, processors, compiler."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from verify import system
from verify.checks.common import NOT_AN_IMAGE, failed, inside, listed, passed, skipped
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict

SHM = Path("/dev/shm")
SHM_MINIMUM = 1 << 30
SHM_TRIAL = 128 << 20
"""Twice what docker gives by default; allocated for a moment, never touched."""
SHM_FLAG = "docker run --shm-size=8g ... (compose: shm_size; Kubernetes: emptyDir medium: Memory at /dev/shm)"
NOFILE_MINIMUM = 4096
STACK_MINIMUM = 8 << 20
MEMORY_MINIMUM = 2 << 30
CACHES = ("XDG_CACHE_HOME", "HF_HOME", "MPLCONFIGDIR", "TRITON_CACHE_DIR", "TORCH_HOME")
MORE_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH")
WORKSPACE = "/workspace"


def probe_shm() -> Facts:
    """Size by statvfs, then a file that posix_fallocate fills: pages are never touched (SIGBUS)."""
    mounts = system.mounts(system.read(Path("/proc/self/mountinfo")))
    if not SHM.is_dir():
        return {"exists": False}
    stat = os.statvfs(SHM)
    free = stat.f_bavail * stat.f_frsize
    trial = min(SHM_TRIAL, free) or SHM_TRIAL
    return {
        "exists": True,
        "type": mounts.get(str(SHM), "not a mount"),
        "total": stat.f_blocks * stat.f_frsize,
        "free": free,
        "trial": trial,
        "allocated": allocate(SHM, trial),
    }


def allocate(folder: Path, length: int) -> str:
    """Allocate that many bytes in a file without a name; "ok" or the error's name."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, length)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return "ok"


def evaluate_shm(facts: Facts, _claims: Claims) -> Verdict:
    """DataLoader workers hand batches over through /dev/shm; docker's default is 64 MB."""
    expected = f"at least {system.size(SHM_MINIMUM)}, writable"
    if not facts["exists"]:
        return failed("there is no /dev/shm", expected, SHM_FLAG, Owner.START)
    total, free = facts["total"], facts["free"]
    text = f"/dev/shm has {system.size(total)}, {system.size(free)} free"
    data = {"total_bytes": total, "free_bytes": free}
    if total < SHM_MINIMUM:
        return failed(text, expected, SHM_FLAG, Owner.START, **data)
    if free < SHM_TRIAL:
        remedy = "something fills it: ls -l /dev/shm, remove what no process uses, or raise --shm-size"
        return failed(text, expected, remedy, Owner.START, **data)
    if facts["allocated"] != "ok":
        trial = system.size(facts["trial"])
        return failed(f"{text}, but {trial} cannot be allocated: {facts['allocated']}", expected, SHM_FLAG, Owner.START)
    return passed(text, expected, **data)


def evaluate_shm_type(facts: Facts, _claims: Claims) -> Verdict:
    """On a disk instead of tmpfs every batch goes through the file system."""
    if not facts["exists"]:
        return failed("there is no /dev/shm", "tmpfs", SHM_FLAG, Owner.START)
    if facts["type"] != "tmpfs":
        return failed(f"/dev/shm is {facts['type']}", "tmpfs", "mount a tmpfs there: " + SHM_FLAG, Owner.START)
    return passed("/dev/shm is tmpfs", "tmpfs")


def probe_limits() -> Facts:
    """Read this process's limits; -1 is unlimited."""
    kinds = {"nofile": resource.RLIMIT_NOFILE, "memlock": resource.RLIMIT_MEMLOCK, "stack": resource.RLIMIT_STACK}
    soft = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return {**soft, "nofile_hard": hard, "infiniband": Path("/dev/infiniband").exists()}


def _unlimited(value: int) -> bool:
    return value < 0 or value >= 1 << 62


def evaluate_nofile(facts: Facts, _claims: Claims) -> Verdict:
    """Each tensor that workers share takes a file descriptor."""
    value = facts["nofile"]
    expected = f"at least {NOFILE_MINIMUM} (65536 for many workers)"
    text = "unlimited" if _unlimited(value) else f"{value} open files (hard limit {facts['nofile_hard']})"
    if not _unlimited(value) and value < NOFILE_MINIMUM:
        return failed(text, expected, "docker run --ulimit nofile=65536:65536 ...", Owner.START)
    return passed(text, expected)


def evaluate_memlock(facts: Facts, _claims: Claims) -> Verdict:
    """RDMA pins memory; without InfiniBand nothing needs it."""
    value = facts["memlock"]
    text = "unlimited" if _unlimited(value) else system.size(value)
    if facts["infiniband"] and not _unlimited(value):
        remedy = "docker run --ulimit memlock=-1 --cap-add IPC_LOCK ..."
        return failed(f"{text} of lockable memory beside /dev/infiniband", "unlimited", remedy, Owner.START)
    use = "InfiniBand is here" if facts["infiniband"] else "no InfiniBand needs more"
    return passed(f"{text}; {use}", "unlimited where /dev/infiniband exists")


def evaluate_stack(facts: Facts, _claims: Claims) -> Verdict:
    """A small stack crashes compilers and threads without a message."""
    value = facts["stack"]
    expected = f"at least {system.size(STACK_MINIMUM)}"
    text = "unlimited" if _unlimited(value) else system.size(value)
    if not _unlimited(value) and value < STACK_MINIMUM:
        return failed(text, expected, "docker run --ulimit stack=67108864 ...", Owner.START)
    return passed(text, expected)


def probe_folders() -> Facts:
    """Try to write where libraries keep their caches."""
    named = [(name, os.environ[name]) for name in (*CACHES, *MORE_CACHES) if os.environ.get(name)]
    home = os.environ.get("HOME") or os.path.expanduser("~")
    folders = [("HOME", home), ("HOME/.cache", os.path.join(home, ".cache")), *named]
    folders.append(("temporary files", os.environ.get("TMPDIR") or "/tmp"))
    return {"folders": {f"{name} {path}": why_not_writable(path) for name, path in folders}}


def why_not_writable(path: str) -> str:
    """Empty when a file can be made in the folder, or in the nearest one above it that exists."""
    folder = Path(path)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder}: {error.strerror}"


def evaluate_folders(facts: Facts, _claims: Claims) -> Verdict:
    """Compilers, model hubs and plots fail late when their cache cannot be written."""
    wrong = [f"{name} ({reason})" for name, reason in facts["folders"].items() if reason]
    if wrong:
        remedy = "mount a writable folder there, or -e HOME=/tmp (also HF_HOME, TRITON_CACHE_DIR, MPLCONFIGDIR)"
        return failed(f"not writable: {listed(wrong)}", "all writable", remedy, Owner.START)
    return passed(f"{len(facts['folders'])} folders are writable", "all writable")


def probe_workspace() -> Facts:
    """Try to write into the working folder."""
    exists = Path(WORKSPACE).is_dir()
    return {"exists": exists, "reason": why_not_writable(WORKSPACE) if exists else "", "uid": os.getuid()}


def evaluate_workspace(facts: Facts, claims: Claims) -> Verdict:
    """A folder mounted from the host belongs to the host's user."""
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    if not facts["exists"]:
        return failed(f"{WORKSPACE} is missing", "a writable folder", "rebuild the image", Owner.IMAGE)
    if facts["reason"]:
        remedy = f"on the host: chown -R {facts['uid']} the mounted folder, or docker run --user $(id -u):$(id -g)"
        return failed(f"uid {facts['uid']} cannot write: {facts['reason']}", "writable", remedy, Owner.START)
    return passed(f"{WORKSPACE} is writable for uid {facts['uid']}", "writable")


def probe_resources() -> Facts:
    """Processors and memory, by affinity and by both versions of cgroups."""
    return {
        "cpus": system.effective_cpus(),
        "affinity": len(os.sched_getaffinity(0)),
        "quota": system.cpu_quota(),
        "memory": system.effective_memory(),
        "limit": system.memory_limit(),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
    }


def evaluate_resources(facts: Facts, _claims: Claims) -> Verdict:
    """A limit lower than the machine explains slow loading and kills without a message."""
    expected = f"at least {system.size(MEMORY_MINIMUM)} of memory"
    text = f"{facts['cpus']} CPUs, {system.size(facts['memory'])} of memory"
    if facts["memory"] and facts["memory"] < MEMORY_MINIMUM:
        return failed(text, expected, "docker run --memory 8g ... (or without --memory)", Owner.START)
    if facts["quota"] and facts["affinity"] > facts["cpus"] and not facts["threads"]:
        text += f"; torch would start {facts['affinity']} threads: set OMP_NUM_THREADS={facts['cpus']}"
    return passed(text, expected, cpus=facts["cpus"], memory_bytes=facts["memory"])


def probe_compiler() -> Facts:
    """Compile a function with each compiler that torch.compile and triton would use."""
    c = _first(os.environ.get("CC"), "gcc", "cc", "clang")
    cxx = _first(os.environ.get("CXX"), "g++", "c++", "clang++")
    return {"c": c, "c_error": _compile(c, "c"), "cxx": cxx, "cxx_error": _compile(cxx, "c++")}


def _first(*names: Optional[str]) -> str:
    return next((path for path in (shutil.which(name) for name in names if name) if path), "")


def _compile(compiler: str, language: str) -> str:
    if not compiler:
        return "not found"
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, "-x", language, "-shared", "-fPIC", "-", "-o", os.path.join(folder, "trial.so")]
        source = "#include <math.h>\n#include <string.h>\nint trial(void) { return 0; }\n"
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=30, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def evaluate_compiler(facts: Facts, _claims: Claims) -> Verdict:
    """torch.compile writes C++, triton writes C: without a compiler they fail at the first step."""
    wrong = [f"{kind}: {facts[key]}" for kind, key in (("C", "c_error"), ("C++", "cxx_error")) if facts[key]]
    if wrong:
        remedy = "leave /usr/bin in PATH and CC, CXX unset; in your own image: apt-get install gcc g++"
        return failed(listed(wrong), "a C and a C++ compiler that work", remedy, Owner.IMAGE)
    return passed(f"{facts['c']} and {facts['cxx']} compile", "a C and a C++ compiler that work")


def _check(
    check_id: str, group: str, title: str, parts: Tuple[Any, Any], isolation: Isolation = Isolation.CHILD
) -> Check:
    return Check(check_id, group, Level.CONTAINER, title, parts[0], parts[1], isolation=isolation, timeout=60.0)


_LIMITS: Dict[str, Tuple[str, Any]] = {
    "limit-nofile": ("Enough open files", evaluate_nofile),
    "limit-memlock": ("Enough lockable memory", evaluate_memlock),
    "limit-stack": ("Enough stack", evaluate_stack),
}

CHECKS: List[Check] = [
    _check("resources", "container", "Processors and memory", (probe_resources, evaluate_resources), Isolation.NONE),
    _check("shm-type", "shm", "/dev/shm is memory", (probe_shm, evaluate_shm_type)),
    _check("shm-size", "shm", "Shared memory is large enough", (probe_shm, evaluate_shm)),
    *(
        _check(check_id, "limits", title, (probe_limits, evaluate), Isolation.NONE)
        for check_id, (title, evaluate) in _LIMITS.items()
    ),
    _check("caches", "container", "Caches can be written", (probe_folders, evaluate_folders)),
    _check("workspace", "container", "The working folder can be written", (probe_workspace, evaluate_workspace)),
    _check("compiler", "container", "C and C++ compilers work", (probe_compiler, evaluate_compiler)),
]
