"""SSH from a client's view: only the given key logs in, and every container has its own host key."""

from __future__ import annotations

import contextlib
import json
import logging
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace

import paramiko

from gpuyard.acceptance.world import Outside, World, new_key
from gpuyard.engine.session import address, execute
from gpuyard.engine.start import Port
from gpuyard.waiting import until
from verify.model import Claims, Evaluate, Facts, Level, Owner, Status, Verdict

USER = "trainer"
PORT, ALSO = 2222, 22
SECONDS = 10.0
CARRIED = ("PATH", "VIRTUAL_ENV", "NVIDIA_VISIBLE_DEVICES", "PYTORCH_VERSION")
PROGRAM = f"import json,os,sys;print(json.dumps([sys.executable,{{k:os.environ.get(k) for k in {CARRIED!r}}}]))"
# paramiko logs a traceback for each refused connection, which is what several checks are about.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
REMEDY = "look at the container's log; the service is entrypoints/services/ssh"


@contextlib.contextmanager
def transport(where: tuple[str, int]) -> Iterator[paramiko.Transport]:
    """An SSH connection without a login."""
    connection = paramiko.Transport(where)
    connection.banner_timeout = connection.auth_timeout = SECONDS
    try:
        connection.start_client(timeout=SECONDS)
        yield connection
    finally:
        connection.close()


def run_over_ssh(where: tuple[str, int], key: paramiko.PKey, command: str) -> str:
    """What a command prints in an SSH session."""
    with transport(where) as connection:
        connection.auth_publickey(USER, key)
        channel = connection.open_session(timeout=SECONDS)
        channel.settimeout(30)
        channel.exec_command(command)
        return channel.makefile("r").read().decode()


def probe_login(world: World) -> Facts:
    """The interpreter and environment over SSH on each port, and the same by ``docker exec``."""
    command = f"python -c {shlex.quote(PROGRAM)}"
    seen = {}
    for port in (PORT, ALSO):
        try:
            seen[str(port)] = json.loads(run_over_ssh(world.reach(port), world.key, command))
        except (paramiko.SSHException, OSError, ValueError, LookupError) as error:
            seen[str(port)] = f"{type(error).__name__}: {error}"
    direct = execute(world.container, ["python", "-c", PROGRAM])
    return {"ssh": seen, "exec": json.loads(direct.out), "python": world.python}


def evaluate_login(facts: Facts, _claims: Claims) -> Verdict:
    """Fails where a port refuses the login, or a session differs from ``docker exec``."""
    direct, seen = facts["exec"], facts["ssh"]
    faults = [f"port {port}: {answer}" for port, answer in seen.items() if isinstance(answer, str)]
    sessions = {port: answer for port, answer in seen.items() if not isinstance(answer, str)}
    for port, (python, env) in sessions.items():
        if python != facts["python"]:
            faults.append(f"port {port}: python is {python}, not {facts['python']}")
        faults += [
            f"port {port}: {name}={env.get(name)!r}, by docker exec {direct[1].get(name)!r}"
            for name in CARRIED
            if env.get(name) != direct[1].get(name)
        ]
    expected = "the same python and environment as docker exec, on 2222 and 22"
    if faults:
        return Verdict(Status.FAIL, "; ".join(faults), expected, REMEDY, Owner.IMAGE)
    return Verdict(Status.PASS, f"{facts['python']} on ports {' and '.join(seen)}", expected)


def probe_methods(world: World) -> Facts:
    """The login methods that the server offers."""
    with transport(world.reach(PORT)) as connection:
        try:
            connection.auth_none(USER)
        except paramiko.BadAuthenticationType as refusal:
            return {"let_in": False, "methods": list(refusal.allowed_types)}
        return {"let_in": True, "methods": []}


def evaluate_methods(facts: Facts, _claims: Claims) -> Verdict:
    """Passes only where keys are the one way in."""
    expected = "publickey and nothing else"
    if facts["let_in"]:
        return Verdict(Status.FAIL, "a login without key or password succeeds", expected, REMEDY, Owner.IMAGE)
    offered = ", ".join(facts["methods"])
    if facts["methods"] == ["publickey"]:
        return Verdict(Status.PASS, f"offered: {offered}", expected)
    remedy = "AuthenticationMethods publickey in entrypoints/gpuyard_start/ssh/daemon.py"
    return Verdict(Status.FAIL, f"offered: {offered or 'nothing'}", expected, remedy, Owner.IMAGE)


def probe_wrong_key(world: World) -> Facts:
    """Whether an unknown key is accepted."""
    with transport(world.reach(PORT)) as connection:
        try:
            connection.auth_publickey(USER, new_key())
        except paramiko.AuthenticationException:
            return {"let_in": False}
        return {"let_in": True}


def evaluate_wrong_key(facts: Facts, _claims: Claims) -> Verdict:
    """Fails if the unknown key is accepted."""
    if facts["let_in"]:
        return Verdict(Status.FAIL, "an unknown key is accepted", "refused", REMEDY, Owner.IMAGE)
    return Verdict(Status.PASS, "refused", "refused")


def probe_host_keys(world: World) -> Facts:
    """Fingerprints of this container and of a second, short-lived one."""
    start = replace(world.start, ports=(Port(PORT, None),), env=(*world.start.env, "GPUYARD_SERVICES=ssh"), volumes=())
    second = world.session.start(start)
    try:
        until(lambda: second.reload() or address(second, PORT), SECONDS)
        where = address(second, PORT)
        if where is None:
            raise LookupError("the second container publishes no SSH port")
        other = until(lambda: _fingerprint(where), SECONDS)
    finally:
        second.remove(force=True, v=True)
    return {"first": _fingerprint(world.reach(PORT)), "second": other}


def _fingerprint(where: tuple[str, int]) -> str | None:
    try:
        with transport(where) as connection:
            return connection.get_remote_server_key().fingerprint
    except (paramiko.SSHException, OSError, EOFError):
        return None


def evaluate_host_keys(facts: Facts, _claims: Claims) -> Verdict:
    """Fails on equal keys: whoever pulls the image could then pretend to be any container of it."""
    first, second = facts["first"], facts["second"]
    expected = "made at first start, so different"
    if not first or not second:
        return Verdict(Status.UNKNOWN, "a container showed no host key", expected, REMEDY)
    if first == second:
        remedy = "remove /etc/ssh/ssh_host_* in the layer that installs openssh-server"
        return Verdict(Status.FAIL, f"both have {first}", expected, remedy, Owner.IMAGE)
    return Verdict(Status.PASS, f"{first[:19]}… and {second[:19]}…", expected)


def _check(name: str, title: str, probe: Callable[[World], Facts], evaluate: Evaluate, need: str) -> Outside:
    return Outside(name, "ssh", Level.CONTAINER, title, probe, evaluate, (need,), "ssh")


CHECKS = [
    _check("ssh-login", "A key logs in, to the image's environment", probe_login, evaluate_login, "services-ready"),
    _check("ssh-no-password", "No password is ever asked for", probe_methods, evaluate_methods, "ssh-login"),
    _check("ssh-wrong-key", "Another key is refused", probe_wrong_key, evaluate_wrong_key, "ssh-login"),
    _check("ssh-host-key", "Two containers differ in host key", probe_host_keys, evaluate_host_keys, "ssh-login"),
]
