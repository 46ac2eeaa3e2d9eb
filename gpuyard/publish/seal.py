"""Seals: a report that was changed after it was written is recognised.

The seal is an HMAC of the file with a key of this machine's user (or of the pipeline, in
GPUYARD_SEAL_KEY). It tells a report that `gpuyard verify` wrote from one that was edited, made by
hand, or brought from elsewhere. It can't stop whoever may read the key.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path

from gpuyard.errors import UserError

VARIABLE = "GPUYARD_SEAL_KEY"
SHORTEST = 16
"""Characters of a key from the environment."""
METHOD = "hmac-sha256"


def seal_of(report: Path) -> Path:
    """The file beside a report that holds its seal."""
    return report.with_name(report.name + ".seal")


def write(report: Path) -> Path:
    """Seals a report as it lies there. Raises UserError if it can't."""
    try:
        place = seal_of(report)
        place.write_text(f"{METHOD} {_mac(report)}\n")
    except OSError as error:
        raise UserError(f"{seal_of(report)}: the seal cannot be written: {error.strerror or error}") from error
    return place


def refuse_broken(report: Path) -> None:
    """Raises UserError unless the report is exactly what was sealed."""
    again = "Make it anew: gpuyard verify"
    try:
        method, _, found = seal_of(report).read_text().strip().partition(" ")
    except OSError:
        raise UserError(
            f"{report} has no seal: gpuyard verify did not write it, or not on this machine. {again}"
        ) from None
    if method != METHOD or not hmac.compare_digest(found, _mac(report)):
        raise UserError(f"{report} was edited after gpuyard verify wrote it, or sealed with another key. {again}")


def _mac(report: Path) -> str:
    return hmac.new(_key(), report.read_bytes(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    if given := os.environ.get(VARIABLE):
        if len(given) < SHORTEST:
            raise UserError(f"{VARIABLE} has {len(given)} characters; at least {SHORTEST} are needed")
        return given.encode()
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    place = base / "gpuyard" / "seal.key"
    if not place.exists():
        _make(place)
    return place.read_bytes()


def _make(place: Path) -> None:
    """Writes a new key, whole; of two processes that do so at once, one wins and both use its key."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=place.parent) as file:
        file.write(secrets.token_hex(32))
        file.flush()
        with contextlib.suppress(FileExistsError):
            os.link(file.name, place)
