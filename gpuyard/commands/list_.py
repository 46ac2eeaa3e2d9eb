"""`gpuyard list`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard import catalogue as table
from gpuyard import claims
from gpuyard.catalogue import Catalogue


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
    write_tables: Annotated[bool, typer.Option("--write-tables", help="Write verify/tables.json anew.")] = False,
) -> None:
    """Show the lines: tags, CUDA, cuDNN, NCCL, the oldest driver, and the GPU generations."""
    catalogue = table.load()
    if write_tables:
        claims.write_tables(catalogue)
    rows = [describe(catalogue, name) for name in catalogue.line]
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        _show(rows)


def describe(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """One line of the table, as plain data."""
    line = catalogue.line[name]
    return {
        "line": name,
        "default": name == catalogue.default_line,
        "tags": [catalogue.tag(name, image) for image in catalogue.published],
        "torch": line.torch_version,
        "cuda": line.cuda,
        "cudnn": line.cudnn,
        "nccl": line.nccl,
        "python": catalogue.os[catalogue.default_os].python,
        "driver": catalogue.driver_floor(line),
        "driver_full": catalogue.driver_full(line),
        "gpus": catalogue.generations(line),
        "arch_list": list(line.arch_list),
    }


def _show(rows: list[dict[str, Any]]) -> None:
    shown = Table(box=box.SIMPLE_HEAD)
    for heading in ("line", "tags", "torch", "CUDA", "cuDNN", "NCCL", "driver ≥ (full)"):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("GPUs", min_width=16)
    for row in rows:
        shown.add_row(
            row["line"] + ("*" if row["default"] else ""),
            "\n".join(row["tags"]),
            *(row[key] for key in ("torch", "cuda", "cudnn", "nccl")),
            f"{row['driver']}\n({row['driver_full']})",
            ", ".join(row["gpus"]),
        )
    console = Console()
    # Below this the columns that people copy from would be cut; a terminal wraps them instead.
    console.width = max(console.width, 118)
    console.print(shown)
    print("* the default line")
