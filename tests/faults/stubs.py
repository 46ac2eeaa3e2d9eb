"""Compiles the stand-ins for the driver's libraries, so that broken drivers can be met without a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = {"libcuda.so.1": HERE / "stub_cuda.c", "libnvidia-ml.so.1": HERE / "stub_nvml.c"}


def compile_stub(folder: Path, name: str = "libcuda.so.1") -> Path:
    """The stand-in for the library of that name, compiled into the folder (made if missing)."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / name
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", f"-Wl,-soname,{name}", "-o", str(library)]
    subprocess.run([*command, str(SOURCES[name])], check=True)
    return library
