"""`gpuyard publish`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.errors import UserError
from gpuyard.publish import evidence, publisher
from gpuyard.publish.prepare import Selection, report_of, signer_of, source_of
from gpuyard.publish.publisher import Done, Publication
from gpuyard.publish.registry import Repository


def publish(
    registry: Annotated[str, typer.Option(help="HOST:PORT/NAME; the catalogue's name if left out.")],
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; the default one if left out.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    os: Annotated[str | None, typer.Option(help="An operating system of the catalogue.")] = None,
    layout: Annotated[Path | None, typer.Option(help="An OCI layout (gpuyard build --layout) instead.")] = None,
    report: Annotated[Path | None, typer.Option(help="The report that verifies it.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option(help="The folder to search for it; reports/ here and in the checkout if left out.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Sign with this cosign key (COSIGN_PASSWORD).")] = None,
    keyless: Annotated[bool, typer.Option("--keyless", help="Sign with the pipeline's identity.")] = False,
    ca_file: Annotated[Path | None, typer.Option(help="Who signed the registry's certificate.")] = None,
    plain_http: Annotated[bool | None, typer.Option(help="No TLS; not needed for loopback addresses.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be set; change nothing.")] = False,
) -> None:
    """Send a verified image to a registry with its evidence; tags last. Log in with: oras login HOST.

    Only an image that gpuyard build --builder layers made and gpuyard verify passed, by digest. If it fails or
    is killed, run it again: it continues.
    """
    began = time.monotonic()
    catalogue = table.load()
    repository = Repository.parse(registry, catalogue.repository, ca_file, plain_http)
    source = source_of(Selection(line, image, os, layout), catalogue)
    if not source.tags.immutable:
        raise UserError(
            "uncommitted-changes",
            f"the image was built from {source.facts.revision or 'outside git'}: no immutable tag can name it. Commit, "
            "then build and verify again",
        )
    verified = report_of(source, report, report_dir)
    publication = Publication(source, verified, repository, source.tags, signer_of(key, keyless))
    if dry_run:
        rehearse(publication)
        return
    done = publisher.publish(publication, lambda text: print(f"gpuyard: {text}", file=sys.stderr, flush=True))
    show(publication, done, time.monotonic() - began)


def rehearse(publication: Publication) -> None:
    """Prints what publishing would do."""
    there = publisher.look(publication)
    print(
        f"would publish {publication.repository.at(publication.source.digest)}, verified by {publication.report.path}"
    )
    for tag, digest in there.items():
        before = "is set already" if digest == publication.source.digest else f"now {digest}" if digest else "new"
        print(f"  {tag}  ({before})")


def show(publication: Publication, done: Done, seconds: float) -> None:
    """Prints what was done."""
    print(publication.repository.at(publication.source.digest))
    if done.nothing:
        print(f"  unchanged: all of it was there, nothing was sent ({seconds:.1f} s)")
        return
    layers = len(publication.source.layers)
    sent = [layer for layer in publication.source.layers if layer["digest"][7:19] in done.blobs]
    print(f"  sent      {len(sent)} of {layers} layers, {sum(int(layer['size']) for layer in sent) / 1e6:.0f} MB")
    print(f"  attached  {', '.join(evidence.NAMES[kind] for kind in done.attached) or 'nothing new'}")
    print(f"  signed    {f'{done.signed} digests' if publication.signer else 'no (give --key or --keyless)'}")
    print(f"  tags      {', '.join(done.tags) or 'unchanged'}")
    print(f"  time      {seconds:.1f} s")
