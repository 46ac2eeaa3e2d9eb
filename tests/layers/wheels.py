"""Small wheels made for tests: the same bytes every time, in any way that a bad wheel can be wrong."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from gpuyard.packages.fetcher import Wheel
from gpuyard.store.store import sha256_of

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
TAG = "py3-none-any"
LINK = stat.S_IFLNK | 0o777


def make(
    folder: Path,
    name: str = "sample",
    version: str = "1.0",
    files: Mapping[str, str | bytes] | None = None,
    tag: str = TAG,
    modes: Mapping[str, int] | None = None,
    scripts: str = "",
) -> Wheel:
    """Writes a wheel of these files; ``scripts`` is its entry_points.txt, ``modes`` those of single files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    content = {
        **({f"{name}/__init__.py": f"VERSION = {version!r}\n"} if files is None else files),
        f"{info}/METADATA": METADATA.format(name=name, version=version),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        **({f"{info}/entry_points.txt": scripts} if scripts else {}),
    }
    record = "".join(f"{place},,\n" for place in content) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in {**content, f"{info}/RECORD": record}.items():
            entry = zipfile.ZipInfo(place, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (modes or {}).get(place, stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return Wheel(name, version, sha256_of(path), path, path.stat().st_size)
