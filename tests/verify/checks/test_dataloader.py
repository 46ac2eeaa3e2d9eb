"""A full /dev/shm is recognised by whatever text it leaves behind, and met for real where we may mount one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.suite import NO_CLAIMS
from verify.checks.compute.dataloader import TOTAL_MIB, evaluate, probe
from verify.model import Facts, Owner, Status

ROOT = Path(__file__).parents[3]
SMALL_SHM = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
PROBE = "import json; from verify.checks.compute.dataloader import probe; print(json.dumps(dict(probe())))"

FULL: list[Facts] = [
    {"error": "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: Success (0)"},
    {"error": "RuntimeError: Caught RuntimeError\nunable to write to file </torch_1>: No space left on device (28)"},
    {"error": "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible …"},
    {"crash": "SIGBUS"},
    {"shm_mib": 64, "error": "RuntimeError: DataLoader worker (pid(s) 9) exited unexpectedly"},
]


def may_mount() -> bool:
    """Whether this process can give itself a small /dev/shm."""
    command = ["unshare", "-m", "sh", "-c", SMALL_SHM, "sh", "true"]
    return sys.platform == "linux" and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("facts", FULL)
def test_a_full_shm_fails_with_the_flag_to_add(facts: Facts) -> None:
    """By text, by signal, or by its size when torch's text says nothing."""
    verdict = evaluate(facts, NO_CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "--shm-size" in verdict.remedy
    assert "/dev/shm is too small" in verdict.observed


def test_a_crash_is_named_in_what_was_observed() -> None:
    """The runner takes a verdict on a crash only if it tells which."""
    assert "SIGBUS" in evaluate({"crash": "SIGBUS"}, NO_CLAIMS).observed
    assert "SIGSEGV" in evaluate({"crash": "SIGSEGV"}, NO_CLAIMS).observed


def test_workers_that_die_with_room_left_are_another_fault() -> None:
    """More shared memory would not help."""
    verdict = evaluate({"shm_mib": 4096, "error": "RuntimeError: DataLoader worker exited"}, NO_CLAIMS)
    assert verdict.status is Status.FAIL
    assert "too small" not in verdict.observed


@pytest.mark.parametrize("changes", [{"wrong": 1}, {"mib": 4}, {"shared": False}])
def test_wrong_or_missing_data_fails(changes: dict[str, int]) -> None:
    """Also when nothing was raised."""
    facts = {"shm_mib": 1024, "mib": TOTAL_MIB, "wrong": 0, "shared": True, **changes}
    assert evaluate(facts, NO_CLAIMS).status is Status.FAIL


def test_enough_room_passes_with_the_amount() -> None:
    """The real probe, where this machine has the room."""
    pytest.importorskip("torch")
    space = os.statvfs("/dev/shm")
    if space.f_bavail * space.f_frsize < 2 * TOTAL_MIB * 2**20:
        pytest.skip("/dev/shm of this machine is small")
    verdict = evaluate(probe(), NO_CLAIMS)
    assert verdict.status is Status.PASS
    assert f"{TOTAL_MIB} MiB" in verdict.observed


@pytest.mark.skipif(not may_mount(), reason="needs the right to mount in a namespace of its own")
def test_the_real_probe_fails_on_64_mib() -> None:
    """Docker's default size, as in a container started without the flag."""
    pytest.importorskip("torch")
    command = ["unshare", "-m", "sh", "-c", SMALL_SHM, "sh", sys.executable, "-c", PROBE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    verdict = evaluate(json.loads(done.stdout.splitlines()[-1]), NO_CLAIMS)
    assert verdict.status is Status.FAIL
    assert "--shm-size" in verdict.remedy
