"""What the kernel lets this container do, and the compiler for CUDA where there is one."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import List

from verify import versions
from verify.checks.image.torch_files import built_for_cuda
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import arch, system
from verify.verdicts import failed, inside, passed

OLD_DOCKER = (
    "the host's Docker or libseccomp is too old for this image's C library (it refuses clone3): "
    "Docker 20.10.10 or newer; until then docker run --security-opt seccomp=unconfined ..."
)


def probe_threads() -> Facts:
    """Start one thread through the C library, whose answer names the reason; Python's hides it."""
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    routine = ctypes.cast(libc.getpid, ctypes.c_void_p)
    code = libc.pthread_create(ctypes.byref(thread), None, routine, None)
    if code == 0:
        libc.pthread_join(thread, None)
    pids = [system.read(system.CGROUP / place / "pids.max") for place in ("", "pids")]
    return {"code": errno.errorcode.get(code, str(code)) if code else "", "pids": next(filter(None, pids), "")}


def evaluate_threads(facts: Facts, _claims: Claims) -> Verdict:
    """OpenBLAS, torch and every server start threads; where the host forbids that, nothing works for long."""
    code, expected = facts["code"], "a thread can be started"
    limit = f" (pids limit {facts['pids']})" if facts["pids"] else ""
    if code == "EPERM":
        return failed("a thread cannot be started: EPERM", expected, OLD_DOCKER, Owner.HOST)
    if code:
        remedy = "docker run --pids-limit -1 ... (or --ulimit nproc=-1), or end processes in the container"
        return failed(f"a thread cannot be started: {code}{limit}", expected, remedy, Owner.START)
    return passed(f"a thread was started{limit}", expected)


def probe_nvcc() -> Facts:
    """Ask nvcc for its release, and read the architectures that builds are asked for."""
    path = shutil.which("nvcc") or next((str(p) for p in (Path("/usr/local/cuda/bin/nvcc"),) if p.exists()), "")
    text = ""
    if path:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
        text = done.stdout
    found = re.search(r"release (\d+\.\d+)", text)
    return {
        "path": path,
        "release": found.group(1) if found else "",
        "torch_cuda": built_for_cuda(),
        "archs": os.environ.get("TORCH_CUDA_ARCH_LIST"),
    }


def evaluate_nvcc(facts: Facts, claims: Claims) -> Verdict:
    """There are three CUDA versions: the driver's, the toolkit's and torch's. The last two must agree."""
    built = str(facts["torch_cuda"])
    expected = f"no nvcc, or one of CUDA {built}; TORCH_CUDA_ARCH_LIST for builds without a GPU"
    if facts["path"] and not facts["release"]:
        return failed(f"{facts['path']} does not run", expected, "reinstall the CUDA toolkit", Owner.IMAGE)
    if facts["path"] and built and not versions.same(facts["release"], built):
        text = f"nvcc is of CUDA {facts['release']}, torch was built with {built}: extensions would mix both"
        return failed(text, expected, f"install the CUDA toolkit {built}, or take nvcc out of PATH", Owner.IMAGE)
    if inside(claims) and not facts["archs"] and claims.image.get("arch_list"):
        wanted = ";".join(_plain(code) for code in arch.normalised(claims.image["arch_list"]))
        text = "TORCH_CUDA_ARCH_LIST is not set: building a CUDA extension without a GPU ends in IndexError"
        return failed(text, expected, f"export TORCH_CUDA_ARCH_LIST='{wanted}'", Owner.START)
    if not facts["path"]:
        return passed("no nvcc: this is a runtime image; to compile CUDA code use an image with the toolkit", expected)
    return passed(f"nvcc {facts['release']}, as torch's CUDA {built}", expected)


def _plain(code: str) -> str:
    """sm_90 as TORCH_CUDA_ARCH_LIST has it: 9.0."""
    digits = re.sub(r"\D", "", code)
    return f"{digits[:-1]}.{digits[-1]}"


_check = partial(Check, group="container", level=Level.CONTAINER, isolation=Isolation.CHILD)

CHECKS: List[Check] = [
    _check(
        id="threads",
        title="Threads can be started",
        probe=probe_threads,
        evaluate=evaluate_threads,
        why="Docker before 20.10.10 answers EPERM to clone3: 'can't start new thread'.",
        repairs=("upgrade the host's Docker", "docker run --security-opt seccomp=unconfined ..."),
        quick=True,
    ),
    _check(
        id="nvcc",
        title="A CUDA compiler, if any, fits torch",
        probe=probe_nvcc,
        evaluate=evaluate_nvcc,
        why="nvidia-smi, nvcc and torch each have a CUDA version; only a build needs nvcc to be torch's.",
        repairs=("install the toolkit that the finding names", "export TORCH_CUDA_ARCH_LIST=..."),
    ),
]
