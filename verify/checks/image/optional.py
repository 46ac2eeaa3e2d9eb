"""Files that lack a library and may: variants of which another one fits, and plug-ins their package works without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Set

ON_DEMAND = re.compile(r"/nvidia/|/torio/lib/\w*ffmpeg\d\.so|/torchaudio/lib/\w*sox\.so")
"""Plug-ins that are loaded only where their libraries are: NVIDIA's for networks and storage, torchaudio's for sox
and for each version of FFmpeg."""
OF_TORCH_OR_CUDA = re.compile(
    r"lib(torch\w*|c10\w*|cudart|cudnn\w*|nccl|cublas|cublasLt|cufft|curand|cusolver|cusparse|nvJitLink|nvrtc)\.so.*"
)
"""What is here in one version for all: who needs another one was built for another torch or CUDA."""
VARIANT = re.compile(r"[-_](?:cuda|cu|cpu|rocm|hip|xpu)[\d.]*(?:_nocublaslt)?(?=[-_.])")
IMPORT_SECONDS = 25.0


def variants(unmet: Mapping[str, List[str]], files: Iterable[str]) -> Set[str]:
    """Those of the files that have a neighbour for another CUDA or processor which lacks nothing."""
    whole = {_family(file) for file in files if file not in unmet}
    return {file for file in unmet if _family(file) in whole}


def _family(file: str) -> str:
    """The path without what names a variant: libops_cuda118.so and libops_cpu.so are one family."""
    folder, _, name = file.rpartition("/")
    return f"{folder}/{VARIANT.sub('', name)}"


def import_errors(files: Iterable[str]) -> Dict[str, str]:
    """Each file to why its package cannot be imported, empty where it can; each package is tried once."""
    tried: Dict[str, str] = {}
    found = {}
    for file in files:
        site, package = _package(file)
        if package not in tried:
            tried[package] = _try(package) if (Path(site) / package / "__init__.py").is_file() else "it has no __init__"
        found[file] = tried[package]
    return found


def _package(file: str) -> List[str]:
    """The folder of packages and the first name below it."""
    parts = re.split(r"(?<=/site-packages)/|(?<=/dist-packages)/", file)
    return ["/".join(parts[:-1]), parts[-1].split("/")[0]]


def _try(package: str) -> str:
    """The last line of what the import complains about. It sees no GPU, so that no context is made for it."""
    command = [sys.executable, "-c", f"import {package}"]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False, env=hidden)
    except subprocess.TimeoutExpired:
        return f"import {package} takes longer than {IMPORT_SECONDS:g} s"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
