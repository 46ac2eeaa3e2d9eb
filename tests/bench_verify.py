"""Times the suite against the bare import of torch, on this machine, one after the other."""

from __future__ import annotations

import subprocess
import sys
import time

IMPORT = ["-c", "import torch"]
WITHOUT = ("train", "compile", "distributed", "shm-dataloader")
"""What the limit of four imports does not count: training, compilers, several ranks."""


def seconds(*words: str) -> float:
    """How long this Python takes for the words."""
    started = time.monotonic()
    subprocess.run([sys.executable, *words], check=False, capture_output=True)
    return time.monotonic() - started


def main() -> int:
    """Prints a table; 1 if a limit is passed."""
    from verify.model import Level
    from verify.registry import CHECKS

    small = [c.id for c in CHECKS if c.level in (Level.IMAGE, Level.CONTAINER, Level.CPU) and c.group not in WITHOUT]
    seconds(*IMPORT)
    bare = seconds(*IMPORT)
    rows = (
        ("import torch", bare, 0.0),
        ("verify --quick", seconds("-m", "verify", "--quick"), 0.5),
        ("cpu without training", seconds("-m", "verify", "--only", ",".join(small)), 4 * bare),
        ("verify --profile train", seconds("-m", "verify", "--profile", "train"), 60.0),
        ("verify --profile cpu", seconds("-m", "verify", "--profile", "cpu"), 90.0),
    )
    for name, taken, limit in rows:
        print(f"{name:24} {taken:6.2f} s" + (f"  (limit {limit:.2f} s)" if limit else ""), flush=True)
    return int(any(limit and taken > limit for _, taken, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
