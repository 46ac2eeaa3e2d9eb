"""How the container was started: each check, right and wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.verify.checks.test_image import is_failure
from tests.verify.suite import CLAIMS
from verify.checks.container import limits, shm, surroundings
from verify.model import Status

P = Status.PASS
GB = 1 << 30
SHM: dict[str, Any] = {"exists": True, "total": GB, "free": GB, "trial": 128 << 20, "allocated": "ok"}


def test_one_gigabyte_of_shared_memory_is_enough() -> None:
    """The measured size is shown on a pass, too."""
    verdict = shm.evaluate_shm(SHM, CLAIMS)
    assert (verdict.status, verdict.observed) == (P, "/dev/shm has 1 GB, 1 GB free")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"total": 64 << 20, "free": 64 << 20}, "64 MB"),
        ({"total": 512 << 20, "free": 512 << 20}, "512 MB"),
        ({"free": 1 << 20}, "1 MB free"),
        ({"allocated": "ENOSPC"}, "ENOSPC"),
        ({"exists": False}, "no /dev/shm"),
    ],
)
def test_shared_memory_that_is_small_or_full_fails(change: dict[str, Any], words: str) -> None:
    """Docker's default, a full one, one that lies about its size and none."""
    assert is_failure(shm.evaluate_shm({**SHM, **change}, CLAIMS), words, "--shm-size")


def test_shared_memory_on_a_disk_fails() -> None:
    """Only tmpfs is memory."""
    assert shm.evaluate_shm_type({"exists": True, "type": "tmpfs"}, CLAIMS).status is P
    assert is_failure(shm.evaluate_shm_type({"exists": True, "type": "ext4"}, CLAIMS), "ext4")


def test_allocation_leaves_nothing_and_names_its_error(tmp_path: Path) -> None:
    """A file without a name is allocated; a folder that does not exist gives the error's name."""
    assert shm.allocate(tmp_path, 4096) == "ok"
    assert list(tmp_path.iterdir()) == []
    assert shm.allocate(tmp_path / "none", 4096) == "ENOENT"


LIMITS: dict[str, Any] = {
    "nofile": 65536,
    "nofile_hard": 65536,
    "memlock": 8 << 20,
    "stack": 8 << 20,
    "infiniband": False,
}


@pytest.mark.parametrize(
    ("evaluate", "change", "flag"),
    [
        (limits.evaluate_nofile, {"nofile": 128}, "--ulimit nofile="),
        (limits.evaluate_memlock, {"infiniband": True}, "--ulimit memlock=-1"),
        (limits.evaluate_stack, {"stack": 1 << 20}, "--ulimit stack="),
    ],
)
def test_a_low_limit_fails_with_its_flag(evaluate: Any, change: dict[str, Any], flag: str) -> None:
    """Each limit has the flag that raises it; memlock matters beside InfiniBand only; -1 means unlimited."""
    assert evaluate(LIMITS, CLAIMS).status is P
    assert is_failure(evaluate({**LIMITS, **change}, CLAIMS), flag)
    unlimited = {**LIMITS, "nofile": -1, "memlock": -1, "stack": -1, "infiniband": True}
    assert "unlimited" in evaluate(unlimited, CLAIMS).observed


def test_little_memory_fails_and_a_quota_is_named() -> None:
    """A quota below the visible CPUs comes with the number of threads to set."""
    good = {"cpus": 1, "affinity": 8, "quota": 1.0, "memory": 8 * GB, "limit": None, "threads": ""}
    verdict = surroundings.evaluate_resources(good, CLAIMS)
    assert verdict.status is P
    assert "OMP_NUM_THREADS=1" in verdict.observed
    assert is_failure(surroundings.evaluate_resources({**good, "memory": GB}, CLAIMS), "--memory")


def test_compilers_are_really_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With compilers it passes; without any on PATH, or with one that fails, the kind is named."""
    assert surroundings.evaluate_compiler(surroundings.probe_compiler(), CLAIMS).status is P
    (tmp_path / "gcc").write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    (tmp_path / "gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    assert os.environ["PATH"] == str(tmp_path)
    assert is_failure(
        surroundings.evaluate_compiler(surroundings.probe_compiler(), CLAIMS), "C: broken", "C++: not found"
    )
