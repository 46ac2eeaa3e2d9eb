"""The bottom of an image: bootstrapped bit for bit, and never from another suite's sources."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.image import origin
from tests.refusals import refused


def test_bootstrapping_needs_root(table: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user is refused in one line, and nothing is written."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with refused("bootstrap-needs-root"):
        origin.bootstrap(table.os[table.default_os], tmp_path / "rootfs" / "rootfs.tar")
    assert not (tmp_path / "rootfs").exists()


def test_a_root_file_system_is_made_once(table: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call of a row finds the tar of the first."""
    calls = []

    def pretend(_: object, tar: Path) -> None:
        calls.append(tar)
        tar.parent.mkdir(parents=True)
        tar.touch()

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(origin, "bootstrap", pretend)
    system = table.os[table.default_os]
    assert origin.rootfs(system) == origin.rootfs(system)
    assert len(calls) == 1
    # A changed script does not find the old one's tar.
    monkeypatch.setattr(origin, "bootstrap_checksum", lambda: "0" * 64)
    origin.rootfs(system)
    assert len(calls) == 2


@pytest.mark.full
def test_two_bootstraps_give_the_same_bytes(table: Catalogue, tmp_path: Path) -> None:
    """Same packages, same epoch: the same SHA-256, and no secret or machine identity in it."""
    tars = [tmp_path / name / "rootfs.tar" for name in ("one", "two")]
    for tar in tars:
        origin.bootstrap(table.os[table.default_os], tar)
    first, second = (hashlib.sha256(tar.read_bytes()).hexdigest() for tar in tars)
    assert first == second
    with tarfile.open(tars[0]) as archive:
        assert archive.getmember("./etc/machine-id").size == 0
