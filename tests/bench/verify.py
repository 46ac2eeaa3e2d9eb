"""Times the suite against the bare import of torch, and watches its memory; in a container of the image.

``python -m tests.bench.verify`` starts the container; ``--here`` measures the Python that runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WITHOUT = ("train", "compile", "distributed", "shm-dataloader")
"""Groups that the limit of four imports leaves out: training, compilers, several ranks, DataLoader workers."""
GB = 1 << 30
MEMORY_LIMIT = 3 * GB
RUNS = 3
"""Runs, of which the shortest counts: other load makes a run longer, never shorter."""


def seconds(*words: str, runs: int = RUNS) -> float:
    """The shortest time of a command, in seconds."""
    return min(_once(words) for _ in range(runs))


def _once(words: tuple[str, ...]) -> float:
    started = time.monotonic()
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    taken = time.monotonic() - started
    if ended.returncode:
        # What did not pass did not do its work, so its time says nothing.
        sys.exit(f"{' '.join(words)}: exit code {ended.returncode}: {(ended.stderr or ended.stdout)[:500]}")
    return taken


def small_checks(verify: list[str]) -> list[str]:
    """The ids of the profile cpu that the limit counts."""
    listed = subprocess.run([*verify, "--profile", "cpu", "--list"], check=True, capture_output=True, text=True).stdout
    return small(listed)


def small(listed: str) -> list[str]:
    """Those ids in the output of ``verify --list``: required, and in none of the groups left out."""
    rows = [line.split()[:4] for line in listed.partition("\n\n")[0].splitlines()]
    return [row[0] for row in rows if row[3] == "must" and row[0] not in WITHOUT and row[1] not in WITHOUT]


def peak_memory(*words: str) -> int:
    """Peak memory in bytes of the command and its children; shared pages count once."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=quiet, stderr=quiet) as process, _watch(process.pid) as seen:
        process.wait()
    return max(seen, default=0)


@contextmanager
def _watch(root: int) -> Iterator[list[int]]:
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.1):
            seen.append(sum(map(_held, _family(root))))

    watcher = threading.Thread(target=look)
    watcher.start()
    yield seen
    done.set()
    watcher.join()


def _family(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family = [root]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def measure(verify: list[str]) -> int:
    """Prints the table; 1 if a limit is passed."""
    bare = seconds(sys.executable, "-c", "import torch")
    rows = (
        ("import torch", bare, 0.0),
        ("verify --quick", seconds(*verify, "--quick"), 0.5),
        ("cpu without training", seconds(*verify, "--only", ",".join(small_checks(verify))), 4 * bare),
        ("verify --profile train", seconds(*verify, "--profile", "train", runs=1), 60.0),
        ("verify --profile cpu", seconds(*verify, "--profile", "cpu", runs=1), 90.0),
    )
    for name, taken, limit in rows:
        print(f"{name:24} {taken:6.2f} s" + (f"   (limit {limit:.2f} s)" if limit else ""), flush=True)
    held = peak_memory(*verify, "--profile", "cpu")
    print(f"{'peak memory, cpu':24} {held / GB:6.2f} GB  (limit {MEMORY_LIMIT / GB:.2f} GB)", flush=True)
    return int(any(limit and taken > limit for _, taken, limit in rows) or not 0 < held < MEMORY_LIMIT)


def in_container() -> int:
    """The same in a container of the default image, with the recommended shared memory."""
    # Not at the top: --here runs in the container, where there is no gpuyard.
    from gpuyard.catalogue import table
    from gpuyard.catalogue.product import find_product
    from gpuyard.image import build

    wanted = find_product(table.load(), None)
    build.ensure(wanted)
    mount = f"{Path(__file__).resolve()}:/tmp/bench_verify.py:ro"
    words = ["docker", "run", "--rm", "--shm-size", "1g", "--volume", mount, wanted.tag]
    return subprocess.run([*words, "python", "/tmp/bench_verify.py", "--here"], check=False).returncode


def main() -> int:
    """Exit code 1 if a limit is passed."""
    if sys.argv[1:] != ["--here"]:
        return in_container()
    installed = Path("/opt/gpuyard").is_dir() and not os.environ.get("PYTHONPATH")
    return measure(["verify"] if installed else [sys.executable, "-m", "verify"])


if __name__ == "__main__":
    sys.exit(main())
