"""`gpuyard run` as it is typed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuyard import catalogue, paths
from gpuyard.cli import main
from gpuyard.commands.run import remapped, volumes
from gpuyard.errors import UsageError
from tests.run.test_preflight import key_pair


@dataclass(frozen=True)
class Done:
    """What a call of the CLI ended with."""

    code: int
    out: str
    err: str


Call = Callable[..., Done]
Line = Callable[..., list[str]]


@pytest.fixture
def gpuyard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the CLI as the shell would, in the checkout and without an engine."""
    monkeypatch.chdir(paths.ROOT)
    monkeypatch.setattr("gpuyard.engine.answers", lambda: False)

    def call(*words: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        captured = capsys.readouterr()
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def line(gpuyard: Call) -> Line:
    """The docker line that a dry run prints, as words."""

    def dry(*words: str) -> list[str]:
        done = gpuyard("run", "--gpus", "none", "--dry-run", *words)
        assert done.code == 0, done.err
        return shlex.split(done.out)

    return dry


def test_a_plain_run_opens_jupyter_on_this_machine_only(line: Line) -> None:
    """No key, so no SSH port; the default image; nothing bound to other addresses."""
    words = line()
    table = catalogue.load()
    assert words[-1] == table.tag(table.default_line, "workbench")
    assert [word for word in words if word.startswith("--publish")] == ["--publish=127.0.0.1:8888:8888"]


def test_a_key_opens_the_ssh_port_too(line: Line, tmp_path: Path) -> None:
    """The public key goes along by variable and 2222 is published."""
    public = key_pair(tmp_path)[1]
    words = line("--ssh-key", str(public), "--ssh-port", "2200")
    assert "--publish=127.0.0.1:2200:2222" in words
    assert f"--env=SSH_PUBLIC_KEY={public.read_text().strip()}" in words


def test_after_two_dashes_stands_the_command_and_no_service_port(line: Line) -> None:
    """A command is not taken for a line, and its options are not ours."""
    words = line("--", "python", "train.py", "--gpus", "8")
    assert words[-4:] == ["python", "train.py", "--gpus", "8"]
    assert not [word for word in words if word.startswith("--publish")]


def test_the_runtime_image_has_no_service_port(line: Line) -> None:
    """The catalogue knows which image has services."""
    words = line("--image", "runtime")
    assert words[-1].endswith("-runtime")
    assert not [word for word in words if word.startswith("--publish")]


def test_a_token_is_in_no_printed_line(line: Line) -> None:
    """The name is passed through, the value is not on the line."""
    words = line("-e", "JUPYTER_TOKEN=hush-hush")
    assert "--env=JUPYTER_TOKEN" in words
    assert "hush-hush" not in shlex.join(words)


def test_here_mounts_the_folder_where_jupyter_starts(line: Line) -> None:
    """--here is this folder at /workspace."""
    assert f"--volume={paths.ROOT}:/workspace" in line("--here")


def test_two_mounts_at_the_workspace_are_refused() -> None:
    """--here beside a -v at the same place is a contradiction; one elsewhere is not."""
    with pytest.raises(UsageError, match="--here"):
        volumes(["/a:/workspace:ro"], Path("/b"))
    assert volumes(["/a:/mnt/data"], Path("/b")) == ("/a:/mnt/data", "/b:/workspace")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["0.1"], 2, "unknown line '0.1'"),
        (["--image", "base"], 2, "base is an inner layer"),
        (["--image", "workbnch"], 2, "Did you mean 'workbench'"),
        (["--gpus", "some"], 2, "expected all, none, auto"),
        (["--shm-size", "lots"], 2, "expected a size"),
        (["--ssh-key", "/none.pub"], 1, "cannot be read"),
        (["--jupyter-port", "99999"], 2, "--jupyter-port 99999: expected a port from 1 to 65535"),
    ],
)
def test_wrong_words_end_in_one_line(gpuyard: Call, words: list[str], code: int, said: str) -> None:
    """What was wrong and what is expected, on one line, without a traceback."""
    done = gpuyard("run", "--dry-run", *words)
    assert done.code == code
    assert done.out == ""
    assert done.err.startswith("gpuyard: ")
    assert len(done.err.splitlines()) == 1
    assert said in done.err


def test_a_folder_of_another_user_becomes_that_users_container(tmp_path: Path) -> None:
    """`--here` in somebody's folder: the container's user takes its ids, so that both can write."""
    os.chown(tmp_path, 1234, 2345)
    assert remapped(tmp_path) == ("root", ["GPUYARD_UID=1234", "GPUYARD_GID=2345"])


@pytest.mark.parametrize("owner", [0, 1000])
def test_a_folder_of_roots_or_trainers_needs_no_other_user(tmp_path: Path, owner: int) -> None:
    """Ours already fits, and root's ids are given to nobody."""
    os.chown(tmp_path, owner, owner)
    assert remapped(tmp_path) == (None, [])
