"""The layer builder's part of `make bench-build`: seconds of every step, compressed size, memory, bytes written."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuyard import paths
from gpuyard.catalogue.product import Product
from gpuyard.commands.building.reproduce_ import planned
from gpuyard.engine import daemon
from gpuyard.image import assemble, base, build
from gpuyard.image.assemble import Options
from gpuyard.image.workers import pool
from gpuyard.layers import cached
from gpuyard.layers.make import wheels_layer
from gpuyard.layers.model import Target
from gpuyard.layers.plan import Group, groups
from gpuyard.packages.fetcher import Fetcher, fetch_all, requirements
from gpuyard.packages.locked import read
from gpuyard.store.store import Store
from tests.bench.report import Step

PLAIN = Options()
SMALL = "six"
"""The package whose change is simulated: its layer is made again."""

FIRST_ANSWER = """
import subprocess, time, urllib.request
lab = subprocess.Popen(["jupyter", "lab", "--no-browser", "--port=8899", "--IdentityProvider.token=bench"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while lab.poll() is None:
    try:
        urllib.request.urlopen("http://127.0.0.1:8899/api").read()
        break
    except OSError:
        time.sleep(0.05)
else:
    raise SystemExit("JupyterLab ended")
lab.kill()
"""


@dataclass(frozen=True)
class Measured:
    """All steps by a short name, and an upper bound of the builder's memory in bytes."""

    steps: dict[str, Step]
    memory: int


def measure(product: Product) -> Measured:
    """Runs every step on a temporary store."""
    steps: dict[str, Step] = {}
    with scratch() as folder:
        store = Store(folder / "store")
        cold = Options(no_cache=True)

        def step(short: str, name: str, action: Callable[[], object]) -> None:
            steps[short] = timed(f"layers: {name}", action)

        fetcher = Fetcher(Store(folder / "download"), product.python)
        step("download", "download alone", lambda: fetch_all(fetcher, requirements(product)))
        shutil.rmtree(folder / "download")
        step("cold", "cold to pushable layout", lambda: layout(product, store, folder, cold))
        shutil.rmtree(store.folder)
        forget_builds()
        step("runnable", "cold to runnable image", lambda: build.from_layers(product, cold, store))
        forget_layers(store)
        step("filled", "filled wheel store to pushable layout", lambda: layout(product, store, folder))
        forget_layers(store)
        step("single", "the same with one process", lambda: layout(product, store, folder, Options(workers=1)))
        wanted, target = planned(product, store).values(), assemble.target(product)
        step("packing", "packing alone: no base, no byte code", lambda: pack(wanted, target, folder))
        step("warm", "warm, nothing changed", lambda: build.from_layers(product, Options(), store))
        steps["edit"] = often("layers: after an edit in entrypoints/", lambda: edit(product, store))
        change_one(product, store)
        step("wheel", "after a change of one small wheel", lambda: build.from_layers(product, Options(), store))
    return Measured(steps, memory())


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder on the same disk as the checkout."""
    paths.BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.BUILD) as folder:
        yield Path(folder)


def timed(name: str, action: Callable[[], object]) -> Step:
    """Runs it."""
    print(f"== {name}", flush=True)
    written, started = sectors(), time.monotonic()
    action()
    subprocess.run(["sync"], check=True)
    return Step(name, time.monotonic() - started, (sectors() - written) * 512)


def often(name: str, action: Callable[[], object]) -> Step:
    """The median of three runs; the first one also warms the cache."""
    return sorted((timed(name, action) for _ in range(3)), key=lambda step: step.seconds)[1]


def layout(product: Product, store: Store, folder: Path, options: Options = PLAIN) -> None:
    """Writes the image as an OCI layout into a new folder."""
    shutil.rmtree(folder / "layout", ignore_errors=True)
    build.to_layout(product, options, folder / "layout", store)


def pack(wanted: Iterable[Group], target: Target, folder: Path) -> None:
    """Reads, unpacks, hashes and compresses every wheel as for its layer: the least that a build must do."""
    with pool() as executor:
        began = [
            executor.submit(wheels_layer, group.wheels, target, None, folder / f"packed-{number}")
            for number, group in enumerate(wanted)
        ]
        for done in began:
            done.result()
    for file in folder.glob("packed-*"):
        file.unlink()


def forget_builds() -> None:
    """Removes BuildKit's caches."""
    subprocess.run(["docker", "buildx", "prune", "--all", "--force"], check=True, stdout=subprocess.DEVNULL)


def forget_layers(store: Store) -> None:
    """Leaves only wheels and the base in the store."""
    kept = {layer["digest"] for path in (store.folder / "bases").iterdir() for layer in base_layers(store, path)}
    shutil.rmtree(store.folder / "layers")
    for blob in (store.folder / "blobs").iterdir():
        if f"sha256:{blob.name}" not in kept:
            blob.unlink()


def base_layers(store: Store, path: Path) -> list[dict[str, str]]:
    """The layers of a base's record."""
    record = store.record("bases", path.stem)
    return list(record["layers"]) if record else []


def change_one(product: Product, store: Store) -> None:
    """Removes the record of the small wheel's layer, as a changed wheel would."""
    below = base.ensure(product, store, "auto", offline=True)
    fetcher = Fetcher(store, product.python, offline=True)
    wheels = [fetcher.sure(locked) for locked in read(product.locks.path("workbench"))]
    group = next(group for group in groups(wheels) if any(wheel.name == SMALL for wheel in group.wheels))
    cached.forget(store, cached.wheels_key(group, assemble.target(product), below.python))


def edit(product: Product, store: Store) -> None:
    """A build with one more file in this checkout's entrypoints/, different each time."""
    file = paths.ROOT / "entrypoints" / "bench-edit"
    file.write_text(str(time.time()))
    try:
        build.from_layers(product, Options(), store)
    finally:
        file.unlink()


def sectors() -> int:
    """Sectors written to all real disks since the machine started."""
    rows = (line.split() for line in Path("/proc/diskstats").read_text().splitlines())
    return sum(int(row[9]) for row in rows if (Path("/sys/block") / row[2] / "device").exists())


def memory() -> int:
    """An upper bound of the builder's memory: its own peak, plus the largest worker's for every processor."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (own + worker * (os.cpu_count() or 1)) * 1024


def seconds_in(image: str, *command: str, **environment: str) -> float:
    """Seconds of a command in a new container, without the container's start; the best of three."""
    client, best = daemon.client(), float("inf")
    container = client.containers.run(image, ["sleep", "600"], detach=True, environment=environment, entrypoint="")
    try:
        for _ in range(3):
            started = time.monotonic()
            code, out = container.exec_run(list(command))
            assert code == 0, out
            best = min(best, time.monotonic() - started)
    finally:
        container.remove(force=True)
    return best


def jupyter(image: str) -> float:
    """Seconds from the start of a bare JupyterLab to its first answer, the best of three."""
    return seconds_in(image, "python", "-c", FIRST_ANSWER)


def import_torch(image: str) -> tuple[float, float]:
    """Seconds of `import torch` with the image's byte code, and without any."""
    program = ("python", "-c", "import torch")
    return seconds_in(image, *program), seconds_in(
        image, *program, PYTHONPYCACHEPREFIX="/tmp/none", PYTHONDONTWRITEBYTECODE="1"
    )
