"""The start of a container: validate everything, then set things up, then become what was asked for."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from pathlib import Path
from typing import NoReturn

from . import config, gpu, health, jupyter, keys, runtime, services, sessions, ssh
from .errors import NOT_EXECUTABLE, NOT_FOUND, USAGE, Refusal
from .folder import make_folder
from .log import Log, style

USAGE_TEXT = """\
usage: docker run [OPTIONS] IMAGE [COMMAND [ARGUMENTS…]]
  IMAGE                   {alone}
  IMAGE verify            checks GPU, CUDA, PyTorch and the machine, and trains two small models
  IMAGE python train.py   runs exactly that, in /workspace
options that matter: --gpus all, --shm-size 8g, -v "$PWD:/workspace"
"""
BEST_EFFORT_PORT = 22


def resolve(command: str, path: str) -> str:
    """The file that a command's name stands for, as a shell would find it. Refuses with 127 or 126."""
    places = [Path(command)] if "/" in command else [Path(part or ".") / command for part in path.split(":")]
    files = [place for place in places if place.exists()]
    if not files:
        where = "no such file" if "/" in command else f"it is not on PATH ({path})"
        raise Refusal(f"command '{command}' not found: {where}", NOT_FOUND)
    for file in files:
        if stat.S_ISREG(file.stat().st_mode) and os.access(file, os.X_OK):
            return command if "/" in command else str(file)
    raise Refusal(f"command '{command}' can't be executed: {files[0]} is not an executable file", NOT_EXECUTABLE)


def bind_fault(number: int) -> OSError | None:
    """Why a port can't be listened on, or None."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", number))
            probe.listen()
        except OSError as error:
            return error
    return None


def check_port(number: int, service: str, variable: str) -> None:
    """Refuses a port that can't be had, with the variable that changes it."""
    if (fault := bind_fault(number)) is None:
        return
    reason = "is taken" if fault.errno == errno.EADDRINUSE else f"can't be had ({fault.strerror})"
    raise Refusal(f"port {number} for {service} {reason}: free it, or choose another with -e {variable}=PORT", 1)


def ssh_ports(wanted: int, log: Log) -> tuple[int, ...]:
    """The ports for sshd: the wanted one, and 22 where it can be had."""
    if wanted == BEST_EFFORT_PORT:
        return (wanted,)
    if fault := bind_fault(BEST_EFFORT_PORT):
        log.warning(f"SSH: port 22 can't be had ({fault.strerror}): SSH answers on {wanted} only")
        return (wanted,)
    return (wanted, BEST_EFFORT_PORT)


def host_keys(settings: config.Ssh, private: Path, log: Log) -> tuple[Path, ...]:
    """Copies of the host keys, made now if there are none yet; their fingerprints go to the log."""
    found = ssh.existing_host_keys(settings.host_keys)
    if not found and ssh.writable(settings.host_keys):
        found = (ssh.make_host_key(settings.host_keys),)
    elif not found:
        log.warning(f"SSH: {settings.host_keys} can't be written to: this container's host key ends with it")
        found = (ssh.make_host_key(private),)
    copies = tuple(key if key.parent == private else ssh.private_copy(key, private) for key in found)
    for copy in copies:
        log.info(f"SSH: host key {ssh.host_key_fingerprint(copy)} ({copy.name})")
    return copies


def session_line(env: dict[str, str], log: Log) -> str:
    """sshd's SetEnv line; the log names what sessions do not get."""
    chosen = sessions.select(env)
    if chosen.secrets:
        log.info(f"SSH: sessions do not get these, whose names say secret: {', '.join(chosen.secrets)}")
    if chosen.unfit:
        log.warning(f"SSH: sessions do not get these, which sshd can't carry: {', '.join(chosen.unfit)}")
    return sessions.set_env_line(chosen.variables)


def set_up_ssh(settings: config.Ssh, user: runtime.User, scan: Path, env: dict[str, str], log: Log) -> None:
    """Everything sshd needs, in private files outside of any mount."""
    private = scan.parent / services.PRIVATE
    private.mkdir(mode=0o700)
    authorized = private / "authorized_keys"
    services.write_private(authorized, "".join(f"{key.line}\n" for key in settings.keys))
    ports = ssh_ports(settings.port, log)
    host = host_keys(settings, private, log)
    name = user.name or "trainer"
    text = ssh.render(ssh.installed(), ports, name, host, authorized, session_line(env, log))
    services.add_ssh(scan, text + ("LogLevel ERROR\n" if log.style == "quiet" else ""))
    count = f"{len(settings.keys)} key{'s' if len(settings.keys) > 1 else ''}"
    log.info(f"SSH: log in as {name} on port {' or '.join(map(str, ports))} ({count})")


def set_up_services(wanted: config.Config, user: runtime.User, env: dict[str, str], log: Log) -> Path:
    """The supervisor's scan folder, ready to be started."""
    folder = make_folder()
    scan = services.make_scan_folder(folder, fatal=not wanted.command)
    ports: dict[str, int] = {}
    if wanted.jupyter:
        services.add_jupyter(scan, jupyter.settings(wanted.jupyter, user.uid == 0, log.style))
        log.info(jupyter.notice(wanted.jupyter), always=wanted.jupyter.token_is_random)
        ports[config.JUPYTER] = wanted.jupyter.port
    if wanted.ssh:
        set_up_ssh(wanted.ssh, user, scan, env, log)
        ports[config.SSH] = wanted.ssh.port
    elif config.SSH in wanted.offered and not wanted.command:
        log.info('SSH is off: -e SSH_PUBLIC_KEY="$(cat ~/.ssh/id_ed25519.pub)" -p 2222:2222 turns it on')
    health.write_state(folder, ports)
    return scan


def become(file: str, command: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """Replaces this process by the command; its exit code becomes the container's."""
    runtime.restore_signals()
    sys.stderr.flush()
    try:
        os.execve(file, command, env)
    except OSError as error:
        raise Refusal(f"command '{command[0]}' can't be executed: {error.strerror}", NOT_EXECUTABLE) from None


def supervise_beside(scan: Path, env: dict[str, str]) -> None:
    """Starts the supervisor as PID 1's child, in our process group: signals to the container reach both."""
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            become(services.SVSCAN, (services.SVSCAN, str(scan)), env)
        os._exit(0)
    os.waitpid(child, 0)


def usage(wanted: config.Config) -> str:
    """How to start this image."""
    alone = "starts JupyterLab, and SSH when a key is given" if wanted.offered else "with -it: a shell"
    return USAGE_TEXT.format(alone=alone)


def choose_command(wanted: config.Config) -> tuple[str, ...]:
    """The command to become; empty where the services are all there is to do."""
    if wanted.command and wanted.command[0] in ("--help", "-h"):
        sys.stdout.write(usage(wanted))
        sys.exit(0)
    if wanted.command and wanted.command[0].startswith("-"):
        raise Refusal(f"'{wanted.command[0]}' is no command: options of docker run stand before the image's name")
    if wanted.command or wanted.services:
        return wanted.command
    if sys.stdin is not None and sys.stdin.isatty():
        return ("/bin/bash",)
    sys.stderr.write(usage(wanted))
    raise SystemExit(USAGE)


def check_services(wanted: config.Config, user: runtime.User) -> None:
    """Refuses services that can't be started here."""
    if wanted.jupyter:
        check_port(wanted.jupyter.port, "Jupyter", "JUPYTER_PORT")
    if wanted.ssh:
        check_port(wanted.ssh.port, "SSH", "GPUYARD_SSH_PORT")
        if user.uid == 0 or user.name is None:
            who = "root" if user.uid == 0 else f"uid {user.uid}, which has no name in this image"
            raise Refusal(f"SSH does not serve {who}: leave out --user, or say GPUYARD_SERVICES=jupyter")


def start(argv: tuple[str, ...], env: dict[str, str], log: Log) -> NoReturn:
    """The whole start. Raises Refusal before anything is changed, wherever that can be known."""
    user = runtime.current_user(env)
    config.check_user(env, user.uid)
    image = config.claims()
    wanted = config.read(argv, env, image, user.home)
    command = choose_command(wanted)
    file = resolve(command[0], env.get("PATH", os.defpath)) if command else services.SVSCAN
    check_services(wanted, user)
    gpu.announce(image, log.write)
    runtime.raise_open_files()
    env, notice = runtime.environment(env, user)
    if notice:
        log.warning(notice)
    if not wanted.services:
        if wanted.offered and any(env.get(name) for name in (*keys.VARIABLES, "JUPYTER_TOKEN")):
            log.info("a command was given: the services stay off; GPUYARD_SERVICES=jupyter,ssh turns them on")
        become(file, command, env)
    if fault := runtime.workspace_fault(config.WORKSPACE, user.uid):
        log.warning(fault)
    scan = set_up_services(wanted, user, env, log)
    service_env = {k: v for k, v in env.items() if k not in ("JUPYTER_TOKEN", "JUPYTER_TOKEN_FILE")}
    if not command:
        become(file, (file, str(scan)), service_env)
    supervise_beside(scan, service_env)
    become(file, command, env)


def main(argv: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """The entry point: a refusal is one line on standard error and the exit code."""
    log = Log()
    try:
        log = Log(style(env))
        start(argv, env, log)
    except Refusal as refusal:
        log.error(str(refusal))
        raise SystemExit(refusal.code) from None
    except OSError as error:
        log.error(f"the start failed: {error}: is there space left, and may uid {os.getuid()} write there?")
        raise SystemExit(1) from None
