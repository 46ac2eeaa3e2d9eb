"""Examples as processes: started as users start them, watched, signalled, and looked into."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'images' / 'workbench'}:{ROOT}", "OMP_NUM_THREADS": "1"}
NONE: Mapping[str, str] = MappingProxyType({})
TORCHRUN = ("torch.distributed.run", "--standalone")


@contextlib.contextmanager
def started(module: str, *words: object, variables: Mapping[str, str] = NONE) -> Iterator[subprocess.Popen[str]]:
    """A module as a process with its errors on standard output; gone at the end with all it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**ENVIRONMENT, **variables},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ended(module: str, *words: object, timeout: float = 120, variables: Mapping[str, str] = NONE) -> tuple[int, str]:
    """The exit code and all output of a module that runs to its end."""
    with started(module, *words, variables=variables) as process:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output


def until(holds: Callable[[], object], seconds: float = 90) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)


def losses(folder: Path) -> list[float]:
    """The loss of each step of a finished run."""
    found: list[float] = trace(folder)["losses"]
    return found


def trace(folder: Path) -> dict[str, Any]:
    """The whole course of a finished run."""
    found: dict[str, Any] = json.loads((folder / "trace.json").read_text())
    return found


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
