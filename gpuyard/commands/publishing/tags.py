"""`gpuyard tags`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.errors import UserError
from gpuyard.image.source import Source
from gpuyard.publish.prepare import Selection, report_of, source_of
from gpuyard.publish.registry import Repository


def tags(
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; the default one if left out.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    os: Annotated[str | None, typer.Option(help="An operating system of the catalogue.")] = None,
    layout: Annotated[Path | None, typer.Option(help="An OCI layout (gpuyard build --layout) instead.")] = None,
    registry: Annotated[str | None, typer.Option(help="HOST/NAME: also show what each tag stands for there.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option(help="The folder of its report; reports/ here and in the checkout if left out.")
    ] = None,
    ca_file: Annotated[Path | None, typer.Option(help="Who signed the registry's certificate.")] = None,
    plain_http: Annotated[bool | None, typer.Option(help="No TLS; not needed for loopback addresses.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Show what publish would call an image, read from the files in it. Changes nothing."""
    catalogue = table.load()
    source = source_of(Selection(line, image, os, layout), catalogue)
    repository = Repository.parse(registry, catalogue.repository, ca_file, plain_http) if registry else None
    there = {tag: repository.resolve(tag) for tag in source.tags.in_order} if repository else {}
    verdict = verdict_of(source, report_dir)
    found = source.tags
    if as_json:
        names = {"moving": found.moving, "full": found.full, "immutable": found.immutable or None}
        print(json.dumps({"digest": source.digest, "verified": not verdict, **names, "registry": there}, indent=1))
        return
    print(f"image      {source.digest}, {verdict or 'verified'}")
    kinds = {**dict.fromkeys(found.moving, "moving"), found.full: "full", found.immutable: "immutable"}
    for tag, kind in kinds.items():
        print(f"{kind:9}  {tag or 'none: built from uncommitted changes'}{state(there, tag, source)}")


def verdict_of(source: Source, folder: Path | None) -> str:
    """Why an image may not be published; empty if it may."""
    try:
        report_of(source, None, folder)
    except UserError as error:
        return f"not verified: {error}"
    return ""


def state(there: dict[str, str | None], tag: str, source: Source) -> str:
    """What a tag stands for on the registry."""
    if tag not in there:
        return ""
    digest = there[tag]
    if digest is None:
        return "  (not there yet)"
    return "  (stands for this image)" if digest == source.digest else f"  (stands for {digest})"
