"""`make bench-build`: how long builds take here, against the plain way, in one run.

Measures the default line's workbench three ways, each image removed before the next: a plain
Dockerfile that does what people do today (the same base, the same locked packages by pip,
BuildKit's default exporter), our Dockerfiles by BuildKit, and our layers straight from wheels.
Writes docs/bench-build.md. Ratios are of one run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard import bake, base, build, catalogue, engine, paths, tools
from gpuyard.claims import Product
from tests import bench_layers
from tests.bench_layers import Step, timed

PLAIN = """\
FROM base
USER root
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip
USER trainer
RUN --mount=type=bind,from=locks,target=/locks --mount=type=secret,id=ca,target=/run/secrets/ca,uid=1000 \\
    python3 -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --require-hashes \\
    --cert /run/secrets/ca -r /locks/cuda.txt -r /locks/torch.txt -r /locks/workbench.txt
"""


DOCS = paths.ROOT / "docs" / "bench-build.md"
WAYS = {"plain": "gpuyard-bench:plain", "dockerfile": "gpuyard-bench:ours", "layers": "gpuyard-bench:layers"}


class Benched(Product):
    """The product under a tag of the benchmark's own."""

    @property
    def tag(self) -> str:
        return WAYS["layers"]

    @property
    def full_tag(self) -> str:
        return WAYS["layers"] + "-full"


def main() -> None:
    """Runs every measurement, prints the table, and writes it with its plot."""
    engine.ensure()
    product = build.product(catalogue.load(), None)
    file = bake.write(product, inputs(product))
    steps: list[Step] = []
    notes: list[str] = []
    steps.append(timed("plain: pip in a Dockerfile, default exporter (gzip)", lambda: plain(file)))
    notes.append(facts("plain"))
    steps.append(timed("dockerfile: cold, nothing cached", lambda: ours(file, cold=True)))
    steps.append(timed("dockerfile: warm, nothing changed", lambda: ours(file)))
    (file.parent / "entrypoints" / "edited").write_text(str(time.time()))
    steps.append(timed("dockerfile: after an edit in entrypoints/", lambda: ours(file)))
    notes.append(facts("dockerfile"))
    measured = bench_layers.measure(Benched(product.catalogue, product.line, product.image, product.os))
    notes.append(facts("layers"))
    notes.append(f"peak memory of the layer builder, all its processes: at most {measured.memory / 1e6:.0f} MB")
    shutil.rmtree(file.parent)
    show([*steps, *measured.steps], notes)


def facts(way: str) -> str:
    """Size and start of an image that was just built; then it is removed, so that the next has its place."""
    tag = WAYS[way]
    size = int(engine.client().images.get(tag).attrs["Size"])
    compiled, plain = bench_layers.import_torch(tag)
    subprocess.run(["docker", "rmi", "-f", tag], check=False, capture_output=True)
    return f"{way}: {size / 1e9:.2f} GB in the engine; import torch {compiled:.1f} s, without byte code {plain:.1f} s"


def inputs(product: Product) -> bake.Inputs:
    """What `gpuyard build` would take from this machine."""
    system = product.catalogue.os[product.os]
    origin = base.choose(product.os, system, "auto")
    rootfs = base.rootfs(system) if origin == "bootstrap" else None
    return bake.Inputs(origin, rootfs, tools.uv_for_images(product.catalogue.uv), build.secrets(), "bench")


def ours(file: Path, cold: bool = False) -> None:
    """Our build under a tag of its own; cold means no layer cache and empty cache mounts."""
    definition = json.loads(file.read_text())
    for name, target in definition["target"].items():
        if name != "rootfs":
            target["args"]["BUILDKIT_CACHE_MOUNT_NS"] = f"bench-{os.getpid()}"
    definition["target"]["workbench"]["tags"] = [WAYS["dockerfile"]]
    run_bake(definition, "workbench", cold)


def plain(file: Path) -> None:
    """What people do today, on the same base image and with the same packages."""
    definition = json.loads(file.read_text())
    targets = {name: definition["target"][name] for name in ("rootfs", "base") if name in definition["target"]}
    folder = file.parent / "plain"
    folder.mkdir(exist_ok=True)
    targets["plain"] = {
        "context": str(folder),
        "dockerfile-inline": PLAIN,
        "contexts": {"base": "target:base", "locks": str(file.parent / "locks")},
        "secret": targets["base"]["secret"],
        "tags": [WAYS["plain"]],
        "output": ["type=image"],
        "no-cache": True,
    }
    run_bake({"target": targets}, "plain", cold=False)


def run_bake(definition: dict[str, object], target: str, cold: bool) -> None:
    """Runs one bake of a definition given as data."""
    file = paths.BUILD / "bench-bake.json"
    file.write_text(json.dumps(definition))
    command = ["docker", "buildx", "bake", "-f", str(file), target, *(["--no-cache"] if cold else [])]
    env = {**os.environ, "BUILDX_NO_DEFAULT_LOAD": "1"}
    subprocess.run(command, check=True, env=env, stdin=subprocess.DEVNULL)


def show(steps: list[Step], notes: list[str]) -> None:
    """The table: seconds, the ratio to the plain way, bytes written; on the terminal and in docs/."""
    reference = steps[0].seconds
    table = Table("build", "seconds", "of the plain way", "written", box=box.MARKDOWN)
    for step in steps:
        ratio = f"{step.seconds / reference:.2f}"
        table.add_row(step.name, f"{step.seconds:.0f}", ratio, f"{step.written / 1e9:.1f} GB")
    console = Console(width=110, record=True)
    console.print(table, *notes, sep="\n")
    head = "# Building, measured\n\nMade by `make bench-build`, in one run on "
    bars = "\n".join(f"{'█' * round(40 * step.seconds / reference):40} {step.name}" for step in steps)
    text = f"{head}{os.cpu_count()} processors.\n{console.export_text()}\n```text\n{bars}\n```\n"
    DOCS.parent.mkdir(exist_ok=True)
    DOCS.write_text(text)


if __name__ == "__main__":
    main()
