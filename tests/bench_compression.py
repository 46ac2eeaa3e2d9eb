"""`make bench-compression`: what zstd costs and saves against BuildKit's default, in one run.

Exports the same layer, torch's largest library and cuBLAS out of the built image, once per
compression. Figures are seconds and bytes of the export, and their ratios to the default (gzip).
"""

from __future__ import annotations

import subprocess
import time

from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard import bake, build, catalogue

WAYS = {
    "default (gzip)": "compression=gzip",
    "zstd, level 3": "compression=zstd,compression-level=3",
    "ours": bake.COMPRESSION,
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
    product = build.product(catalogue.load(), None)
    text = DOCKERFILE.format(image=build.find(product).tags[0], python=product.python)
    timed = {name: export(text, options) for name, options in WAYS.items()}
    seconds, size = timed["default (gzip)"]
    table = Table("compression", "seconds", "of the default", "size", "of the default", box=box.SIMPLE_HEAD)
    for name, (took, length) in timed.items():
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
        assert process.stdin and process.stdout
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
