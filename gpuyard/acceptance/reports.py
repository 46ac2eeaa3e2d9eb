"""Report files: JSON, JUnit XML and one HTML page beside each other, written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuyard.errors import UsageError, UserError
from verify.report import html, junit
from verify.report.report import Report

DIGITS = 12


def stem(line: str, image: str, digest: str) -> str:
    """The name of a report without its ending: line, image, and the beginning of the digest."""
    return f"{line}-{image}-{digest.removeprefix('sha256:')[:DIGITS]}"


def stem_of(reference: str, digest: str) -> str:
    """The same for an image from elsewhere, by its reference."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", reference.partition("@")[0])
    return f"{name}-{digest.removeprefix('sha256:')[:DIGITS]}"


def write(report: Report, folder: Path, name: str) -> list[Path]:
    """Writes the three files; returns their paths, JSON first. Raises UserError if it can't."""
    texts = {
        ".json": json.dumps(report.to_dict(), indent=2) + "\n",
        ".xml": junit.render(report),
        ".html": html.render(report),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_replace(folder / (name + ending), text) for ending, text in texts.items()]
    except OSError as error:
        raise UserError(
            "report-not-writable", f"{folder}: the report cannot be written: {error.strerror or error}"
        ) from error


def require_writable(folder: Path) -> None:
    """Raises UsageError now rather than after a long run if no report can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            "report-not-writable", f"--report-dir {folder}: {error.strerror or error}; name a writable folder"
        ) from error


def _replace(path: Path, text: str) -> Path:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(text)
            file.close()
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return path


@dataclass(frozen=True)
class Found:
    """A report as it was read once: its file, its bytes, their content."""

    path: Path
    data: bytes
    content: Report


def newest(folder: Path) -> Iterator[Found]:
    """The reports of a folder, newest first; files that are not reports are left out."""
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        with contextlib.suppress(UserError):
            yield read(path)


def about(folder: Path, digests: Collection[str]) -> Found | None:
    """The newest report of a folder about one of these digests."""
    return next((found for found in newest(folder) if found.content.digest in digests), None)


def latest(folder: Path) -> Path:
    """The newest report of a folder. Raises UserError if there is none."""
    found = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UserError("report-missing", f"no report in {folder}/: make one with gpuyard verify")
    return found[-1]


def load(path: Path) -> Report:
    """A finished report. Raises UserError for a file that is not a report."""
    return read(path).content


def read(path: Path) -> Found:
    """A finished report with its bytes. Raises UserError for a file that is not a report."""
    try:
        data = path.read_bytes()
        return Found(path, data, Report.from_dict(json.loads(data)))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError("report-invalid", f"{path}: not a report: {why}") from error
