"""What more processes bring: throughput of one training by one process, by two threads, and by two processes.

Usage: make bench-ddp
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import find_product

SIZES = {
    "compute-bound": "--length 64 --d-model 128 --layers 3 --heads 4 --batch-size 32 --epochs 2",
    "small": "--length 8 --d-model 32 --layers 1 --batch-size 32 --epochs 15",
}
WAYS = {
    "one process": "python -m examples.transformer",
    "one process, two threads": "python -m examples.transformer --threads 2",
    "two processes": "torchrun --standalone --nproc-per-node 2 -m examples.transformer",
}
ROUNDS = 3


def throughput(image: str, words: Sequence[str]) -> float:
    """Sequences a second, as the example says."""
    command = ["docker", "run", "--rm", "--shm-size=1g", image, *words, "--patience", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    found = re.search(r"^(\d+) sequences/s", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return float(found[1])


def main() -> None:
    """Prints the best of some rounds of each."""
    table = catalogue.load()
    image = find_product(table, None).tag
    for size, options in SIZES.items():
        commands = {way: [*words.split(), *options.split()] for way, words in WAYS.items()}
        # In turn, so that a busy minute of the machine slows all of them.
        rounds = [{way: throughput(image, words) for way, words in commands.items()} for _ in range(ROUNDS)]
        best = {way: max(found[way] for found in rounds) for way in WAYS}
        for way, speed in best.items():
            print(f"{size:<14} {way:<25} {speed:>7.0f} sequences/s {speed / best['one process']:>5.2f}x", flush=True)


if __name__ == "__main__":
    main()
