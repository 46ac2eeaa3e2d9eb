"""Whom a start as root becomes: every way to ask for someone who must not be."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.user import mounts, privileges, runtime, users

TRAINER = pwd.struct_passwd(("trainer", "x", 1000, 1000, "", "/home/trainer", "/bin/bash"))


@pytest.fixture(autouse=True)
def image_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's list of users, on a machine that has another."""
    monkeypatch.setattr(users, "image_entry", lambda: TRAINER)


@pytest.mark.parametrize(
    ("env", "uid", "id", "named"),
    [
        ({}, 0, "root-not-allowed", "GPUYARD_UID"),
        ({"GPUYARD_ALLOW_ROOT": "maybe"}, 0, "setting-invalid", "GPUYARD_ALLOW_ROOT"),
        ({"GPUYARD_UID": "0"}, 0, "root-not-allowed", "GPUYARD_UID"),
        ({"NB_UID": "0"}, 0, "root-not-allowed", "NB_UID"),
        ({"GPUYARD_UID": "-1"}, 0, "setting-invalid", "GPUYARD_UID"),
        ({"GPUYARD_UID": "alice"}, 0, "setting-invalid", "GPUYARD_UID"),
        ({"GPUYARD_UID": "1e3"}, 0, "setting-invalid", "GPUYARD_UID"),
        ({"GPUYARD_UID": "٣"}, 0, "setting-invalid", "GPUYARD_UID"),
        ({"GPUYARD_UID": "4294967295"}, 0, "setting-invalid", "GPUYARD_UID"),
        ({"NB_GID": "users"}, 0, "setting-invalid", "NB_GID"),
        ({"GPUYARD_UID": "1005", "NB_UID": "1006"}, 0, "settings-conflict", "GPUYARD_UID"),
        ({"GPUYARD_UID": "1"}, 0, "user-taken", "GPUYARD_UID"),
        ({"NB_USER": "root"}, 0, "user-taken", "NB_USER"),
        ({"GPUYARD_USER": "Alice"}, 0, "setting-invalid", "GPUYARD_USER"),
        ({"GPUYARD_USER": "a:b"}, 0, "setting-invalid", "GPUYARD_USER"),
        ({"GPUYARD_USER": "x" * 33}, 0, "setting-invalid", "GPUYARD_USER"),
        ({"GPUYARD_CHOWN": "/etc"}, 0, "chown-place", "GPUYARD_CHOWN"),
        ({"GPUYARD_CHOWN": "/workspace/../etc"}, 0, "chown-place", "GPUYARD_CHOWN"),
        ({"GPUYARD_CHOWN": "/mnt"}, 0, "chown-place", "GPUYARD_CHOWN"),
        ({"GPUYARD_CHOWN": "/mnt/of-no-one"}, 0, "chown-place", "GPUYARD_CHOWN"),
        ({"GPUYARD_UID": "1005"}, 1000, "root-needed", "GPUYARD_UID=1005"),
        ({"NB_UID": "1005"}, 1000, "root-needed", "NB_UID=1005"),
        ({"NB_UID": "1"}, 0, "user-taken", "NB_UID is 1"),
        ({"NB_GID": "5"}, 1000, "root-needed", "NB_GID"),
        ({"NB_USER": "alice"}, 1000, "root-needed", "NB_USER"),
        ({"GPUYARD_CHOWN": "/workspace"}, 1000, "root-needed", "GPUYARD_CHOWN"),
    ],
)
def test_a_user_that_must_not_be_is_refused_in_one_line(env: dict[str, str], uid: int, id: str, named: str) -> None:
    """With the usage code, before anything is changed."""
    with pytest.raises(Refusal) as refusal:
        users.target(env, uid, uid)
    assert refusal.value.id == id
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert refusal.value.code == 2


def test_a_start_as_the_right_user_changes_nothing() -> None:
    """The numbers of this process request no change; root may be asked for by name."""
    assert users.target({"NB_UID": "1000", "NB_GID": "1000", "NB_USER": "trainer"}, 1000, 1000) is None
    assert users.target({"GPUYARD_ALLOW_ROOT": "yes"}, 0, 0) is None
    assert users.target({"GPUYARD_ALLOW_ROOT": "yes", "GPUYARD_UID": "0"}, 0, 0) is None


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"GPUYARD_UID": "54321"}, (54321, 1000, "trainer")),
        ({"NB_UID": "54321", "NB_GID": "100"}, (54321, 100, "trainer")),
        ({"GPUYARD_GID": "54321"}, (1000, 54321, "trainer")),
        ({"NB_USER": "of-no-one"}, (1000, 1000, "of-no-one")),
    ],
)
def test_what_was_not_asked_for_stays_the_images(env: dict[str, str], expected: tuple[int, int, str]) -> None:
    """User, group and name by themselves."""
    found = users.target(env, 0, 0)
    assert found is not None
    assert (found.uid, found.gid, found.name) == expected


def test_one_entry_of_a_list_is_edited_and_no_other() -> None:
    """A user whose name only begins alike stays."""
    text = "root:x:0:0::/root:/bin/sh\ntrainer:x:1000:1000::/home/trainer:/x\ntrainer2:x:1001:1001::/:/x\n"
    changed = privileges.edited(text, "trainer", "alice", {2: 5, 3: 6})
    assert changed == text.replace("trainer:x:1000:1000", "alice:x:5:6")


def test_a_mount_point_is_read_as_it_is_called(tmp_path: Path) -> None:
    """The kernel writes blanks in octal; what lies below a mount is on it."""
    table = tmp_path / "mountinfo"
    table.write_text("1 0 0:1 / / rw - overlay o rw\n2 1 0:2 / /mnt/my\\040data rw - ext4 /dev/x rw\n")
    found = mounts.points(table)
    assert found == {Path("/"), Path("/mnt/my data")}
    assert mounts.is_mounted(Path("/mnt/my data/a"), found)
    assert not mounts.is_mounted(Path("/mnt/my"), found)


@pytest.mark.parametrize(
    ("owner", "rooted", "advice"),
    [
        (0, False, "chown it to 7 on the host, or add --user root -e GPUYARD_CHOWN={}"),
        (0, True, "chown it to 7 on the host, or add -e GPUYARD_CHOWN={}"),
        (5, False, "start with --user 5:6, or with --user root -e GPUYARD_UID=5 -e GPUYARD_GID=6"),
        (5, True, "start with -e GPUYARD_UID=5 -e GPUYARD_GID=6"),
        (7, False, "its mode is 0500: chmod u+rwx it"),
    ],
)
def test_a_folder_of_someone_else_names_the_option_that_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, owner: int, rooted: bool, advice: str
) -> None:
    """Who owns it, who we are, which option to use."""
    monkeypatch.setattr(mounts, "is_mounted", lambda *_: True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    tmp_path.chmod(0o500)
    os.chown(tmp_path, owner, 6)
    said = runtime.unwritable(tmp_path, 7, rooted)
    assert said == f"{tmp_path} can't be written to by uid 7: it belongs to {owner}:6; {advice.format(tmp_path)}"
