"""Logins into a running container, as users make them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from ..conftest import KeyPair, greeting, host_port, log_of, wait_for

pytestmark = pytest.mark.image
PORTS = {"2222/tcp": ("127.0.0.1", None), "22/tcp": ("127.0.0.1", None)}
NASTY = {
    "QUOTES": "a \"b\" 'c' \\ end\\",
    "COMMAND": "$(touch /tmp/executed) `touch /tmp/executed` ${HOME} #x; exit 3",
    "UNICODE": "é 漢字 \t tab",
    "lower_case": "kept",
    "EMPTY": "",
    "LINES": "one\n$(touch /tmp/executed)\n\"two\" 'three'\n",
    "LD_LIBRARY_PATH": "/nowhere",
    "name-of-no-shell": "kept too",
}


@pytest.fixture(scope="module")
def server(run_container: Any, key: KeyPair) -> Iterator[Container]:
    """A container that serves SSH only, with an environment full of traps."""
    environment = {**NASTY, "SSH_PUBLIC_KEY": f"# first\n{key.public}\n", "HF_TOKEN": "s3cret"}
    environment["GPUYARD_SERVICES"] = "ssh"
    with run_container(None, environment=environment, ports=PORTS) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        yield container


def call(command: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a client to its end."""
    return subprocess.run(command, input=text or "", capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("port", [2222, 22])
def test_a_key_logs_in_on_both_ports(server: Container, key: KeyPair, port: int) -> None:
    """As trainer, with the image's Python first on PATH."""
    done = call(key.ssh(host_port(server, port), "id -un; command -v python"))
    assert (done.returncode, done.stdout) == (0, "trainer\n/opt/venv/bin/python\n")


def test_a_stranger_is_refused_and_never_asked_for_a_password(server: Container, key: KeyPair, tmp_path: Path) -> None:
    """The server offers the key method only; another key, and root with the right key, are refused."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    port = host_port(server, 2222)
    for stranger, user in ((KeyPair(tmp_path / "other", ""), "trainer"), (key, "root")):
        done = call(stranger.ssh(port, "true", user=user))
        assert done.returncode == 255
        assert "Permission denied (publickey)." in done.stderr


def test_sessions_see_the_containers_environment_and_never_execute_it(server: Container, key: KeyPair) -> None:
    """Quotes, substitutions, tabs, other alphabets and lower-case names arrive as they were given."""
    done = call(key.ssh(host_port(server, 2222), "env -0"))
    seen = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)
    assert {name: seen.get(name) for name in NASTY} == NASTY
    for name in ("PATH", "VIRTUAL_ENV", "LANG", "PYTHONNOUSERSITE"):
        assert seen[name]
    assert server.exec_run("ls /tmp/executed").exit_code != 0


def test_secrets_stay_out_of_sessions_and_the_log_names_them(server: Container, key: KeyPair) -> None:
    """By name only, with the setting that passes one on."""
    done = call(key.ssh(host_port(server, 2222), "env"))
    assert "HF_TOKEN" not in done.stdout
    log = log_of(server)
    assert "GPUYARD_PASS=HF_TOKEN" in log
    assert "s3cret" not in log


def test_a_login_shell_keeps_the_path(server: Container, key: KeyPair) -> None:
    """Debian's own profile would replace it."""
    done = call([*key.ssh(host_port(server, 2222)), "-tt"], 'echo "<$PATH>"; exit\n')
    assert "</opt/venv/bin:" in done.stdout


def test_the_host_key_in_the_log_is_the_one_that_clients_see(server: Container) -> None:
    """Users can compare it before they trust it."""
    port = host_port(server, 2222)
    scanned = subprocess.run(["ssh-keyscan", "-p", str(port), "127.0.0.1"], capture_output=True, check=True)
    shown = subprocess.run(["ssh-keygen", "-lf", "-"], input=scanned.stdout, capture_output=True, check=True)
    fingerprints = {line.split()[1] for line in shown.stdout.decode().splitlines()}
    assert fingerprints
    log = log_of(server)
    assert all(fingerprint in log for fingerprint in fingerprints)


def test_files_go_both_ways(server: Container, key: KeyPair, tmp_path: Path) -> None:
    """scp by its new and its old protocol."""
    source = tmp_path / "data"
    source.write_bytes(os.urandom(100_000))
    options = key.ssh(host_port(server, 2222))[1:-1]
    options[options.index("-p")] = "-P"
    for protocol in ("-s", "-O"):
        back = tmp_path / f"back{protocol}"
        for ends in ((str(source), "trainer@127.0.0.1:/tmp/data"), ("trainer@127.0.0.1:/tmp/data", str(back))):
            assert call(["scp", protocol, *options, *ends]).returncode == 0
        assert back.read_bytes() == source.read_bytes()


def test_a_burst_of_probes_locks_nobody_out(server: Container, key: KeyPair) -> None:
    """OpenSSH 10 punishes a source of many unfinished logins unless told not to."""
    port = host_port(server, 2222)
    for _ in range(40):
        assert greeting(port).startswith(b"SSH-2.0-")
    assert call(key.ssh(port, "true")).returncode == 0


def test_the_log_of_sshd_carries_times_and_levels(server: Container, key: KeyPair) -> None:
    """And health probes from inside leave no line."""
    call(key.ssh(host_port(server, 2222), "true"))
    wait_for(lambda: re.search(r"^20\S+ \S+  INFO ssh: Accepted publickey for trainer", log_of(server), re.MULTILINE))
    told = re.compile(r"20\S+ +\S* *(INFO|WARNING|ERROR) \w+(\[[a-z0-9-]+\])?: ")
    assert not [line for line in log_of(server).splitlines() if not told.match(line)]
    assert server.exec_run("/opt/gpuyard/entrypoints/health").exit_code == 0
    assert "closed by 127.0.0.1" not in log_of(server)


@pytest.mark.parametrize("mode", [pytest.param(0o444, marks=pytest.mark.full), 0o664])
def test_a_mounted_key_file_of_any_owner_and_mode_works(
    run_container: Any, key: KeyPair, tmp_path: Path, mode: int
) -> None:
    """sshd itself would refuse it; it is copied, and left as it is."""
    file = tmp_path / "authorized_keys"
    file.write_text(f"{key.public}\n")
    file.chmod(mode)
    os.chown(file, 12345, 12345)
    before = file.stat()
    volumes = {str(file): {"bind": "/home/trainer/.ssh/authorized_keys", "mode": "ro"}}
    with run_container(None, volumes=volumes, ports=PORTS) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        assert call(key.ssh(port, "true")).returncode == 0
    after = file.stat()
    kept = ("st_ino", "st_uid", "st_gid", "st_mode", "st_mtime_ns", "st_size")
    assert [getattr(before, name) for name in kept] == [getattr(after, name) for name in kept]


def test_host_keys_on_a_volume_outlive_the_container(
    server: Container, run_container: Any, key: KeyPair, tmp_path: Path
) -> None:
    """Without a volume two containers have different keys; with one they have the same."""
    tmp_path.chmod(0o777)

    def fingerprint(volumes: dict[str, dict[str, str]]) -> str:
        environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
        with run_container(None, environment=environment, volumes=volumes) as container:
            log = wait_for(lambda: log_of(container) if "host key SHA256:" in log_of(container) else "")
        return log.split("host key ")[1].split()[0]

    mounted = {str(tmp_path): {"bind": "/var/lib/gpuyard/ssh", "mode": "rw"}}
    assert fingerprint(mounted) == fingerprint(mounted)
    assert fingerprint({}) not in log_of(server)


def test_a_read_only_folder_for_host_keys_is_refused_unless_it_holds_one(
    run: Any, run_container: Any, key: KeyPair, tmp_path: Path
) -> None:
    """Its key would end with the container, which is not what a mount is for."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    mounted = {str(tmp_path): {"bind": "/var/lib/gpuyard/ssh", "mode": "ro"}}
    ended = run(environment=environment, volumes=mounted)
    assert ended.code == 2
    assert "ERROR start[host-keys-unwritable]: " in ended.stderr
    assert "/var/lib/gpuyard/ssh" in ended.stderr
    made = tmp_path / "ssh_host_ed25519_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made)], check=True)
    made.chmod(0o644)
    tmp_path.chmod(0o755)
    with run_container(None, environment=environment, volumes=mounted, ports=PORTS) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))


@pytest.mark.parametrize("user", [pytest.param("12345:0", marks=pytest.mark.full), "54321:54321"])
def test_ssh_serves_any_user_number(run_container: Any, key: KeyPair, user: str) -> None:
    """Under a name that the log tells, with a home, and with ssh and git working inside."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    name = f"uid{user.split(':')[0]}"
    with run_container(None, user=user, environment=environment, ports=PORTS) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        done = call(key.ssh(port, "whoami; touch ~/x && echo home; ssh -G host | head -1", user=name))
        assert done.stdout.splitlines()[:2] == [name, "home"]
        assert "host" in done.stdout.splitlines()[2]
        assert f"log in as {name}" in log_of(container)


def test_a_number_of_a_service_has_no_name_and_no_ssh(run: Any, key: KeyPair) -> None:
    """Numbers below 500 are the system's: told in one line, before anything is started."""
    ended = run(user="300:300", environment={"SSH_PUBLIC_KEY": key.public})
    assert ended.code == 2
    assert "ERROR start[ssh-user]: SSH does not serve uid 300" in ended.stderr


def test_a_number_whose_name_has_no_place_is_told_where_to_give_one(run: Any, key: KeyPair) -> None:
    """A read-only root, whose /run the number may not write to."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    ended = run(user="12345:54321", environment=environment, read_only=True, tmpfs={"/run": ""})
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1)
    assert "ERROR start[ssh-user]: " in ended.stderr
    assert "--tmpfs /run/gpuyard" in ended.stderr


def test_a_key_file_that_cannot_be_read_is_refused_with_the_ways_out(run: Any, key: KeyPair, tmp_path: Path) -> None:
    """A private mode and another owner: what a mount of one's own ~/.ssh often looks like."""
    file = tmp_path / "authorized_keys"
    file.write_text(f"{key.public}\n")
    file.chmod(0o600)
    ended = run(volumes={str(file): {"bind": "/etc/gpuyard/authorized_keys", "mode": "ro"}})
    assert ended.code == 2
    assert "ERROR start[login-key-file-unusable]: /etc/gpuyard/authorized_keys " in ended.stderr
    assert "-e SSH_PUBLIC_KEY=" in ended.stderr


def test_without_port_22_ssh_answers_on_2222_and_says_so(run_container: Any, key: KeyPair) -> None:
    """Port 22 is best effort: with host networking it is seldom free."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    sysctls = {"net.ipv4.ip_unprivileged_port_start": "1024"}
    with run_container(None, environment=environment, ports=PORTS, sysctls=sysctls) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        assert call(key.ssh(port, "true")).returncode == 0
        assert "WARNING start[ssh-port-22]: " in log_of(container)
