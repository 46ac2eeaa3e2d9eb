"""Folders that are full, nearly full, out of inodes, over a quota or another user's, each with its own words."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.verify.checks.test_image import is_failure
from tests.verify.suite import CLAIMS
from verify.checks.container import folders
from verify.model import Owner, Status
from verify.probes import storage

Tmpfs = Callable[[str], Path]
ROOM = {"folder": "/v", "error": "", "free": 1 << 40, "total": 1 << 41, "inodes_free": 90, "inodes": 100}
FULL = {**ROOM, "error": "ENOSPC", "free": 0}


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Tmpfs]:
    """Mounts a tmpfs with these options; needs root."""
    with ExitStack() as mounted:

        def mount(options: str) -> Path:
            folder = tmp_path / options
            folder.mkdir()
            made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False)
            if made.returncode:
                pytest.skip("this machine lets nobody mount a tmpfs")
            mounted.callback(lambda: subprocess.run(["umount", folder], check=True))
            return folder

        yield mount


def test_a_full_tmpfs_fails_though_a_file_can_be_opened_there(tmpfs: Tmpfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 100 % an empty file can still be made, which was all that was once tried."""
    folder = tmpfs("size=1m")
    monkeypatch.setattr(folders, "WORKSPACE", str(folder))
    assert folders.evaluate_workspace(folders.probe_workspace(), CLAIMS).status is Status.PASS
    with pytest.raises(OSError, match="No space left"), (folder / "filler").open("wb") as file:
        file.write(bytes(2 << 20))
    (folder / "empty").touch()
    verdict = folders.evaluate_workspace(folders.probe_workspace(), CLAIMS)
    assert is_failure(verdict, f"{folder} is full: 0 B of 1 MB free", "make room")
    assert verdict.owner is Owner.START


def test_a_disk_without_inodes_fails_with_its_own_words(tmpfs: Tmpfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has room for bytes and for no further file."""
    folder = tmpfs("nr_inodes=4")
    for name in "abc":
        (folder / name).touch()
    monkeypatch.setenv("HF_HOME", str(folder / "hub"))
    verdict = folders.evaluate_caches(folders.probe_caches(), CLAIMS)
    assert is_failure(verdict, "HF_HOME", "has no inode left of 4", f"df -i {folder}")


def test_a_nearly_full_disk_is_named_on_a_pass(tmpfs: Tmpfs) -> None:
    """The data still arrive, and the report says for how long."""
    folder = tmpfs("size=40m")
    (folder / "filler").write_bytes(bytes(39 << 20))
    tried = storage.try_folder(str(folder))
    verdict = folders.evaluate_workspace({"exists": True, "uid": 1, **tried}, CLAIMS)
    assert verdict.status is Status.PASS
    assert f"{folder} is nearly full: 1 MB of 40 MB free" in verdict.observed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"error": "ENOSPC", "free": 0}, ("is full", "du -xh")),
        ({"error": "ENOSPC", "inodes_free": 0}, ("no inode left of 100", "df -i")),
        ({"error": "EDQUOT"}, ("the disk quota is used up", "quota -s")),
    ],
)
def test_every_folder_says_how_it_is_full(change: dict[str, Any], words: tuple[str, str]) -> None:
    """Workspace, home, caches, temporary files, data and models alike."""
    facts = {**ROOM, **change}
    for verdict in (
        folders.evaluate_workspace({"exists": True, "uid": 1, **facts}, CLAIMS),
        folders.evaluate_caches({"folders": {"HOME /v": ROOM, "temporary files /v": facts}}, CLAIMS),
        folders.evaluate_volumes({"folders": {"/mnt/models": facts}}, CLAIMS),
    ):
        assert is_failure(verdict, *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"free": 9 << 30, "total": 1 << 40}, "nearly full: 9 GB of 1 TB free"),
        ({"free": 90 << 30, "total": 9 << 40}, ""),
        ({"free": 60 << 20, "total": 64 << 20}, ""),
        ({"inodes_free": 0, "inodes": 0}, ""),
        ({"inodes_free": 9, "inodes": 1000}, "few inodes left: 9 of 1000"),
    ],
)
def test_what_counts_as_nearly_full(change: dict[str, Any], words: str) -> None:
    """A small share that is also small in bytes; a small empty disk is not, nor one that counts no inodes."""
    found = storage.scarcity({**ROOM, **change})
    assert words in found
    assert bool(found) is bool(words)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder that does not exist yet counts as the one above it; a file in the way is the reason."""
    assert storage.fault(storage.try_folder(str(tmp_path / "new" / "deep"))) == ""
    (tmp_path / "file").touch()
    assert storage.fault(storage.try_folder(str(tmp_path / "file"))) == f"{tmp_path}/file: {os.strerror(20)}"
    closed = {"folders": {"HOME /x": {**ROOM, "error": "EROFS"}}}
    assert is_failure(folders.evaluate_caches(closed, CLAIMS), "HOME /x", "Read-only", "HOME=/tmp")


def test_a_workspace_of_another_user_fails() -> None:
    """The remedy names the uid that needs the folder."""
    good = {"exists": True, "uid": 1234, **ROOM}
    assert folders.evaluate_workspace(good, CLAIMS).status is Status.PASS
    bad = folders.evaluate_workspace({**good, "error": "EACCES"}, CLAIMS)
    assert is_failure(bad, "uid 1234", "Permission denied", "chown -R 1234")
    assert is_failure(folders.evaluate_workspace({"exists": False, "uid": 1234}, CLAIMS), "missing")


def test_a_volume_may_be_read_only_or_absent() -> None:
    """Data are often mounted so; only a full one is a fault."""
    locked = folders.evaluate_volumes({"folders": {"/mnt/data": {**ROOM, "error": "EROFS"}}}, CLAIMS)
    assert locked.status is Status.PASS
    assert "Read-only" in locked.observed
    assert folders.evaluate_volumes({"folders": {}}, CLAIMS).status is Status.PASS
    both = {"folders": {"/mnt/data": {**FULL, "folder": "/d"}, "/mnt/models": {**FULL, "folder": "/m"}}}
    assert is_failure(folders.evaluate_volumes(both, CLAIMS), "/d is full", "/m is full")
