"""Small fake wheels, laid out as a find-links index: names and requirements as in real ones, nothing inside."""

from __future__ import annotations

import zipfile
from pathlib import Path

MOUNT = "/index"
INDEX = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": MOUNT, "UV_OFFLINE": "1", "UV_FIND_LINKS": MOUNT}
"""Environment of a container whose only index is the folder at MOUNT."""


def wheel(folder: Path, name: str, version: str, *requires: str, code: str = "") -> Path:
    """A wheel with one package and perhaps requirements; torch's says its version as torch's does."""
    spelled = name.replace("-", "_")
    info = f"{spelled}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content = {
        f"{spelled}/__init__.py": code or f"__version__ = {version!r}\n",
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {need}\n" for need in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{spelled}/version.py": torch_version(version)} if name == "torch" else {}),
    }
    path = folder / f"{spelled}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in content.items():
            archive.writestr(place, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{place},,\n" for place in [*content, f"{info}/RECORD"]))
    return path


def torch_version(version: str) -> str:
    """torch/version.py of a build: a CPU build unless its local part names a CUDA variant."""
    variant = version.partition("+")[2]
    cuda = f"{variant[2:-1]}.{variant[-1]}" if variant.startswith("cu") else None
    return f"__version__ = {version!r}\ncuda = {cuda!r}\n"
