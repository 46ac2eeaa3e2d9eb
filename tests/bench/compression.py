"""`make bench-compression`: what zstd costs and saves against BuildKit's default, in one run.

First BuildKit's: exports the same layer, torch's largest library and cuBLAS out of the built image,
once per compression. Then the layer builder's: the start of the largest file of each wheel that has a
layer of its own, packed by each candidate. Figures are seconds and bytes, and their ratios to gzip.
"""

from __future__ import annotations

import subprocess
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import zstandard
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import Product, find_product
from gpuyard.image import build, buildkit
from gpuyard.layers.model import Packing
from gpuyard.layers.plan import is_big
from gpuyard.layers.tarball import parameters
from gpuyard.packages.fetcher import Fetcher, fetch_all, requirements
from gpuyard.store.store import Store

SAMPLE = 60_000_000
"""Bytes of each file: more than any window, so that what repeats over megabytes counts."""
WAYS = {
    "default (gzip)": "compression=gzip",
    "zstd, level 3": "compression=zstd,compression-level=3",
    "ours": buildkit.COMPRESSION,
}
DOCKERFILE = """\
FROM {image} AS image
FROM scratch
ARG RUN
COPY --from=image /opt/venv/lib/python{python}/site-packages/nvidia/cublas /$RUN/
COPY --from=image /opt/venv/lib/python{python}/site-packages/torch/lib/libtorch_cuda.so /$RUN/
"""


def main() -> None:
    """Measures each way on the default line's image and prints the table."""
    product = find_product(catalogue.load(), None)
    show("BuildKit's export", exports(product))
    show("the layer builder, one process", packings(product))


def exports(product: Product) -> dict[str, tuple[float, int]]:
    """Seconds and bytes of BuildKit's export by each compression."""
    text = DOCKERFILE.format(image=build.find(product).tags[0], python=product.python)
    return {name: export(text, options) for name, options in WAYS.items()}


def packings(product: Product) -> dict[str, tuple[float, int]]:
    """Seconds and bytes of packing the samples by each candidate; gzip as BuildKit does it, at level 6."""
    wheels = fetch_all(Fetcher(Store(), product.python), requirements(product))
    samples = [sample(wheel.path) for wheel in wheels if is_big(wheel)]
    levels = {f"zstd, level {level}": zstandard.ZstdCompressor(level) for level in (1, 2, 3, 7)}
    packers = {**levels, "ours": zstandard.ZstdCompressor(compression_params=parameters(Packing()))}
    return {
        "gzip, level 6": timed(lambda data: zlib.compress(data, 6), samples),
        **{name: timed(packer.compress, samples) for name, packer in packers.items()},
    }


def sample(wheel: Path) -> bytes:
    """The start of a wheel's largest file."""
    with zipfile.ZipFile(wheel) as archive:
        largest = max(archive.infolist(), key=lambda info: info.file_size)
        with archive.open(largest) as file:
            return file.read(SAMPLE)


def timed(pack: Callable[[bytes], bytes], samples: list[bytes]) -> tuple[float, int]:
    """Processor seconds and bytes of packing all samples."""
    started = time.process_time()
    size = sum(len(pack(data)) for data in samples)
    return time.process_time() - started, size


def show(title: str, measured: dict[str, tuple[float, int]]) -> None:
    """A table with the ratios to the first."""
    seconds, size = next(iter(measured.values()))
    table = Table("compression", "seconds", "of gzip", "size", "of gzip", title=title, box=box.SIMPLE_HEAD)
    for name, (took, length) in measured.items():
        table.add_row(name, f"{took:.0f}", f"{took / seconds:.2f}", f"{length / 1e6:.0f} MB", f"{length / size:.2f}")
    Console(width=100).print(table)


def export(dockerfile: str, options: str) -> tuple[float, int]:
    """Seconds and bytes of one export, without the time of making the layer itself."""
    stamp = f"bench-{time.time_ns()}"
    command = ["docker", "buildx", "build", "--quiet", "--provenance=false", "--build-arg", f"RUN={stamp}", "-"]
    made = [*command, "--output", "type=cacheonly"]
    subprocess.run(made, input=dockerfile.encode(), check=True, capture_output=True)
    started = time.monotonic()
    written = [*command, "--output", f"type=oci,dest=-,{options}"]
    with subprocess.Popen(written, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(dockerfile.encode())
        process.stdin.close()
        length = 0
        while chunk := process.stdout.read(1 << 20):
            length += len(chunk)
    if process.returncode:
        raise SystemExit(f"the export failed: {' '.join(written)}")
    return time.monotonic() - started, length


if __name__ == "__main__":
    main()
