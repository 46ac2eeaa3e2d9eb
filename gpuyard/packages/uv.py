"""uv for the inside of a build, from its own wheel, by the hashes of the host's lock."""

from __future__ import annotations

import zipfile
from pathlib import Path

from gpuyard import paths
from gpuyard.errors import UserError
from gpuyard.packages.fetcher import Fetcher
from gpuyard.packages.locked import Locked, read
from gpuyard.store.store import Store

REQUIREMENTS = paths.ROOT / "gpuyard" / "requirements.txt"


def uv_for_images(version: str, python: str, store: Store | None = None, fetcher: Fetcher | None = None) -> Path:
    """The uv program of that version, extracted once per machine. Raises UserError."""
    store = store or Store()
    program = store.folder / f"uv-{version}" / "uv"
    if not program.exists():
        wheel = (fetcher or Fetcher(store, python)).ensure(locked(version))
        program.parent.mkdir(parents=True, exist_ok=True)
        _extract(wheel.path, program)
    return program


def locked(version: str, requirements: Path = REQUIREMENTS) -> Locked:
    """uv as the host's lock has it, which holds the hashes of its wheels for every platform."""
    for found in read(requirements):
        if (found.name, found.version) == ("uv", version):
            return found
    raise UserError(
        "uv-version-mismatch",
        f"uv {version} (images/catalogue.toml) is not in {requirements.name}: name the same version in both",
    )


def _extract(wheel: Path, program: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".data/scripts/uv"))
        part = program.with_suffix(".part")
        part.write_bytes(archive.read(member))
    part.chmod(0o755)
    part.rename(program)
