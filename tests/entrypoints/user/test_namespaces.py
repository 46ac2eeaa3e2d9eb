"""User namespaces: numbers that do not exist here, and what the host calls those that do."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.user import mounts, namespaces, runtime, users
from entrypoints.gpuyard_start.user.namespaces import Range

WHOLE = "         0          0 4294967295\n"
DOCKER = "         0     200000      65536\n"
ROOTLESS = "0 1000 1\n1 100000 65536\n"


def proc(folder: Path, mapped: str) -> Path:
    """The kernel's files."""
    (folder / "self").mkdir()
    (folder / "sys" / "kernel").mkdir(parents=True)
    for kind in ("uid", "gid"):
        (folder / "self" / f"{kind}_map").write_text(mapped)
    (folder / "sys" / "kernel" / "overflowuid").write_text("65534\n")
    return folder


@pytest.mark.parametrize(
    ("mapped", "number", "there", "host"),
    [
        (WHOLE, 70000, True, 70000),
        (DOCKER, 1000, True, 201000),
        (DOCKER, 65535, True, 265535),
        (DOCKER, 65536, False, 65536),
        (ROOTLESS, 0, True, 1000),
        (ROOTLESS, 1000, True, 100999),
        (ROOTLESS, 65537, False, 65537),
    ],
)
def test_a_number_is_found_in_its_range(tmp_path: Path, mapped: str, number: int, there: bool, host: int) -> None:
    """Of the host itself, of Docker's remapping, of a rootless engine with two ranges."""
    place = proc(tmp_path, mapped)
    assert namespaces.exists("uid", number, place) is there
    assert namespaces.on_host(number, place) == host


def test_only_a_namespace_has_strange_owners(tmp_path: Path) -> None:
    """On the host itself the same number is the user nobody."""
    for name, mapped in (("host", WHOLE), ("docker", DOCKER)):
        (tmp_path / name).mkdir()
        place = proc(tmp_path / name, mapped)
        assert namespaces.is_strange(65534, place) is (name == "docker")
        assert not namespaces.is_strange(1000, place)


@pytest.mark.parametrize("env", [{"GPUYARD_UID": "70000"}, {"NB_UID": "1005", "NB_GID": "70000"}])
def test_a_number_that_does_not_exist_here_is_refused(monkeypatch: pytest.MonkeyPatch, env: dict[str, str]) -> None:
    """In place of the kernel's 'invalid argument'."""
    entry = pwd.struct_passwd(("trainer", "x", 1000, 1000, "", "/home/trainer", "/bin/bash"))
    monkeypatch.setattr(users, "image_entry", lambda: entry)
    monkeypatch.setattr(namespaces, "ranges", lambda *_: (Range(0, 200000, 65536),))
    with pytest.raises(Refusal) as refusal:
        users.target(env, 0, 0)
    assert refusal.value.id == "id-outside-namespace"
    assert f"{list(env)[-1]} is 70000" in str(refusal.value)
    assert "65535" in str(refusal.value)


def test_a_strangers_folder_names_the_number_that_helps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The one that the host knows; --user with the number that is seen here would help nobody."""
    monkeypatch.setattr(mounts, "is_mounted", lambda *_: True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(namespaces, "ranges", lambda *_: (Range(0, 200000, 65536),))
    os.chown(tmp_path, 65534, 65534)
    said = runtime.unwritable(tmp_path, 1000, False)
    assert said is not None
    assert said.endswith("user namespace: chown it to 201000 on the host, or add --userns host")
