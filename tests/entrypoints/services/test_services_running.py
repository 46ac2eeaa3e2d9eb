"""The services of a running container: Jupyter's login, health, restarts, giving up, stopping, hard limits."""

from __future__ import annotations

import io
import json
import re
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from ..conftest import KeyPair, greeting, host_port, log_of, wait_for

pytestmark = pytest.mark.image
PORTS = {"8888/tcp": ("127.0.0.1", None), "2222/tcp": ("127.0.0.1", None)}
HEALTH = "/opt/gpuyard/entrypoints/health"
CLIENT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(port: int, path: str) -> tuple[int, bytes]:
    """Status and body of a page of Jupyter's."""
    try:
        with CLIENT.open(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def jupyter_port(container: Container) -> int:
    """Jupyter's port on this machine, once it answers."""
    port = host_port(container, 8888)
    wait_for(lambda: get(port, "/api")[0] == 200, 60)
    return port


@pytest.fixture(scope="module")
def both(run_container: Any, key: KeyPair) -> Iterator[Container]:
    """A container with both services and a random token."""
    environment = {"SSH_PUBLIC_KEY": key.public, "http_proxy": "http://127.0.0.1:1"}
    with run_container(None, environment=environment, ports=PORTS) as container:
        jupyter_port(container)
        yield container


def test_the_url_in_the_log_logs_in_and_nothing_else_does(both: Container) -> None:
    """No token and a wrong one are refused; the random one is shown exactly once."""
    port = jupyter_port(both)
    tokens = re.findall(r"http://127\.0\.0\.1:8888/lab\?token=([0-9a-f]+)", log_of(both))
    assert len(tokens) == 1
    assert get(port, "/api/status")[0] == 403
    assert get(port, "/api/status?token=wrong")[0] == 403
    assert get(port, f"/api/status?token={tokens[0]}")[0] == 200


def test_jupyter_shows_the_workspace(both: Container) -> None:
    """That is where people mount their folder; and no token is needed to see that the server is up."""
    token = log_of(both).split("token=")[1].split()[0]
    port = jupyter_port(both)
    assert both.exec_run("touch /workspace/seen-by-jupyter").exit_code == 0
    listing = json.loads(get(port, f"/api/contents?token={token}")[1])
    assert "seen-by-jupyter" in [entry["name"] for entry in listing["content"]]


def test_both_services_are_healthy_even_behind_a_dead_proxy(both: Container) -> None:
    """The health check asks both, within the second."""
    begun = time.monotonic()
    code, output = both.exec_run(HEALTH)
    assert (code, output.decode().strip()) == (0, "jupyter, ssh answer")
    assert time.monotonic() - begun < 1.0


COST = f"""
import subprocess, time
def once():
    begun = time.perf_counter()
    subprocess.run(["{HEALTH}"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun
print(min(once() for _ in range(8)))
"""


def test_a_health_check_costs_less_than_a_tenth_of_a_second(both: Container) -> None:
    """It is made every ten seconds for weeks; the best of some, since other tests use the machine, too."""
    assert float(both.exec_run(["/usr/bin/python3", "-IS", "-c", COST]).output) < 0.1


def test_everything_of_ours_runs_as_the_user(both: Container) -> None:
    """No process belongs to root."""
    users = set(both.exec_run("ps -eo uid=").output.decode().split())
    assert users == {"1000"}


def test_a_service_that_dies_is_unhealthy_and_comes_back(run_container: Any, key: KeyPair) -> None:
    """The health check names it; the supervisor starts it again and says so."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    with run_container(None, environment=environment, ports=PORTS) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        container.exec_run("pkill -9 -f listener")
        code, output = container.exec_run(HEALTH)
        assert (code, b"ssh on port 2222 can't be reached" in output) == (1, True)
        wait_for(lambda: greeting(port).startswith(b"SSH-2.0-"))
        assert container.exec_run(HEALTH).exit_code == 0
        assert "WARNING start[service-ended]: ssh ended (killed by signal 9)" in log_of(container)


def test_a_service_that_cannot_run_ends_the_container_with_its_reason(run_container: Any, key: KeyPair) -> None:
    """After five failures, with the service's own exit code; no secret stays in the container."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    spoil = "echo Bogus yes >> $(pgrep -fa listener | grep -o '/[^ ]*/sshd_config'); pkill -9 -f listener"
    with run_container(None, environment=environment, ports=PORTS) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        container.exec_run(["bash", "-c", spoil])
        assert container.wait(timeout=60)["StatusCode"] == 255
        log = log_of(container)
        assert re.search(r"ERROR ssh: .*Bad configuration option: Bogus", log)
        assert "ERROR start[service-gave-up]: ssh failed 5 times within 120 s, last with exit code 255" in log
        stream, _ = container.get_archive("/run/gpuyard")
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as left:
            names = left.getnames()
        assert any("/gpuyard-1000-" in name for name in names)
        assert not [name for name in names if "authorized_keys" in name or name.endswith("/services")]


def seconds_to_stop(container: Container) -> float:
    """From the signal to the container's end, by Docker's own clock."""
    begun = time.time()
    container.stop(timeout=20)
    container.reload()
    finished = container.attrs["State"]["FinishedAt"][:26].rstrip("Z")
    return datetime.fromisoformat(f"{finished}+00:00").timestamp() - begun


@pytest.mark.full
def test_a_stop_takes_two_seconds_at_most(run_container: Any, key: KeyPair) -> None:
    """With both services idle; the exit code is that of an end in order."""
    with run_container(None, environment={"SSH_PUBLIC_KEY": key.public}, ports=PORTS) as container:
        jupyter_port(container)
        assert seconds_to_stop(container) < 2.0
        assert container.attrs["State"]["ExitCode"] == 0


def test_a_container_that_was_killed_starts_again(run_container: Any, key: KeyPair) -> None:
    """What the first start left behind does not get in the way, and the host key is the same."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    with run_container(None, environment=environment, ports=PORTS) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        container.kill()
        container.start()
        wait_for(lambda: greeting(host_port(container, 2222)))
        assert len(set(re.findall(r"host key (\S+)", log_of(container)))) == 1


def test_services_beside_a_command_end_with_it(run_container: Any, key: KeyPair) -> None:
    """The command is the container: its exit code counts, and its service answers while it runs."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    command = ["sh", "-c", "read line; exit 5"]
    with run_container(command, environment=environment, ports=PORTS, stdin_open=True) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        container.exec_run("pkill -HUP -f 'read line'")
        assert container.wait(timeout=20)["StatusCode"] == 129


HARD: dict[str, Any] = {
    "read_only": True,
    "tmpfs": {"/tmp": "", "/run": ""},
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
}


@pytest.mark.parametrize(
    ("options", "services"),
    [
        ({**HARD, "user": "12345:54321", "tmpfs": {"/tmp": "", "/run/gpuyard": ""}}, "jupyter,ssh"),
        # What lies between the strictest and nothing.
        pytest.param(HARD, "jupyter,ssh", marks=pytest.mark.full),
        pytest.param({"read_only": True, "tmpfs": {"/tmp": ""}}, "jupyter,ssh", marks=pytest.mark.full),
        pytest.param({"user": "12345:0"}, "jupyter", marks=pytest.mark.full),
    ],
    ids=["hardened-any-uid", "hardened", "read-only", "any-uid"],
)
def test_services_run_under_hard_limits(
    run_container: Any, key: KeyPair, options: dict[str, Any], services: str
) -> None:
    """A read-only root, no capability, any user id."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": services}
    with run_container(None, environment=environment, ports=PORTS, **options) as container:
        answer = f"{services.replace(',', ', ')} answer\n"
        wait_for(lambda: container.exec_run(HEALTH).output.decode() == answer, 60)


def test_a_workspace_of_someone_else_is_told_and_left_alone(run_container: Any, tmp_path: Path) -> None:
    """Who owns it, who we are, and which option helps; the folder stays as it is."""
    tmp_path.chmod(0o755)
    before = tmp_path.stat()
    with run_container(None, volumes={str(tmp_path): {"bind": "/workspace", "mode": "rw"}}) as container:
        wait_for(lambda: "WARNING start[folder-unwritable]: /workspace " in log_of(container))
        assert "chown it to 1000 on the host" in log_of(container)
    assert tmp_path.stat()[:6] == before[:6]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_quiet_start_still_shows_the_random_token(run_container: Any) -> None:
    """Nobody could log in without it; all else is silent."""
    with run_container(None, environment={"GPUYARD_LOG": "quiet"}, ports=PORTS) as container:
        jupyter_port(container)
        lines = log_of(container).splitlines()
    assert len(lines) == 1
    assert "/lab?token=" in lines[0]
