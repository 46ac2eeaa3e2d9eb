"""`make bench-build`: how long builds take here, against the plain way, in one run.

Measures the default line's workbench: cold (no layer cache, no wheel cache), warm with nothing
changed, after an edit in entrypoints/, and a plain Dockerfile that does what people do today: the
same base, the same locked packages by pip, BuildKit's default exporter. Ratios are of one run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard import bake, base, build, catalogue, engine, paths, tools
from gpuyard.claims import Product

PLAIN = """\
FROM base
USER root
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip
USER trainer
RUN --mount=type=bind,from=locks,target=/locks --mount=type=secret,id=ca,target=/run/secrets/ca,uid=1000 \\
    python3 -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --require-hashes \\
    --cert /run/secrets/ca -r /locks/cuda.txt -r /locks/torch.txt -r /locks/workbench.txt
"""


def main() -> None:
    """Runs every measurement and prints the table, with ratios to the plain way."""
    engine.ensure()
    product = build.product(catalogue.load(), None)
    file = bake.write(product, inputs(product))
    timed: dict[str, tuple[float, int]] = {}
    timed["plain Dockerfile: pip, default exporter (gzip)"] = measure(lambda: plain(file), "gpuyard-bench:plain")
    timed["cold: nothing cached"] = measure(lambda: ours(file, cold=True), "gpuyard-bench:ours")
    timed["warm: nothing changed"] = measure(lambda: ours(file), "gpuyard-bench:ours")
    (file.parent / "entrypoints" / "edited").write_text(str(time.time()))
    timed["after an edit in entrypoints/"] = measure(lambda: ours(file), "gpuyard-bench:ours")
    for tag in ("plain", "ours"):
        subprocess.run(["docker", "rmi", "-f", f"gpuyard-bench:{tag}"], check=False, capture_output=True)
    shutil.rmtree(file.parent)
    show(timed)


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
    definition["target"]["workbench"]["tags"] = ["gpuyard-bench:ours"]
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
        "tags": ["gpuyard-bench:plain"],
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


def measure(action: Callable[[], None], tag: str) -> tuple[float, int]:
    """Seconds of the action, and the content size in bytes of the image it left."""
    started = time.monotonic()
    action()
    return time.monotonic() - started, int(engine.client().images.get(tag).attrs["Size"])


def show(timed: dict[str, tuple[float, int]]) -> None:
    """The table: seconds, the ratio to the plain way, and compressed size."""
    reference = next(iter(timed.values()))[0]
    table = Table("build", "seconds", "of the plain way", "compressed", box=box.SIMPLE_HEAD)
    for name, (seconds, size) in timed.items():
        table.add_row(name, f"{seconds:.0f}", f"{seconds / reference:.2f}", f"{size / 1e9:.2f} GB")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
