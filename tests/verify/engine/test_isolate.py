"""Probes in children of their own, from several threads too."""

from __future__ import annotations

import subprocess
import sys

from gpuyard import paths

THREADS = """
import os, time
from concurrent.futures import ThreadPoolExecutor
from verify.engine.isolate import run_forked

within, most = 0, 0
def before():
    global within, most
    within += 1
    most = max(most, within)
    time.sleep(0.05)
def after():
    global within
    within -= 1
os.register_at_fork(before=before, after_in_parent=after)
with ThreadPoolExecutor(4) as pool:
    outcomes = list(pool.map(lambda n: run_forked(lambda: {"n": n}, 30), range(8)))
print(most, [outcome.facts["n"] for outcome in outcomes])
"""


def test_threads_fork_one_after_the_other() -> None:
    """A package that may not be forked twice at once (filelock refuses) never is; each child answers."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS], check=True, capture_output=True, text=True, cwd=paths.ROOT, timeout=60
    )
    assert done.stdout.strip() == f"1 {list(range(8))}"
