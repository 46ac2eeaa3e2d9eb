"""`make bench-publish`: what publishing costs, on a registry of its own on this machine, in one run.

Takes every image that `gpuyard build --builder layers` made from this commit, workbench and runtime of
each line, and publishes one after the other to an empty registry: seconds and bytes of each, the same
again with nothing changed, and the registry's disk. Verification is not timed: the
reports are made here. Writes docs/bench-publish.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from gpuyard import paths
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.image import build
from gpuyard.image.source import Source, from_checkout
from gpuyard.paths import cache_folder
from gpuyard.store.store import Store
from tests.bench.report import Goal, table
from tests.publish import servers, small

DOCS = paths.ROOT / "docs" / "bench-publish.md"
IMAGES = ("workbench", "runtime")


@dataclass(frozen=True)
class Step:
    """One publication: seconds, bytes of the image, bytes sent to the registry, and the registry's size afterwards."""

    name: str
    seconds: float
    size: int
    sent: int
    disk: int

    @property
    def row(self) -> tuple[str, ...]:
        """Its line of the table."""
        return (
            self.name,
            f"{self.seconds:.1f}",
            *(f"{value / 1e9:.2f} GB" for value in (self.size, self.sent, self.disk)),
        )


def main() -> None:
    """Publishes every built image; prints and writes the figures."""
    if build.revision().endswith("-dirty"):
        raise SystemExit("bench-publish: commit first; an image of uncommitted changes is not published")
    made = built(catalogue.load())
    if not made:
        raise SystemExit("bench-publish: no image of this commit; run: gpuyard build --builder layers")
    room = cache_folder()
    with tempfile.TemporaryDirectory(dir=room) as folder, servers.registry(Path(folder) / "registry") as host:
        steps = [publish(product, source, host, Path(folder)) for product, source in made]
        again = publish(*made[0], host, Path(folder), "again, nothing changed: ")
    show(steps, again, goals(made, again))


def built(table: Catalogue) -> list[tuple[Product, Source]]:
    """The images of this commit in the store, the default line first."""
    found = []
    for line in sorted(table.line, key=lambda line: line != table.default_line):
        for image in IMAGES:
            product = find_product(table, line, image)
            try:
                source = from_checkout(product, Store())
            except UserError as error:
                print(f"bench-publish: left out: {error}", file=sys.stderr)
                continue
            found.append((product, source))
    return found


def publish(product: Product, source: Source, host: str, folder: Path, name: str = "") -> Step:
    """Publishes one image with the command line, with a report that is made here."""
    content = small.report(source.digest)
    content["image"] = source.facts.image
    required = [{**entry, "check": name, "group": name} for entry in content["findings"][:1] for name in
                source.facts.image["required"]]  # fmt: skip
    content["findings"] += required
    report = small.write(folder, content, f"{product.line}-{product.image}.json")
    before, began = disk(folder), time.monotonic()
    words = [product.line, "--image", product.image, "--registry", f"{host}/bench", "--report", str(report)]
    subprocess.run([sys.executable, "-m", "gpuyard", "publish", *words], check=True, cwd=paths.ROOT)
    seconds = time.monotonic() - began
    return Step(f"{name}{product.tag}", seconds, source.size, disk(folder) - before, disk(folder))


def disk(folder: Path) -> int:
    """Bytes on the registry's disk."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def goals(made: Sequence[tuple[Product, Source]], again: Step) -> list[Goal]:
    """The figures and the promised limits, for the images that exist."""
    lines = list(dict.fromkeys(product.line for product, _ in made))
    blobs = {(product.line, product.image): layers(source) for product, source in made}
    first = blobs[made[0][0].line, made[0][0].image]
    found = [
        Goal("an unchanged image", again.seconds, 5, " s"),
        Goal("bytes sent for an unchanged image", again.sent / 1e6, 0.0, " MB"),
    ]
    of_one = {**first, **blobs.get((made[0][0].line, "runtime"), {})}
    found.append(Goal("variants of a line / its workbench", sum(of_one.values()) / sum(first.values()), 1.2))
    if len(lines) > 2:
        everything = {blob: size for one in blobs.values() for blob, size in one.items()}
        found.append(Goal(f"{len(lines)} lines / one", sum(everything.values()) / sum(of_one.values()), 2.5))
    return found


def layers(source: Source) -> dict[str, int]:
    """Size by digest."""
    return {str(layer["digest"]): int(layer["size"]) for layer in source.layers}


def show(steps: Sequence[Step], again: Step, found: Sequence[Goal]) -> None:
    """Prints the tables and writes them to docs/."""
    console = Console(width=116, record=True)
    console.print(
        table(("published", "seconds", "image", "sent", "registry's disk"), [step.row for step in (*steps, again)]),
        table(("goal", "measured", "limit", "met"), [goal.row for goal in found]),
        sep="\n",
    )
    DOCS.write_text(
        f"# Publishing, measured\n\nMade by `make bench-publish`, in one run on {os.cpu_count()} processors, to a "
        f"registry on the same machine and disk; without signatures.\n\n{console.export_text()}"
    )
    print(f"written: {DOCS.relative_to(paths.ROOT)}")


if __name__ == "__main__":
    main()
