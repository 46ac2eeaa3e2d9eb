"""What a control group allows, in both of its versions."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from entrypoints.gpuyard_start.gpu import limits, nvml
from entrypoints.gpuyard_start.jupyter import welcome_notebook


def group(root: Path, files: dict[str, str]) -> Path:
    """A control group's folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def first_version(quota: str) -> dict[str, str]:
    """A quota as the first version of control groups states it."""
    return {"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "100000 100000"}, 1),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "1000 100000"}, 1),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.max": "6400000 100000"}, None),
        ({"cpu.max": "nonsense"}, None),
        (first_version("250000"), 3),
        (first_version("-1"), None),
        ({}, None),
    ],
)
def test_a_quota_is_rounded_up_to_processors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    """And says nothing if it does not limit a machine of eight."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert limits.processors(group(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "1073741824"}, 2**30),
        ({"memory.max": "max"}, None),
        ({"memory/memory.limit_in_bytes": "1073741824"}, 2**30),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, None),
        ({}, None),
    ],
)
def test_a_limit_of_memory_is_read_in_both_versions(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    """The first version writes a very large number where there is none."""
    assert limits.memory_limit(group(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("shm", "limit", "ids"),
    [
        (64 << 20, None, ["shm-small"]),
        (64 << 20, 512 << 20, ["shm-small", "memory-small"]),
        (1 << 30, 2 << 30, []),
        (8 << 30, (2 << 30) - 1, ["memory-small"]),
    ],
)
def test_limits_below_what_training_needs_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shm: int, limit: int | None, ids: list[str]
) -> None:
    """Docker's default for shared memory; a memory limit that importing torch reaches."""
    size = SimpleNamespace(f_blocks=shm >> 12, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: size)
    found = limits.small(group(tmp_path, {"memory.max": "max" if limit is None else str(limit)}))
    assert [notice.id for notice in found] == ids
    named = {"shm-small": shm, "memory-small": limit}
    assert all(f" {(named[notice.id] or 0) >> 20} MB" in notice.message for notice in found)


def test_no_shared_memory_at_all_is_named(tmp_path: Path) -> None:
    """A folder that is missing counts as none."""
    found = limits.small(group(tmp_path, {}), tmp_path / "none")
    assert [notice.id for notice in found] == ["shm-small"]


def test_memory_that_ran_out_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    """With the number of processes; an error, so that a quiet log has it too."""
    limits.log_kills(2, "quiet")
    said = capfd.readouterr().err
    assert "ERROR start[out-of-memory]: " in said
    assert " 2 processes " in said
    assert said.count("\n") == 1


def test_a_driver_that_is_gone_is_a_fault() -> None:
    """It was there when the container started."""
    assert not nvml.available("libof-no-one.so.1")
    assert nvml.fault("libof-no-one.so.1") == "GPU: libof-no-one.so.1 was here at the start and is gone"


def test_the_first_notebook_is_never_written_over(tmp_path: Path) -> None:
    """Only lost+found may lie there; a missing folder is not an error."""
    (tmp_path / "lost+found").mkdir()
    assert welcome_notebook.greet(tmp_path)
    assert (tmp_path / welcome_notebook.NOTEBOOK.name).read_bytes() == welcome_notebook.NOTEBOOK.read_bytes()
    assert not welcome_notebook.greet(tmp_path)
    assert not welcome_notebook.greet(tmp_path / "gone")
