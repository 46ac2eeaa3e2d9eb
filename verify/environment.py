"""``verify env``: one page about this machine to paste into a bug report, with secrets masked."""

from __future__ import annotations

import os
import platform
import re
import resource
import sys
from pathlib import Path
from typing import Dict, List, Mapping

from verify.checks.image.installed import installed
from verify.checks.image.torch_files import torch_version_file
from verify.model import Claims
from verify.probes import system
from verify.probes.gpu_signs import gpu_signs
from verify.secret_names import MASK, is_secret, without_secrets

KINDS = re.compile(r"(torch.*|nvidia-.*|triton|numpy|transformers)")


def page(claims: Claims) -> str:
    """The page. No library of the driver is loaded and no torch imported, so it always comes."""
    parts = (
        ("system", _system()),
        ("image", _image(claims)),
        ("gpu", {name: str(value) for name, value in gpu_signs().items()}),
        ("limits", _limits()),
        ("packages", {name: version for name, version in sorted(installed().items()) if KINDS.fullmatch(name)}),
        ("environment", masked(os.environ)),
    )
    return "\n".join(line for title, rows in parts for line in _part(title, rows)).rstrip()


def _part(title: str, rows: Mapping[str, str]) -> List[str]:
    width = max([len(name) for name in rows] or [0])
    return [title, *(f"  {name:{width}}  {value}" for name, value in rows.items()), ""]


def _system() -> Dict[str, str]:
    release = dict(line.split("=", 1) for line in system.read(Path("/etc/os-release")).splitlines() if "=" in line)
    return {
        "python": f"{platform.python_version()} {sys.executable}",
        "os": release.get("PRETTY_NAME", "").strip('"'),
        "kernel": platform.release(),
        "container": "yes" if system.in_container() else "no",
        "user": f"{os.getuid()}:{os.getgid()}",
        "torch": " cuda ".join(str(torch_version_file().get(name) or "none") for name in ("__version__", "cuda")),
    }


def _image(claims: Claims) -> Dict[str, str]:
    if not claims.image:
        return {"claims": "none: not a gpuyard image"}
    names = {name: str(claims.image.get(name, "")) for name in ("image", "line", "os", "lock")}
    return {**names, **{name: str(value) for name, value in (claims.image.get("versions") or {}).items()}}


def _limits() -> Dict[str, str]:
    shm = os.statvfs("/dev/shm") if Path("/dev/shm").is_dir() else None
    return {
        "cpus": str(system.effective_cpus()),
        "memory": system.size(system.effective_memory()),
        "/dev/shm": system.size(shm.f_blocks * shm.f_frsize) if shm else "missing",
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)),
        "memlock": str(resource.getrlimit(resource.RLIMIT_MEMLOCK)),
    }


def masked(environment: Mapping[str, str]) -> Dict[str, str]:
    """The variables, sorted: secret by name without their value, others without the secrets in it."""
    return {name: _mask(name, value) for name, value in sorted(environment.items())}


def _mask(name: str, value: str) -> str:
    return MASK if is_secret(name) else without_secrets(value).replace("\n", "\\n")
