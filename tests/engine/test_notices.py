"""What the start inside would warn about is said on the host first."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from gpuyard.engine import notices
from gpuyard.engine.start import GIB, Start

INFO = {"MemTotal": 16 * GIB}
Usage = namedtuple("Usage", "total used free")


def said(caplog: pytest.LogCaptureFixture, start: Start, local: bool = False, **environ: str) -> list[str]:
    """The ids of the warnings."""
    caplog.clear()
    notices.say(start, INFO, local, environ)
    return [record.getMessage().partition("[")[2].partition("]")[0] for record in caplog.records]


@pytest.mark.parametrize(
    ("start", "ids"),
    [
        (Start("i", shm="8g"), []),
        (Start("i", shm="17g"), ["shm-above-memory"]),
        (Start("i", shm="8g", memory="4g"), ["shm-above-memory"]),
        (Start("i", shm="64m", memory="512m"), ["memory-limit-low"]),
        (Start("i", shm="2g", memory="8g"), []),
    ],
)
def test_memory_that_cannot_suffice_is_said(caplog: pytest.LogCaptureFixture, start: Start, ids: list[str]) -> None:
    """Shared memory beyond the machine or the limit, and a limit below what torch needs."""
    assert said(caplog, start) == ids


def test_certificates_of_this_host_are_named_with_the_option(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Unless they are handed on, the file is not there, or they are those that conda brings."""
    file = tmp_path / "ca.pem"
    file.touch()
    assert said(caplog, Start("i"), SSL_CERT_FILE=str(file)) == ["ca-not-passed"]
    assert f"--ca {file}" in caplog.text
    assert said(caplog, Start("i", env=("GPUYARD_CA=/x",)), SSL_CERT_FILE=str(file)) == []
    assert said(caplog, Start("i"), REQUESTS_CA_BUNDLE="/no/such") == []
    assert said(caplog, Start("i"), SSL_CERT_FILE=str(file), CONDA_PREFIX=str(tmp_path)) == []


@pytest.mark.parametrize(
    ("owner", "mode", "start", "bad"),
    [
        (0, 0o755, {}, True),
        (0, 0o777, {}, False),
        (1000, 0o755, {}, False),
        (1000, 0o555, {}, True),
        (1234, 0o755, {"user": "root", "env": ("GPUYARD_UID=1234", "GPUYARD_GID=1234")}, False),
        (1234, 0o755, {"user": "12345:0"}, True),
        (0, 0o775, {"user": "12345:0"}, False),
        (0, 0o755, {"user": "root", "env": ("GPUYARD_CHOWN=/x",)}, False),
        (0, 0o755, {"user": "somebody"}, False),
    ],
)
def test_a_folder_that_the_containers_user_cannot_write_is_named(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, owner: int, mode: int, start: dict[str, object], bad: bool
) -> None:
    """By owner, group and mode, for the user that the start will have; what cannot be known is not judged."""
    folder = tmp_path / "data"
    folder.mkdir()
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    made = Start("i", volumes=(f"{folder}:/mnt/data",), **start)  # type: ignore[arg-type]
    assert said(caplog, made, local=True) == (["mount-not-writable"] if bad else [])
    assert (str(folder) in caplog.text) is bad
    read_only = Start("i", volumes=(f"{folder}:/mnt/data:ro", "volume:/x"), **start)  # type: ignore[arg-type]
    assert said(caplog, read_only, local=True) == []


def test_an_engine_that_maps_users_is_not_judged(tmp_path: Path) -> None:
    """Rootless engines and remapped ones have other ids on the host."""
    os.chown(tmp_path, 0, 0)
    tmp_path.chmod(0o755)
    start = Start("i", volumes=(f"{tmp_path}:/x",))
    assert list(notices.unwritable(start, {})) == [str(tmp_path)]
    assert list(notices.unwritable(start, {"SecurityOptions": ["name=rootless"]})) == []
    assert list(notices.unwritable(start, {"SecurityOptions": ["name=userns"]})) == []


def test_a_full_disk_of_a_mount_is_named(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly full counts; a mount that is only read does not."""
    tmp_path.chmod(0o777)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: Usage(100 * GIB, 99 * GIB, GIB))
    assert said(caplog, Start("i", volumes=(f"{tmp_path}:/x",)), local=True) == ["disk-nearly-full"]
    assert said(caplog, Start("i", volumes=(f"{tmp_path}:/x:ro",)), local=True) == []
