"""`gpuyard new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.render.project import create, files
from gpuyard.render.work import image_reference


def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is empty or does not exist yet.")],
    image: Annotated[str, typer.Option(help="workbench, runtime, or an image's reference.")] = "workbench",
    name: Annotated[str, typer.Option(help="The project's and its image's name; the folder's if left out.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files and write none.")] = False,
) -> None:
    """Make a small project on top of the image: Dockerfile, requirements, compose, a training, CI, Dev Container."""
    place = folder.absolute()
    contents = files(name or place.name, image_reference(table.load(), image))
    if dry_run:
        print(*contents, sep="\n")
        return
    create(place, contents)
    print(*(f"{folder}/{path}" for path in contents), sep="\n")
    print(f"Next: cd {folder} && docker compose --profile cpu build && docker compose --profile cpu run --rm cpu")
