"""A SIGBUS is blamed on what was measured, not always on /dev/shm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.verify.checks.test_distributed import AROUND, RANK
from verify.checks.distributed.ranks import advice
from verify.probes.bus_error import ENOUGH, bus_facts, mapped_file_systems

GB = 1 << 30
ROOMY = {"total": 8 * GB, "free": 7 * GB}
DIED = "rank 1 was killed by SIGBUS"


def told(text: str = DIED, **changes: Any) -> str:
    """The advice, with a large /dev/shm unless said otherwise."""
    return advice(text, {"ranks": [RANK], **AROUND, "shm": ROOMY, "mapped": [], **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shm": {"total": 64 << 20, "free": 60 << 20}}, "/dev/shm is too small (it has 64 MB, 60 MB free)"),
        ({"shm": {"total": 8 * GB, "free": 1 << 20}}, "/dev/shm is full"),
        ({"mapped": [{"at": "/data", "type": "nfs4", "free": GB}]}, "a file mapped from /data (nfs4) was cut"),
        (
            {"mapped": [{"at": "/scratch", "type": "ext4", "free": 0}]},
            "/scratch (ext4), where mapped files lie, is",
        ),
        ({"mapped": [{"at": "/", "type": "overlay", "free": GB}]}, "dmesg"),
    ],
)
def test_a_bus_error_is_explained_by_what_was_measured(changes: dict[str, Any], words: str) -> None:
    """Size and room of /dev/shm first, then the file systems of mapped files, then memory itself."""
    assert words in told(**changes)
    assert ("--shm-size" in told(**changes)) == ("shm" in changes)


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        ("rank 0: error while creating /dev/shm/nccl-x: No space left on device", {}, "--shm-size=8g"),
        ("rank 0: No space left on device", {"shm": {"total": 64 << 20, "free": 0}}, "--shm-size=8g"),
        ("rank 0: No space left on device", {}, "a disk is full, not /dev/shm"),
    ],
)
def test_no_space_left_is_told_apart_by_place(text: str, changes: dict[str, Any], words: str) -> None:
    """The text's own path, else the room that was measured."""
    assert words in told(text, **changes)


def test_the_file_systems_of_mapped_files_are_read() -> None:
    """By the mount that each file lies on, whether or not it still exists; /dev/shm is told apart."""
    maps = "7f-80 r-xp 0 00:1 1 /data/set/a.bin\n7f-80 r-xp 0 00:1 2 /dev/shm/x\n7f-80 rw-p 0 00:0 0 [heap]\n"
    mountinfo = "1 1 0:1 / / rw - overlay o rw\n2 1 0:2 / /data rw - nfs4 s:/d rw\n3 1 0:3 / /dev/shm rw - tmpfs shm rw"
    assert [(place["at"], place["type"]) for place in mapped_file_systems(maps, mountinfo)] == [("/data", "nfs4")]


def test_the_facts_of_this_machine_are_true() -> None:
    """Python's own files lie somewhere, and the size is the kernel's."""
    facts = bus_facts()
    space = os.statvfs("/dev/shm")
    assert facts["shm"]["total"] == space.f_blocks * space.f_frsize
    assert facts["mapped"]
    assert Path(facts["mapped"][0]["at"]).exists()
    assert ENOUGH == GB
