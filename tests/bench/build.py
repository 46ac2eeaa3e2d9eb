"""`make bench-build`: how long builds take here, against the plain way, in one run.

Measures the default line's workbench three ways, each image removed before the next: a plain
Dockerfile that does what people do today (the same base, the same locked packages by pip,
BuildKit's default exporter), our Dockerfiles by BuildKit, and our layers straight from wheels.
Cold means without any cache of an earlier build: the base, the wheels and the layers are made again.
BuildKit's caches on this machine are gone afterwards.
Writes docs/bench-build.md with its plot. Ratios are of one run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from gpuyard import paths
from gpuyard.catalogue import table
from gpuyard.catalogue.product import Product, find_product
from gpuyard.engine import daemon
from gpuyard.image import build, buildkit
from gpuyard.image import origin as origins
from gpuyard.packages import uv
from tests.bench import layers, report
from tests.bench.layers import Measured, often, timed
from tests.bench.report import Facts, Goal, Step

PLAIN = """\
FROM base
USER root
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip
USER trainer
RUN --mount=type=bind,from=locks,target=/locks --mount=type=secret,id=ca,target=/run/secrets/ca,uid=1000 \\
    /usr/bin/python3 -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --require-hashes \\
    --cert /run/secrets/ca -r /locks/cuda.txt -r /locks/torch.txt -r /locks/workbench.txt
"""


WAYS = {"plain": "gpuyard-bench:plain", "dockerfile": "gpuyard-bench:ours", "layers": "gpuyard-bench:layers"}

NOTES = (
    "Peak memory is an upper bound: the builder's own and, for every processor, its largest worker's.",
    "After an edit: the middle one of three edits in a row.",
    "Jupyter's first answer is a bare `jupyter lab` in a new container, from its start to HTTP 200.",
)


class Benched(Product):
    """The product under a tag of the benchmark's own."""

    @property
    def tag(self) -> str:
        return WAYS["layers"]

    @property
    def full_tag(self) -> str:
        return WAYS["layers"] + "-full"


def main() -> None:
    """Runs every measurement; prints and writes the tables and the plot."""
    daemon.ensure()
    product = find_product(table.load(), None)
    file = buildkit.write(product, inputs(product))
    facts: dict[str, Facts] = {}
    steps = [timed("plain: cold (pip in a Dockerfile, default exporter)", lambda: plain(file))]
    facts["plain"] = look("plain")
    steps.append(timed("dockerfile: cold", lambda: ours(file, cold=True)))
    steps.append(timed("dockerfile: warm, nothing changed", lambda: ours(file)))
    steps.append(often("dockerfile: after an edit in entrypoints/", lambda: edited(file)))
    facts["dockerfile"] = look("dockerfile")
    measured = layers.measure(Benched(product.catalogue, product.line, product.image, product.os))
    facts["layers"] = look("layers")
    shutil.rmtree(file.parent)
    notes = [*NOTES, floor(measured)]
    report.write([*steps, *measured.steps.values()], facts, goals(steps[0], measured, facts), notes)


def floor(measured: Measured) -> str:
    """What limits a cold build on this machine, from this run's figures."""
    packing, download = (measured.steps[name].seconds for name in ("packing", "download"))
    return (
        f"Packing the wheels alone, with neither base nor byte code, takes {packing / download:.2f} of the download's "
        "time here: with fewer processors than that asks for, a cold build waits for them and not for the network."
    )


def goals(reference: Step, measured: Measured, facts: dict[str, Facts]) -> list[Goal]:
    """The project's targets for its layer builder; ratios where the seconds depend on the machine."""
    took = {name: step.seconds for name, step in measured.steps.items()}
    ours = facts["layers"]
    return [
        Goal("cold to runnable / plain", took["runnable"] / reference.seconds, 0.45),
        Goal("filled wheel store to pushable / plain", took["filled"] / reference.seconds, 0.25),
        Goal("cold to pushable / download alone", took["cold"] / took["download"], 1.5),
        Goal("after an edit in entrypoints/", took["edit"], 3, " s"),
        Goal("after a change of one small wheel", took["wheel"], 10, " s"),
        Goal("compressed / gzip", ours.compressed / facts["plain"].compressed, 0.87),
        Goal("peak memory of the builder", measured.memory / 1e9, 1.5, " GB"),
        Goal("import torch / without byte code", ours.import_torch / ours.import_without_bytecode, 0.7),
        Goal("two processes / one", took["filled"] / took["single"], 0.75),
    ]


def look(way: str) -> Facts:
    """Measures the image that was just built, then removes it and BuildKit's caches to make room."""
    tag = WAYS[way]
    size = int(daemon.client().images.get(tag).attrs["Size"])
    found = Facts(size, *layers.import_torch(tag), layers.jupyter(tag))
    subprocess.run(["docker", "rmi", "-f", tag, f"{tag}-full"], check=False, capture_output=True)
    subprocess.run(["docker", "image", "prune", "--force", "--filter", "label=io.gpuyard.line"], check=True)
    layers.forget_builds()
    return found


def inputs(product: Product) -> buildkit.Inputs:
    """The inputs that `gpuyard build` would use on this machine."""
    system = product.catalogue.os[product.os]
    origin = origins.choose(product.os, system, "auto")
    rootfs = origins.rootfs(system) if origin == "bootstrap" else None
    program = uv.uv_for_images(product.catalogue.uv, product.python)
    return buildkit.Inputs(origin, rootfs, program, build.secrets(), "bench")


def ours(file: Path, cold: bool = False) -> None:
    """Our Dockerfiles under the benchmark's tag; cold means no layer cache and empty cache mounts."""
    definition = json.loads(file.read_text())
    for name, target in definition["target"].items():
        if name != "rootfs":
            target["args"]["BUILDKIT_CACHE_MOUNT_NS"] = f"bench-{os.getpid()}"
    definition["target"]["workbench"]["tags"] = [WAYS["dockerfile"]]
    run_bake(definition, "workbench", cold)


def edited(file: Path) -> None:
    """The same with one more staged file, different each time."""
    (file.parent / "entrypoints" / "edited").write_text(str(time.time()))
    ours(file)


def plain(file: Path) -> None:
    """The usual Dockerfile, on the same base image and with the same packages."""
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
    }
    run_bake({"target": targets}, "plain", cold=True)


def run_bake(definition: dict[str, object], target: str, cold: bool) -> None:
    """Runs `docker buildx bake` with a definition."""
    file = paths.BUILD / "bench-bake.json"
    file.write_text(json.dumps(definition))
    command = ["docker", "buildx", "bake", "-f", str(file), target, *(["--no-cache"] if cold else [])]
    env = {**os.environ, "BUILDX_NO_DEFAULT_LOAD": "1"}
    subprocess.run(command, check=True, env=env, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
