"""Where a run's results go: the terminal and up to three report files."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Tuple

from verify.model import Check
from verify.report import table
from verify.report.report import Report

Render = Callable[[Report], str]
STDOUT = "-"


class UnwritableReport(Exception):
    """A report path that cannot be written; raised before any check runs where it can be known then."""

    id = "verify-report-unwritable"


@dataclass(frozen=True)
class Output:
    """The files to write, and whether progress and colours are shown."""

    files: Tuple[Tuple[str, Render], ...]
    quiet: bool
    color: bool

    def tell(self, number: int, total: int, check: Check) -> None:
        """Show on a terminal's stderr which check runs now."""
        if not self.quiet and sys.stderr.isatty():
            print(_overwritten(f"[{number}/{total}] {check.id}: {check.title}"), end="", file=sys.stderr, flush=True)

    def write(self, report: Report) -> None:
        """Write the files, then the table (or, when quiet or stdout is taken, only the verdict)."""
        if not self.quiet and sys.stderr.isatty():
            print(_overwritten("") + "\r", end="", file=sys.stderr, flush=True)
        taken = any(path == STDOUT for path, _ in self.files)
        for path, render in self.files:
            _write(path, render(report), report.verdict)
        if taken:
            print(report.verdict, file=sys.stderr)
        elif self.quiet:
            print(report.verdict)
        else:
            print(table.render(report, self.color, shutil.get_terminal_size((100, 40)).columns), flush=True)


def _overwritten(line: str) -> str:
    """The line over the one that stands there, padded: the output of a notebook knows no sequence that clears."""
    width = shutil.get_terminal_size().columns - 1
    return f"\r{line[:width]:{width}}"


def open_output(options: argparse.Namespace) -> Output:
    """The output for the options, after trying that each report can be written."""
    renders = [(options.json, to_json), (options.junit, _to_junit), (options.html, _to_html)]
    files = tuple((path, render) for path, render in renders if path)
    for path, _ in files:
        if path != STDOUT:
            _try(Path(path))
    if [path for path, _ in files].count(STDOUT) > 1:
        raise UnwritableReport("only one report can go to stdout (-)")
    color = not (options.no_color or os.environ.get("NO_COLOR")) and sys.stdout.isatty()
    return Output(files, options.quiet, color)


def to_json(report: Report) -> str:
    """The report as indented JSON."""
    return json.dumps(report.to_dict(), indent=2) + "\n"


def _to_junit(report: Report) -> str:
    from verify.report import junit

    return junit.render(report)


def _to_html(report: Report) -> str:
    from verify.report import html

    return html.render(report)


def _try(path: Path) -> None:
    """Raise UnwritableReport unless the file can be written; leave nothing behind."""
    try:
        if path.exists():
            with path.open("ab"):
                pass
        else:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnwritableReport(
            f"cannot write the report {path}: {reason}; nothing was run. Name a writable path."
        ) from error


def _write(path: str, text: str, verdict: str) -> None:
    if path == STDOUT:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(path).write_text(text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnwritableReport(f"cannot write the report {path}: {reason}; the checks did run: {verdict}") from error
