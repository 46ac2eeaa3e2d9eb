"""What a started container does with its command, and what it refuses before anything happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.containers import Run

from .conftest import KeyPair, wait_for
from .jupyter.web import HEALTH

pytestmark = pytest.mark.image
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO start|(WARNING|ERROR) start\[[a-z0-9-]+\]): .+\Z")
NO_GPU = "GPU: no GPU was given to this container: add --gpus all to use one"


def test_standard_output_belongs_to_the_command(run: Run) -> None:
    """What we say goes to standard error, line by line with time and level, the GPU first."""
    ended = run("echo", "hello")
    assert (ended.code, ended.stdout) == (0, "hello\n")
    lines = ended.stderr.splitlines()
    assert lines[0].endswith(f"INFO start: {NO_GPU}")
    assert all(LINE.match(line) for line in lines)


@pytest.mark.parametrize("code", [7, 143])
def test_the_commands_exit_code_is_the_containers(run: Run, code: int) -> None:
    """Nothing lies between them."""
    assert run("sh", "-c", f"exit {code}").code == code


def test_arguments_arrive_as_they_are(run: Run) -> None:
    """No shell sees them."""
    given = ["a b", "$(id)", "`id`", '"', "'", "*", "", "é\n"]
    ended = run("/usr/bin/python3", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *given)
    assert json.loads(ended.stdout) == given


def test_the_command_is_the_user_in_the_workspace(run: Run) -> None:
    """uid 1000, in /workspace, with no process of ours left beside it."""
    ended = run("sh", "-c", 'id -un; pwd; all=$(ps -eo comm=); echo "$all" | sort -u')
    assert ended.stdout.split() == ["trainer", "/workspace", "ps", "sh", "tini"]


def test_a_pipe_of_the_command_breaks_as_pipes_do(run: Run) -> None:
    """The command starts with fresh signals: 'yes' ends by SIGPIPE."""
    assert run("bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}").stdout == "y\n141\n"


def test_a_command_that_is_stopped_gets_the_signal_itself(run_container: Any) -> None:
    """A training that saves on SIGTERM can do so, and its exit code counts."""
    program = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(9)); print('up', flush=True); time.sleep(60)"
    )
    with run_container(["/usr/bin/python3", "-c", program]) as container:
        next(iter(container.logs(stream=True, stderr=False)))
        container.stop(timeout=10)
        container.reload()
        assert container.attrs["State"]["ExitCode"] == 9


@pytest.mark.parametrize(
    ("command", "code", "id"),
    [(["no-such-program"], 127, "command-not-found"), (["--gpus", "all"], 2, "option-after-image")],
)
def test_a_command_that_cannot_run_is_one_line(run: Run, command: list[str], code: int, id: str) -> None:
    """With the code that a shell gives, and nothing on standard output."""
    ended = run(*command)
    assert (ended.code, ended.stdout) == (code, "")
    assert f"start[{id}]: " in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_key_file_that_is_a_folder_is_refused(run: Run, tmp_path: Path) -> None:
    """Docker makes a folder for a mount whose file is missing."""
    ended = run(volumes={str(tmp_path): {"bind": "/etc/gpuyard/authorized_keys", "mode": "ro"}})
    assert ended.code == 2
    assert "ERROR start[login-key-file-unusable]: /etc/gpuyard/authorized_keys is a folder" in ended.stderr


def test_root_is_root_where_it_was_said(run: Run) -> None:
    """Without the word it is refused: one of the bad starts."""
    assert run("id", "-u", user="0", environment={"GPUYARD_ALLOW_ROOT": "yes"}).stdout == "0\n"


def test_logs_can_be_json_or_quiet(run: Run) -> None:
    """Each JSON line is an object; quiet says nothing while all is well."""
    first, second = map(json.loads, run("true", environment={"GPUYARD_LOG": "json"}).stderr.splitlines())
    assert first["message"] == NO_GPU
    assert (second["level"], second["id"]) == ("WARNING", "shm-small")
    assert run("true", environment={"GPUYARD_LOG": "quiet"}).stderr == ""


def test_without_service_and_command_there_is_usage_or_a_shell(run: Run, run_container: Any) -> None:
    """No terminal: usage and code 2. A terminal: a shell."""
    env = {"GPUYARD_SERVICES": "none"}
    ended = run(environment=env)
    assert (ended.code, ended.stdout) == (2, "")
    assert ended.stderr.startswith("usage: docker run")
    with run_container(None, environment=env, tty=True, stdin_open=True) as container:
        wait_for(lambda: "\n/bin/bash\n" in container.exec_run("ps -eo args=").output.decode())


@pytest.mark.parametrize(
    "typed", [pytest.param("jupyter lab --ServerApp.root_dir=/mnt/models", marks=pytest.mark.full), "ssh"]
)
def test_a_word_alone_starts_its_service_alone(run_container: Any, key: KeyPair, typed: str) -> None:
    """Both could be started; the health check knows which one is on, and its options reach the server."""
    word, *options = typed.split()
    with run_container(typed, environment={"SSH_PUBLIC_KEY": key.public}) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == f"{word} answer\n".encode(), 60)
        assert all(option.encode() in container.exec_run("ps -eo args=").output for option in options[1:])


def test_an_interactive_shell_is_the_users_and_ends_with_it(run_container: Any) -> None:
    """On a terminal, in the workspace; its exit code is the container's."""
    with run_container("bash", tty=True, stdin_open=True) as container:
        typed = container.attach_socket(params={"stdin": 1, "stream": 1})
        typed._sock.sendall(b"pwd; id -un; tty; exit 3\n")
        assert container.wait(timeout=20)["StatusCode"] == 3
        assert b"/workspace\r\ntrainer\r\n/dev/pts/0" in container.logs()


def test_any_user_id_has_a_home_and_a_name(run: Run) -> None:
    """Where the system's list has no such user."""
    program = (
        "import getpass, os, pathlib; p = pathlib.Path.home() / 'x'; p.touch(); print(getpass.getuser(), os.getuid())"
    )
    ended = run("python3", "-c", program, user="12345:0")
    assert ended.stdout == "uid12345 12345\n"


def test_a_command_with_a_key_starts_no_service(run: Run, key: KeyPair) -> None:
    """The key alone turns nothing on; a line says what does."""
    ended = run("ps", "-eo", "comm=", environment={"SSH_PUBLIC_KEY": key.public})
    assert ended.stdout.split() == ["tini", "ps"]
    assert "GPUYARD_SERVICES=jupyter,ssh" in ended.stderr


def test_a_full_disk_is_one_line_and_no_traceback(run: Run) -> None:
    """There is no room for the services' files."""
    ended = run(read_only=True, tmpfs={"/tmp": "size=4096"}, shm_size=4096)
    assert ended.code == 1
    assert "ERROR start[start-failed]: " in ended.stderr
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
