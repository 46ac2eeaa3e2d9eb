"""Processes that are killed in a running container: what comes back, what ends, and what is said."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from docker.models.containers import Container

from gpuyard.catalogue.table import Catalogue

from ..conftest import KeyPair, greeting, host_port, log_of, wait_for
from ..jupyter.web import HEALTH, PORTS, get, healthy
from ..test_one_environment import ask_jupyter
from .test_services_running import seconds_to_stop

pytestmark = pytest.mark.image
SSH_PORTS = {**PORTS, "2222/tcp": ("127.0.0.1", None)}


@pytest.fixture(scope="module")
def both(run_container: Any, key: KeyPair) -> Iterator[Container]:
    """A container with both services."""
    environment = {"SSH_PUBLIC_KEY": key.public, "JUPYTER_TOKEN": "t"}
    with run_container(None, environment=environment, ports=SSH_PORTS) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        yield container


def kill(container: Container, pattern: str, signal: str = "KILL") -> None:
    """Kills what matches, as root, from outside of every session."""
    assert container.exec_run(["pkill", f"-{signal}", "-f", pattern], user="root").exit_code == 0


def pids(container: Container, pattern: str) -> set[str]:
    """The numbers of what matches."""
    return set(container.exec_run(["pgrep", "-f", pattern]).output.decode().split())


def test_a_killed_kernel_is_started_again_by_its_server(both: Container) -> None:
    """The page says that it died; the server and its other kernels go on."""
    ask_jupyter(both, "", "1", token="t")
    before, server = pids(both, "ipykernel_launcher"), pids(both, "bin/jupyter-lab")
    kill(both, "ipykernel_launcher")
    wait_for(lambda: pids(both, "ipykernel_launcher") - before, 30)
    assert pids(both, "bin/jupyter-lab") == server
    assert "AsyncIOLoopKernelRestarter: restarting kernel" in log_of(both)


def test_a_killed_jupyter_comes_back_and_leaves_no_kernel_behind(both: Container) -> None:
    """Orphans would hold a GPU's memory."""
    kill(both, "bin/jupyter-lab")
    wait_for(lambda: "WARNING start[service-ended]: jupyter ended (killed by signal 9)" in log_of(both))
    wait_for(lambda: get(f"http://127.0.0.1:{host_port(both, 8888)}/api")[0] == 200, 60)
    wait_for(lambda: not pids(both, "ipykernel_launcher"), 20)


def test_a_killed_session_ends_its_connection_alone(both: Container, key: KeyPair) -> None:
    """Others stay, and new ones are taken."""
    port = host_port(both, 2222)
    with (
        subprocess.Popen(key.ssh(port, "exec -a victim sleep 600"), stderr=subprocess.DEVNULL) as victim,
        subprocess.Popen(key.ssh(port, "exec -a other sleep 600")) as other,
    ):
        wait_for(lambda: pids(both, "^victim") and pids(both, "^other"))
        (session,) = both.exec_run(["ps", "-o", "ppid=", *pids(both, "^victim")]).output.split()
        assert both.exec_run(["kill", "-9", session.decode()], user="root").exit_code == 0
        assert victim.wait(20) == 255
        assert other.poll() is None
        assert subprocess.run(key.ssh(port, "true"), timeout=20, check=False).returncode == 0
        other.terminate()


def test_a_killed_watch_over_a_service_is_replaced(both: Container, key: KeyPair) -> None:
    """The supervisor's helper, one for each service: sshd answers again after it."""
    before = pids(both, "s6-supervise ssh$")
    kill(both, "s6-supervise ssh$")
    wait_for(lambda: pids(both, "s6-supervise ssh$") - before, 20)
    wait_for(lambda: greeting(host_port(both, 2222)).startswith(b"SSH-2.0-"), 30)
    assert subprocess.run(key.ssh(host_port(both, 2222), "true"), timeout=20, check=False).returncode == 0


def test_orphans_that_end_leave_no_zombie(both: Container) -> None:
    """PID 1 buries whom nobody else does."""
    script = "for i in $(seq 20); do (sleep 0.1 & exec true) & done; wait"
    both.exec_run(["bash", "-c", script])
    wait_for(lambda: b"Z" not in both.exec_run("ps -eo stat=").output, 10)


def test_a_killed_supervisor_ends_the_container(run_container: Any, key: KeyPair) -> None:
    """At once and not in order; nothing is left half alive, and the container starts again."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    with run_container(None, environment=environment, ports=SSH_PORTS) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        # No exit code is asked for: it ends with the container.
        container.exec_run(["pkill", "-KILL", "-f", "s6-svscan "], user="root")
        assert container.wait(timeout=20)["StatusCode"] == 137
        assert "ERROR start[supervisor-killed]: " in log_of(container)
        container.start()
        wait_for(lambda: greeting(host_port(container, 2222)).startswith(b"SSH-2.0-"))


@pytest.mark.full
def test_a_jupyter_that_cannot_run_ends_the_container_with_its_reason(run_container: Any) -> None:
    """After waits that grow; the word of a mode and its options reach the server."""
    command = ["jupyter", "lab", "--ServerApp.root_dir=/no/such/folder"]
    with run_container(command) as container:
        assert container.wait(timeout=120)["StatusCode"] == 1
        log = log_of(container)
    assert "/no/such/folder" in log
    assert "failure 4 of 5" in log
    assert "ERROR start[service-gave-up]: jupyter failed 5 times within 120 s, last with exit code 1" in log


BUSY = """
import pathlib, signal, sys, time
def save(*_):
    time.sleep(3)
    pathlib.Path("/workspace/saved-{way}").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path("/workspace/busy-{way}").touch()
while True:
    time.sleep(0.1)
"""


def test_work_is_told_at_once_and_given_dockers_whole_patience(
    run_container: Any, key: KeyPair, tmp_path: Any, table: Catalogue
) -> None:
    """A kernel, a program over SSH and one in tmux, each of which needs three seconds to save its state.

    A kernel's ``sys.exit`` ends its cell alone; the kernel follows, or the stop would take all twenty seconds. A
    package that has the name of a folder of ours is in nobody's way.
    """
    tmp_path.chmod(0o777)
    for way in ("ssh", "tmux"):
        (tmp_path / f"{way}.py").write_text(BUSY.format(way=way))
    environment = {"SSH_PUBLIC_KEY": key.public, "JUPYTER_TOKEN": "t"}
    site = f"/opt/venv/lib/python{table.os[table.default_os].python}/site-packages"
    (tmp_path / "entrypoints.py").write_text("raise ImportError('somebody needs it')\n")
    volumes = {
        str(tmp_path): {"bind": "/workspace", "mode": "rw"},
        str(tmp_path / "entrypoints.py"): {"bind": f"{site}/entrypoints.py", "mode": "ro"},
    }
    with run_container(None, environment=environment, ports=SSH_PORTS, volumes=volumes) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        port = host_port(container, 2222)
        subprocess.run(key.ssh(port, "tmux new-session -d 'python /workspace/tmux.py'"), timeout=20, check=True)
        with subprocess.Popen([*key.ssh(port), "-tt", "python /workspace/ssh.py"], stdin=subprocess.PIPE) as login:
            start = f"get_ipython().run_cell({BUSY.format(way='kernel')!r})"
            ask_jupyter(container, "", start, token="t", wait=False)
            wait_for(lambda: len(list(tmp_path.glob("busy-*"))) == 3, 60)
            assert 3 < seconds_to_stop(container) < 15
            login.wait(20)
        assert {path.name for path in tmp_path.glob("saved-*")} == {"saved-kernel", "saved-ssh", "saved-tmux"}
        assert container.wait(timeout=5)["StatusCode"] == 0


def test_an_idle_kernel_and_an_idle_login_do_not_delay_the_end(run_container: Any, key: KeyPair) -> None:
    """Two seconds, as without them; below an engine's own first process, too."""
    environment = {"SSH_PUBLIC_KEY": key.public, "JUPYTER_TOKEN": "t"}
    with run_container(None, environment=environment, ports=SSH_PORTS, init=True) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        ask_jupyter(container, "", "1", token="t")
        with subprocess.Popen([*key.ssh(host_port(container, 2222)), "-tt"], stdin=subprocess.PIPE) as login:
            wait_for(lambda: b"pts" in container.exec_run("ps -eo tty=").output)
            assert seconds_to_stop(container) < 2.0
            login.wait(20)
        assert container.attrs["State"]["ExitCode"] == 0


def test_a_stop_tells_no_process_of_the_host(run_container: Any, key: KeyPair) -> None:
    """With the host's processes in sight, one of the same user's that was started from a shell goes on."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    shell = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "bash", "-c", "sleep 600 & echo $!; wait"]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, text=True, cwd="/") as login:
        assert login.stdout is not None
        theirs = int(login.stdout.readline())
        try:
            with run_container(None, environment=environment, ports=SSH_PORTS, pid_mode="host") as container:
                wait_for(lambda: greeting(host_port(container, 2222)))
                ours = key.ssh(host_port(container, 2222), "exec -a ours-of-the-test sleep 600")
                with subprocess.Popen(ours) as client:
                    wait_for(lambda: pids(container, "^ours-of-the-test"))
                    container.stop(timeout=10)
                    assert client.wait(20) != 0
            assert login.poll() is None
        finally:
            os.kill(theirs, signal.SIGKILL)
            login.wait(10)


def test_a_log_in_json_is_json_to_the_last_line(run_container: Any, key: KeyPair) -> None:
    """Of the start, of Jupyter and of sshd, from the first line to the end in order."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_LOG": "json", "JUPYTER_TOKEN": "t"}
    with run_container(None, environment=environment, ports=SSH_PORTS) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        ask_jupyter(container, "", "import os; os.write(2, b'raw words of a library\\n')", token="t")
        subprocess.run(key.ssh(host_port(container, 2222), "true"), timeout=20, check=True)
        container.stop(timeout=20)
        found = [json.loads(line) for line in log_of(container).splitlines()]
    assert {item["source"] for item in found} == {"start", "jupyter", "ssh"}
    assert all({"time", "level", "message"} <= item.keys() for item in found)
    assert any(item["message"].startswith("Accepted publickey for trainer") for item in found)


def test_no_line_of_a_plain_start_is_chatter(run_container: Any) -> None:
    """Each has time and level, and the only address is the one that works."""
    with run_container(None, ports=PORTS) as container:
        healthy(container)
        lines = log_of(container).splitlines()
    assert [
        line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT\S+ (INFO|WARNING|ERROR) \w+(\[[a-z0-9-]+\])?: ", line)
    ] == []
    assert len([line for line in lines if "http" in line]) == 1
    assert [line for line in lines if " jupyter: " in line] == []
