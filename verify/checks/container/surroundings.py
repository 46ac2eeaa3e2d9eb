"""How the container was started: processors and memory, compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import partial
from typing import List, Optional

from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.verdicts import failed, listed, passed

MEMORY_MINIMUM = 2 << 30


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
        id="compiler",
        title="C and C++ compilers work",
        probe=probe_compiler,
        evaluate=evaluate_compiler,
        why="torch.compile writes C++ and triton writes C: without compilers they fail at the first step.",
        repairs=("leave /usr/bin in PATH; unset CC and CXX", "apt-get install gcc g++ in your own image"),
    ),
]
