"""`gpuyard list`."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard.catalogue import claims, table
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.options import refuse_without_effect
from gpuyard.errors import UserError
from gpuyard.image import sizes
from gpuyard.publish.registry import Repository
from gpuyard.store.store import Store


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
    for_github: Annotated[bool, typer.Option("--github", help="With --json: as outputs of a workflow's step.")] = False,
    by_size: Annotated[bool, typer.Option("--sizes", help="What images built from layers weigh and share.")] = False,
    write_tables: Annotated[bool, typer.Option("--write-tables", help="Update verify/tables.json.")] = False,
) -> None:
    """Show the lines: tags, CUDA, cuDNN, NCCL, the oldest driver, and the GPU generations."""
    catalogue = table.load()
    if by_size and for_github:
        refuse_without_effect(["--github"], "with --sizes")
    if write_tables:
        claims.write_tables(catalogue)
    if by_size:
        show_sizes(sizes.known(Store()), as_json)
        return
    rows = [describe(catalogue, name) for name in catalogue.line]
    if for_github:
        print(outputs(rows, catalogue.repository))
    elif as_json:
        print(json.dumps(rows, indent=1))
    else:
        _show(rows)


def describe(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """One line of the table, as plain data."""
    line = catalogue.line[name]
    return {
        "line": name,
        "default": name == catalogue.default_line,
        "tags": [catalogue.tag(name, image) for image in catalogue.images_of(name)],
        "images": {image: catalogue.tag(name, image) for image in catalogue.images_of(name)},
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


def outputs(rows: list[dict[str, Any]], repository: str) -> str:
    """Outputs of a workflow's step: the lines, every image of each, and the registry they go to.

    The registry is $REGISTRY, or the forge's own. Names of repositories may have capital letters, those on a registry
    may not.
    """
    products = [
        {"line": row["line"], "image": image, "tag": tag, "version": tag.partition(":")[2]}
        for row in rows
        for image, tag in row["images"].items()
    ]
    given = os.environ.get("REGISTRY") or f"ghcr.io/{os.environ.get('GITHUB_REPOSITORY', repository)}"
    where = Repository.parse(given.lower(), repository)
    found = {"lines": [row["line"] for row in rows], "products": products}
    lines = [f"{name}={json.dumps(values, separators=(',', ':'))}" for name, values in found.items()]
    return "\n".join([*lines, f"registry={where}", f"host={where.host}"])


def show_sizes(images: dict[str, sizes.Blobs], as_json: bool = False) -> None:
    """For each image: compressed, shared with others, only its own, and the download for whoever has another."""
    if not images:
        raise UserError("image-sizes-unknown", "no image was built from layers on this machine. Run: gpuyard build")
    found = {
        name: {
            "compressed": one.total,
            "shared": one.shared,
            "unique": one.unique,
            "download": {have: sizes.download(blobs, images[name]) for have, blobs in images.items() if have != name},
        }
        for name, one in sizes.sizes(images).items()
    }
    if as_json:
        print(json.dumps(found, indent=1))
        return
    _show_sizes(found)


def _show_sizes(found: dict[str, dict[str, Any]]) -> None:
    """Two tables that fit 80 columns, however many images there are: a column for each would not."""
    shown = Table("image", "compressed", "shared", "unique", box=box.SIMPLE_HEAD)
    for name, row in found.items():
        shown.add_row(name, *(f"{row[key] / 1e9:.2f} GB" for key in ("compressed", "shared", "unique")))
    console = Console(soft_wrap=True)
    console.print(shown)
    if len(found) > 1:
        downloads = Table("to download", "for whoever has", "size", box=box.SIMPLE_HEAD)
        for name, row in found.items():
            for have, size in row["download"].items():
                downloads.add_row(name, have, f"{size / 1e9:.2f} GB")
        console.print(downloads)


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
