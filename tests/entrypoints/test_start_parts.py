"""The small parts of a start: log lines, finding a command, limits of the machine."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from entrypoints.gpuyard_start import main
from entrypoints.gpuyard_start.errors import Notice, Refusal
from entrypoints.gpuyard_start.jupyter import server
from entrypoints.gpuyard_start.jupyter.config import Jupyter
from entrypoints.gpuyard_start.log import Log, render, style
from entrypoints.gpuyard_start.services import ports
from entrypoints.gpuyard_start.user import runtime
from gpuyard.engine import ready


def test_a_line_has_time_level_and_source() -> None:
    """The time is UTC and says so."""
    assert render("text", "INFO", "start", "hello", 0.0) == "1970-01-01T00:00:00Z INFO start: hello\n"


def test_a_json_line_is_one_object_whatever_the_message_holds() -> None:
    """Quotes and line ends stay inside of it."""
    line = render("json", "ERROR", "start", 'a "b"\nc', 0.0)
    assert line.count("\n") == 1
    assert json.loads(line)["message"] == 'a "b"\nc'


def test_quiet_leaves_only_errors() -> None:
    """Warnings and information are dropped."""
    assert [bool(render("quiet", level, "s", "m", 0.0)) for level in ("INFO", "WARNING", "ERROR")] == [0, 0, 1]


def test_an_unknown_style_is_refused() -> None:
    """With the list of what there is; unset and empty mean text."""
    assert style({}) == style({"GPUYARD_LOG": ""}) == "text"
    with pytest.raises(Refusal) as refusal:
        style({"GPUYARD_LOG": "loud"})
    assert refusal.value.id == "setting-invalid"
    assert "text, json, quiet" in str(refusal.value)


def test_commands_are_found_as_a_shell_finds_them(tmp_path: Path) -> None:
    """The first executable on PATH wins; a name with a slash is a path."""
    for folder, mode in (("one", 0o644), ("two", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").touch(mode)
    path = f"{tmp_path}/none:{tmp_path}/one:{tmp_path}/two"
    assert main.resolve("tool", path) == f"{tmp_path}/two/tool"
    assert main.resolve(f"{tmp_path}/two/tool", "") == f"{tmp_path}/two/tool"


@pytest.mark.parametrize(
    ("command", "code"),
    [("no-such-tool", 127), ("/no/such/tool", 127), ("./no-such-tool", 127), ("/etc/passwd", 126), ("/etc", 126)],
)
def test_a_command_that_cannot_run_gets_the_shells_code(command: str, code: int) -> None:
    """127 if there is none, 126 if it is not a program; one line that names it."""
    with pytest.raises(Refusal) as refusal:
        main.resolve(command, "/usr/bin:/bin")
    assert refusal.value.code == code
    assert command in str(refusal.value)


def test_a_taken_port_is_refused_with_the_variable_that_moves_it() -> None:
    """The line names port, service and variable."""
    with socket.create_server(("0.0.0.0", 0)) as listener:
        number = listener.getsockname()[1]
        with pytest.raises(Refusal) as refusal:
            ports.check(number, "Jupyter", "JUPYTER_PORT")
    assert refusal.value.id == "service-port-taken"
    assert {str(number), "Jupyter"} <= set(str(refusal.value).split())
    assert "JUPYTER_PORT" in str(refusal.value)
    ports.check(number, "Jupyter", "JUPYTER_PORT")


@pytest.mark.skipif(not ports.has_ipv6(), reason="no IPv6 here")
def test_a_port_that_is_taken_on_ipv6_alone_is_taken() -> None:
    """Jupyter and sshd listen on both families."""
    with socket.create_server(("::", 0), family=socket.AF_INET6) as listener:
        assert ports.bind_fault(listener.getsockname()[1]) is not None


def test_a_line_has_the_id_of_a_warning_or_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    """In brackets, and as a field of JSON; information has none. The host reads such lines, too."""
    for chosen in ("text", "json"):
        log = Log(chosen)
        log.info("a")
        log.warning("folder-unwritable", "b")
        log.error("start-failed", "c")
        log.say(Notice("shm-small", "d"))
        log.say("e")
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1] for line in lines[:5]] == [
        "INFO start: a",
        "WARNING start[folder-unwritable]: b",
        "ERROR start[start-failed]: c",
        "WARNING start[shm-small]: d",
        "INFO start: e",
    ]
    assert [bool(ready.LINE.fullmatch(line)) for line in lines[:5]] == [True] * 5
    ids = [json.loads(line).get("id") for line in lines[5:]]
    assert ids == [None, "folder-unwritable", "start-failed", "shm-small", None]


def test_a_command_starts_with_a_fresh_process_signals() -> None:
    """Python ignores SIGPIPE, which would make every pipe of the user's command misbehave."""
    before = signal.getsignal(signal.SIGPIPE)
    try:
        runtime.restore_signals()
        assert signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGPIPE, before)


def test_a_users_token_is_not_repeated_in_the_log() -> None:
    """A random one must be shown, since nobody knows it."""
    assert "s3cret" not in server.notice(Jupyter(8888, "s3cret", False))
    assert server.notice(Jupyter(1, "abc", True)).endswith("http://127.0.0.1:1/lab?token=abc")
    assert "WITHOUT a login" in server.notice(Jupyter(8888, "", False))


def test_a_writable_home_is_left_as_it_is(tmp_path: Path) -> None:
    """Only a home that can't be used is replaced."""
    user = runtime.User(os.getuid(), "somebody", tmp_path)
    assert runtime.environment({"HOME": str(tmp_path)}, user) == ({"HOME": str(tmp_path)}, None)


def test_a_user_without_a_name_gets_one(tmp_path: Path) -> None:
    """getpass.getuser(), which torch asks, would raise without it."""
    env, _ = runtime.environment({"HOME": str(tmp_path)}, runtime.User(4242, None, tmp_path))
    assert (env["USER"], env["LOGNAME"]) == ("uid4242", "uid4242")


def test_a_workspace_that_is_gone_is_told() -> None:
    """The reason is part of the line."""
    assert "No such file" in str(runtime.unwritable(Path("/nonexistent"), 1000, False))
