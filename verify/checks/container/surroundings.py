"""How the container was started: processors and memory, writable folders, compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import List, Optional

from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.verdicts import NOT_AN_IMAGE, failed, inside, listed, passed, skipped

MEMORY_MINIMUM = 2 << 30
CACHES = ("XDG_CACHE_HOME", "HF_HOME", "MPLCONFIGDIR", "TRITON_CACHE_DIR", "TORCH_HOME")
MORE_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH")
WORKSPACE = "/workspace"


def probe_folders() -> Facts:
    """Try to write where libraries keep their caches."""
    named = [(name, os.environ[name]) for name in (*CACHES, *MORE_CACHES) if os.environ.get(name)]
    home = os.environ.get("HOME") or "~"
    folders = [("HOME", home), ("HOME/.cache", f"{home}/.cache"), *named]
    folders.append(("temporary files", os.environ.get("TMPDIR") or "/tmp"))
    return {"folders": {f"{name} {path}": why_not_writable(path) for name, path in folders}}


def why_not_writable(path: str) -> str:
    """Empty when a file can be made in the folder, or in the nearest one above it that exists."""
    folder = Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for a uid without a name
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
        command = [compiler, "-x", language, "-shared", "-fPIC", "-", "-o", f"{folder}/trial.so"]
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


_check = partial(Check, group="container", level=Level.CONTAINER, isolation=Isolation.CHILD, timeout=60.0)

CHECKS: List[Check] = [
    _check(
        id="resources",
        title="Processors and memory",
        probe=probe_resources,
        evaluate=evaluate_resources,
        why="A limit lower than the machine explains slow loading and processes killed without a message.",
        repairs=("docker run --memory 8g --cpus 4 ...", "export OMP_NUM_THREADS=<number of CPUs granted>"),
        quick=True,
    ),
    _check(
        id="caches",
        title="Caches can be written",
        probe=probe_folders,
        evaluate=evaluate_folders,
        why="Compilers, model hubs and plots fail late when their cache cannot be written (another uid, read-only).",
        repairs=("mount a writable folder there", "docker run -e HOME=/tmp ..."),
    ),
    _check(
        id="workspace",
        title="The working folder can be written",
        probe=probe_workspace,
        evaluate=evaluate_workspace,
        why="A folder mounted from the host belongs to the host's user, not to the container's.",
        repairs=("chown it on the host", "docker run --user $(id -u):$(id -g) ..."),
        needs_claims=True,
    ),
    _check(
        id="compiler",
        title="C and C++ compilers work",
        probe=probe_compiler,
        evaluate=evaluate_compiler,
        why="torch.compile writes C++ and triton writes C: without compilers they fail at the first step.",
        repairs=("leave /usr/bin in PATH; unset CC and CXX", "apt-get install gcc g++ in your own image"),
    ),
]
