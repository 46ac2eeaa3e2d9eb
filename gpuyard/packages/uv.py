"""uv for the inside of a build, out of its own wheel: hash-locked, and for the image's platform."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from gpuyard import paths
from gpuyard.errors import UserError
from gpuyard.paths import cache_folder
from gpuyard.process import run

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def uv_for_images(version: str) -> Path:
    """The uv program of that version, fetched once per machine by the hashes of the host's lock."""
    program = cache_folder() / f"uv-{version}" / "uv"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        _extract(_download(version, program.parent), program)
    return program


def _download(version: str, folder: Path) -> Path:
    lock = folder / "uv.txt"
    lock.write_text(_requirement(version))
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    run([*pip, "--require-hashes", "-r", str(lock), *platforms, "-d", str(folder)])
    return next(folder.glob("uv-*.whl"))


def _requirement(version: str) -> str:
    """uv's own lines of the host's lock, which hold the hashes of its wheels for every platform."""
    text = (paths.ROOT / "gpuyard" / "requirements.txt").read_text()
    start = text.find(f"\nuv=={version} ")
    if start < 0:
        raise UserError(
            "uv-version-mismatch",
            f"uv {version} (images/catalogue.toml) is not in gpuyard/requirements.txt: name the same version in both",
        )
    lines = text[start + 1 :].splitlines()
    end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
    return "\n".join(lines[: end + 1]) + "\n"


def _extract(wheel: Path, program: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".data/scripts/uv"))
        part = program.with_suffix(".part")
        part.write_bytes(archive.read(member))
    part.chmod(0o755)
    part.rename(program)
    wheel.unlink()
