"""`gpuyard report`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.acceptance import reports
from gpuyard.commands.options import refuse_without_effect
from gpuyard.errors import UserError
from verify.report import table


def report(
    file: Annotated[Path | None, typer.Argument(help="A report's .json; the latest one if left out.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option(help="Where the latest one is looked for; reports if left out.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Print the path of its HTML page instead.")] = False,
) -> None:
    """Print a finished report again. Ends with 0: the report's own exit code stands in its verdict."""
    if file and report_dir:
        refuse_without_effect(["--report-dir"], "beside a file: leave one of them out")
    path = (file or reports.latest(report_dir or Path("reports"))).with_suffix(".json")
    shown = reports.load(path)
    if html:
        page = path.with_suffix(".html")
        if not page.exists():
            raise UserError("report-page-missing", f"{page}: missing. gpuyard verify writes it beside the report")
        print(page)
        return
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(table.render(shown, color, shutil.get_terminal_size((100, 40)).columns))
    print(f"report: {path}")
