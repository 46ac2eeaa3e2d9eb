"""What SSH sessions see of the container's environment, and that no value is ever executed or shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.ssh import sessions


def test_the_environment_is_sorted_into_passed_and_secret() -> None:
    """What each session has of its own is not passed; nothing else is left out, whatever it holds."""
    env = {"PATH": "/x", "SHLVL": "1", "HF_TOKEN": "t", "TWO": "a\nb", "a-b": "c", "PUBLIC_KEY": "k"}
    variables, secrets = sessions.select(env)
    assert variables == {"PATH": "/x", "TWO": "a\nb", "a-b": "c"}
    assert secrets == ("HF_TOKEN",)


def test_a_setting_of_the_starts_own_is_no_secret() -> None:
    """Though its name says keys: it names a folder, and its work is done."""
    assert sessions.select({"GPUYARD_HOST_KEYS": "/keys"}) == ({}, ())


def test_a_secret_is_passed_on_where_its_name_was_given() -> None:
    """A name that is not set is refused: it is a slip of the pen that would be noticed late."""
    env = {"HF_TOKEN": "t", "WANDB_API_KEY": "w", "GPUYARD_PASS": "HF_TOKEN"}
    assert sessions.select(env) == ({"HF_TOKEN": "t"}, ("WANDB_API_KEY",))
    with pytest.raises(Refusal) as refusal:
        sessions.select({"GPUYARD_PASS": "HF_TOKN"})
    assert refusal.value.id == "pass-unset"
    assert "HF_TOKN" in str(refusal.value)


@pytest.mark.parametrize("value", ["", "a=b", "two\nlines\r\n", "$(id) `id` \\ \"'", "é 漢字", "\udcff"])
def test_every_value_comes_back_as_it_was(value: str) -> None:
    """Including line ends, quotes and bytes that are not text."""
    assert sessions.unpack(sessions.pack({"A": value, "b": "x"})) == {b"A": os.fsencode(value), b"b": b"x"}


def test_the_containers_values_win_over_the_sessions_own(tmp_path: Path) -> None:
    """What sshd adds stays; a language that Python made up does not."""
    sessions.write(tmp_path, {"PATH": "/opt"})
    assert (tmp_path / sessions.FILE).stat().st_mode & 0o777 == 0o600
    current = {b"PATH": b"/usr", b"SSH_TTY": b"t", b"LC_CTYPE": b"C.UTF-8"}
    assert sessions.restored(current, tmp_path) == {b"PATH": b"/opt", b"SSH_TTY": b"t", b"SHELL": b"/bin/bash"}
    assert sessions.restored({}, None) == {b"SHELL": b"/bin/bash"}


def test_a_login_begins_in_the_workspace_and_a_command_in_the_home() -> None:
    """Where scp and rsync put relative paths; a terminal of Jupyter's stays where it was opened."""
    env, home = {"HOME": "/home/trainer"}, Path("/home/trainer")
    assert sessions.start_folder([], env, home) == Path("/workspace")
    assert sessions.start_folder(["-c", "pwd"], env, home) is None
    assert sessions.start_folder([], env, Path("/mnt/data")) is None


def test_what_a_start_added_is_kept_where_there_is_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the secrets; a start that finds none goes on."""
    monkeypatch.setattr(sessions, "make_folder", lambda: tmp_path)
    sessions.keep({"HF_HOME": "/c", "HF_TOKEN": "s3cret"})
    assert sessions.restored({}, tmp_path) == {b"HF_HOME": b"/c", b"SHELL": b"/bin/bash"}
    assert (tmp_path / sessions.FILE).stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(sessions, "make_folder", lambda: tmp_path / "gone")
    sessions.keep({"HF_HOME": "/c"})
