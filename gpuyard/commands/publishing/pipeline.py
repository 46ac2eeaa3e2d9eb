"""`gpuyard pipeline`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpuyard.catalogue import table
from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.paths import cache_folder
from gpuyard.publish import independent, loopback
from gpuyard.publish.registry import Repository, ensure_clients

PROGRAMS = ("oras", "cosign", "skopeo")


@dataclass(frozen=True)
class Way:
    """Where images go, and the options for the registry's certificate and the signature."""

    repository: Repository
    trust: list[str]
    key: list[str]

    def reference(self, product: Product) -> str:
        """What people type to get an image from there."""
        return f"{self.repository}:{tag_of(product)}"


def pipeline(
    registry: Annotated[str, typer.Option(help="HOST:PORT/NAME; the catalogue's name if left out.")],
    lines: Annotated[str, typer.Option(help="Lines, comma-separated, or all; the default one if left out.")] = "",
    images: Annotated[str, typer.Option(help="Images, comma-separated.")] = "workbench,runtime",
    key: Annotated[Path | None, typer.Option(help="Sign with this cosign key (COSIGN_PASSWORD).")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="Who signed the registry's certificate.")] = None,
    plain_http: Annotated[bool | None, typer.Option(help="No TLS; not needed for loopback addresses.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps, and do none of them.")] = False,
) -> None:
    """Build, verify and publish images, one command after the other, as the workflows do; then pull them again.

    A registry on loopback that does not answer is started. With several lines, the engine's copies of a
    line that is done make room for the next.
    """
    catalogue = table.load()
    products = chosen(catalogue, lines, images)
    repository = Repository.parse(registry, catalogue.repository, ca_file, plain_http)
    trust = ["--ca-file", str(ca_file)] if ca_file else []
    trust += [] if plain_http is None else ["--plain-http" if plain_http else "--no-plain-http"]
    way = Way(repository, trust, ["--key", str(key)] if key else [])
    if dry_run:
        for product in products:
            print("\n".join(shlex.join(["gpuyard", *words]) for words in steps(product, way)))
        return
    ensure_clients(PROGRAMS)
    daemon.ensure()
    loopback.ensure(repository)
    before = kept()
    for number, product in enumerate(products):
        walk(product, way)
        last = number == len(products) - 1 or products[number + 1].line != product.line
        if last and len({product.line for product in products}) > 1:
            make_room([one for one in products if one.line == product.line], before)
    print(f"published: {', '.join(map(way.reference, products))}")
    print(f"look at one:  gpuyard inspect {way.reference(products[0])}")


def chosen(catalogue: Catalogue, lines: str, images: str) -> list[Product]:
    """The selected images, line by line. Raises UsageError for one that the catalogue lacks."""
    names = list(catalogue.line) if lines == "all" else lines.split(",") if lines else [catalogue.default_line]
    return [find_product(catalogue, line.strip(), image.strip()) for line in names for image in images.split(",")]


def tag_of(product: Product) -> str:
    """The tag that people type."""
    return product.tag.rpartition(":")[2]


def steps(product: Product, way: Way) -> Iterator[list[str]]:
    """The commands that make and publish an image."""
    which = [product.line, "--image", product.image]
    yield ["build", *which, "--builder", "layers"]
    yield ["verify", *which, "--no-build"]
    yield ["publish", *which, "--registry", str(way.repository), *way.trust, *way.key]
    yield ["inspect", way.reference(product), *way.trust]


def walk(product: Product, way: Way) -> None:
    """Takes one image from its lock to the registry, pulls it again and verifies it. Raises UserError."""
    for words in steps(product, way):
        call(words)
    digest = independent.refuse_different(way.repository, tag_of(product), cache_folder(), say)
    say(f"{way.reference(product)} is {digest}; the suite runs in it, by digest")
    call(["verify", "--image", way.repository.at(digest), "--gpus", "none"])


def call(words: list[str]) -> None:
    """One command of gpuyard, its output as it comes. Raises UserError with its exit code if it fails."""
    say("$ gpuyard " + shlex.join(words))
    code = subprocess.run([sys.executable, "-m", "gpuyard", *words], check=False, stdin=subprocess.DEVNULL).returncode
    if code:
        raise UserError(
            "pipeline-step-failed", f"the pipeline ends here: gpuyard {shlex.join(words)} ended with {code}", code
        )


def say(text: str) -> None:
    """Prints on stderr, between the commands' own output."""
    print(f"gpuyard: {text}", file=sys.stderr, flush=True)


def kept() -> set[str]:
    """The images that the engine has before anything is done."""
    return {str(image.id) for image in daemon.client().images.list()}


def make_room(products: list[Product], before: set[str]) -> None:
    """Removes the engine's copies of these images, but for those that were there before: the registry has them."""
    client = daemon.client()
    for product in products:
        for image in client.images.list(name=product.catalogue.repository):
            if product.tag in image.tags and str(image.id) not in before:
                say(f"making room: {product.tag} leaves the engine, the registry has it")
                client.images.remove(str(image.id), force=True)
