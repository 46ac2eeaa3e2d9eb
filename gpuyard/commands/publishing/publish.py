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
from gpuyard.publish.prepare import Words, report_of, signer_of, source_of
from gpuyard.publish.publisher import Done, Order
from gpuyard.publish.registry import Repository


def publish(
    registry: Annotated[str, typer.Option(help="HOST:PORT/NAME; the catalogue's name if left out.")],
    line: Annotated[str | None, typer.Argument(help="A line of the catalogue; the default one if left out.")] = None,
    image: Annotated[str, typer.Option("--image", help="workbench, runtime or devel.")] = "workbench",
    os: Annotated[str | None, typer.Option(help="An operating system of the catalogue.")] = None,
    layout: Annotated[Path | None, typer.Option(help="An OCI layout (gpuyard build --layout) instead.")] = None,
    report: Annotated[Path | None, typer.Option(help="The report that verifies it.")] = None,
    report_dir: Annotated[Path, typer.Option(help="Where the report is looked for otherwise.")] = Path("reports"),
    key: Annotated[Path | None, typer.Option(help="Sign with this cosign key (COSIGN_PASSWORD).")] = None,
    keyless: Annotated[bool, typer.Option("--keyless", help="Sign with the pipeline's identity.")] = False,
    ca_file: Annotated[Path | None, typer.Option(help="Who signed the registry's certificate.")] = None,
    plain_http: Annotated[bool | None, typer.Option(help="No TLS; loopback addresses need no word.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be set, and change nothing.")] = False,
) -> None:
    """Send a verified image to a registry with its evidence; tags last. Log in with: oras login HOST.

    Only what gpuyard build --builder layers made and gpuyard verify passed, digest for digest. Killed or
    failed anywhere, it is run again and goes on.
    """
    began = time.monotonic()
    catalogue = table.load()
    repository = Repository.parse(registry, catalogue.repository, ca_file, plain_http)
    source = source_of(Words(line, image, os, layout), catalogue)
    if not source.tags.immutable:
        raise UserError(
            f"the image was built from {source.facts.revision or 'outside git'}: no immutable tag can name it. Commit, "
            "then build and verify again"
        )
    verified = report_of(source, report, report_dir)
    order = Order(source, verified, repository, source.tags, signer_of(key, keyless))
    if dry_run:
        rehearse(order)
        return
    done = publisher.publish(order, lambda text: print(f"gpuyard: {text}", file=sys.stderr, flush=True))
    show(order, done, time.monotonic() - began)


def rehearse(order: Order) -> None:
    """Says what publishing would do."""
    there = publisher.look(order)
    print(f"would publish {order.repository.at(order.source.digest)}, verified by {order.report.path}")
    for tag, digest in there.items():
        before = "is set already" if digest == order.source.digest else f"now {digest[:19]}" if digest else "new"
        print(f"  {tag}  ({before})")


def show(order: Order, done: Done, seconds: float) -> None:
    """Prints what was done."""
    print(order.repository.at(order.source.digest))
    if done.nothing:
        print(f"  unchanged: all of it was there, nothing was sent ({seconds:.1f} s)")
        return
    layers = len(order.source.layers)
    sent = [layer for layer in order.source.layers if layer["digest"][7:19] in done.blobs]
    print(f"  sent      {len(sent)} of {layers} layers, {sum(int(layer['size']) for layer in sent) / 1e6:.0f} MB")
    print(f"  attached  {', '.join(evidence.NAMES[kind] for kind in done.attached) or 'nothing new'}")
    print(f"  signed    {f'{done.signed} digests' if order.signer else 'no (give --key or --keyless)'}")
    print(f"  tags      {', '.join(done.tags) or 'as they were'}")
    print(f"  time      {seconds:.1f} s")
