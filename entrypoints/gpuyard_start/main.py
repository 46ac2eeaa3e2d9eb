"""The start of a container: validate everything, then set things up, then run what was asked for."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

from . import config, settings
from .additions import ca, caches, hooks, overlay
from .errors import NOT_EXECUTABLE, NOT_FOUND, USAGE, Refusal
from .gpu import limits, line
from .jupyter import tls
from .log import Log, style
from .services import health, ports, scan_folder
from .services.setup import set_up_services
from .ssh import daemon, keys, sessions
from .user import homes, names, privileges, runtime, users

USAGE_TEXT = """\
usage: docker run [OPTIONS] IMAGE [COMMAND [ARGUMENTS…]]
  IMAGE                   {alone}
  IMAGE verify            checks GPU, CUDA, PyTorch and the machine, and trains two small models
  IMAGE python train.py   runs exactly that, in /workspace
options that matter: --gpus all, --shm-size 8g, -v "$PWD:/workspace"
"""


def resolve(command: str, path: str) -> str:
    """The file of a command, found as a shell does. Raises Refusal with code 127 or 126."""
    places = [Path(command)] if "/" in command else [Path(part or ".") / command for part in path.split(":")]
    files = [place for place in places if place.exists()]
    if not files:
        where = "no such file" if "/" in command else f"it is not on PATH ({path})"
        raise Refusal("command-not-found", f"command '{command}' not found: {where}", code=NOT_FOUND)
    for file in files:
        if stat.S_ISREG(file.stat().st_mode) and os.access(file, os.X_OK):
            return command if "/" in command else str(file)
    raise _not_executable(command, f"{files[0]} is not an executable file")


def _not_executable(command: str, why: str) -> Refusal:
    return Refusal("command-not-executable", f"command '{command}' can't be executed: {why}", code=NOT_EXECUTABLE)


def exec_command(file: str, command: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """Replaces this process by the command; its exit code becomes the container's."""
    runtime.restore_signals()
    sys.stderr.flush()
    try:
        os.execve(file, command, env)
    except OSError as error:
        raise _not_executable(command[0], str(error.strerror)) from None


def supervise_beside(scan: Path, env: dict[str, str]) -> None:
    """Starts the supervisor as PID 1's child, in our process group: signals to the container reach both."""
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            exec_command(scan_folder.SUPERVISOR, (scan_folder.SUPERVISOR, str(scan)), env)
        os._exit(0)
    os.waitpid(child, 0)


def usage(wanted: config.Config) -> str:
    alone = "starts JupyterLab, and SSH when a key is given" if wanted.offered else "with -it: a shell"
    return USAGE_TEXT.format(alone=alone)


def choose_command(wanted: config.Config) -> tuple[str, ...]:
    """The command to run; empty if only services were asked for."""
    if wanted.command and wanted.command[0] in ("--help", "-h"):
        sys.stdout.write(usage(wanted))
        sys.exit(0)
    if wanted.command and wanted.command[0].startswith("-"):
        raise Refusal(
            "option-after-image",
            f"'{wanted.command[0]}' is not a command: options of docker run go before the image's name",
        )
    if wanted.command or wanted.services:
        return wanted.command
    if sys.stdin is not None and sys.stdin.isatty():
        return ("/bin/bash",)
    sys.stderr.write(usage(wanted))
    raise SystemExit(USAGE)


def check_services(wanted: config.Config, user: runtime.User, given: tuple[Path, ...]) -> None:
    """Refuses services that can't be started here."""
    if wanted.jupyter:
        ports.check(wanted.jupyter.port, "Jupyter", "JUPYTER_PORT")
        tls.check(wanted.jupyter)
    if wanted.ssh:
        ports.check(wanted.ssh.port, "SSH", "GPUYARD_SSH_PORT")
        if user.uid == 0 or (user.name is None and not names.possible(user.uid)):
            who = "root" if user.uid == 0 else f"uid {user.uid}, which has no name in this image"
            place = "add --tmpfs /run/gpuyard" if user.uid >= names.SMALLEST else "leave out --user"
            raise Refusal("ssh-user", f"SSH does not serve {who}: {place}, or set GPUYARD_SERVICES=jupyter")
        daemon.refuse_useless_folder(wanted.ssh.host_keys, wanted.ssh.host_keys != config.HOST_KEY_FOLDER, given)


class Plan(NamedTuple):
    """A start that has been validated: nothing was changed yet, and nothing else can be refused."""

    target: users.Target | None
    user: runtime.User
    image: dict[str, object]
    wanted: config.Config
    command: tuple[str, ...]
    setup: tuple[Path, ...]
    start: tuple[Path, ...]


def plan(argv: tuple[str, ...], env: dict[str, str]) -> Plan:
    """Reads and checks everything. Raises Refusal; changes nothing."""
    target = users.target(env, os.getuid(), os.getgid())
    user = runtime.future_user(target) if target else runtime.current_user(env)
    image = config.claims()
    setup = hooks.find(hooks.SETUP)
    given = privileges.to_give(target)
    # Files are read as the user will read them: NFS may not know root, and a volume's link may lead anywhere.
    with privileges.acting_as(target):
        wanted = config.read(argv, env, image, user.home, given)
        command = choose_command(wanted)
        sessions.select(env)
        path = overlay.entered(env, wanted.overlay)["PATH"] if wanted.overlay else env.get("PATH", os.defpath)
        if command:
            resolve(command[0], path)
        check_services(wanted, user, given)
        start = hooks.find(hooks.START)
    return Plan(target, user, image, wanted, command, setup, start)


def surroundings(made: Plan, env: dict[str, str], log: Log) -> dict[str, str]:
    """The environment with a home, a place for temporary files and what the user asked for by variable."""
    env, notice = runtime.environment(env, made.user, dropped=made.target is not None)
    if made.wanted.cache:
        env = caches.entered(env, made.wanted.cache)
    env, closed = homes.moved(homes.pictured(env))
    env, temporary = runtime.temporary(env)
    env = runtime.screens(env)
    for warning in filter(None, (notice, closed, temporary)):
        log.warning(*warning)
    if made.wanted.certificates:
        env = ca.trusted(env, made.wanted.certificates)
    if number := limits.processors():
        env.setdefault("OMP_NUM_THREADS", str(number))
        log.info(f"processor time is limited to that of {number}: OMP_NUM_THREADS is {env['OMP_NUM_THREADS']}")
    return env


def prepare(made: Plan, env: dict[str, str], log: Log) -> dict[str, str]:
    """The steps that every mode takes; the environment of what is started."""
    hooks.run(made.setup, env, log)
    if made.target:
        for warning in privileges.change_user(made.target):
            log.warning(*warning)
        log.info(f"the container was started as root; from here on it is {made.user.describe()}")
    line.announce(made.image, log)
    for warning in (*filter(None, [settings.foreign(env)]), *settings.unknown(env), *limits.small()):
        log.warning(*warning)
    runtime.raise_open_files()
    env = surroundings(made, env, log)
    if made.user.name is None and names.possible(made.user.uid):
        names.give(made.user.uid, os.getgid(), Path(env["HOME"]), sessions.PROGRAM)
    for warning in runtime.mount_faults(made.user, made.target is not None, bool(made.wanted.services)):
        log.warning(*warning)
    if folder := made.wanted.overlay:
        if overlay.make(folder):
            log.info(f"made {folder}: pip installs into it from now on")
    else:
        folder = overlay.temporary()
    return overlay.entered(env, folder) if folder else env


def start(argv: tuple[str, ...], env: dict[str, str], log: Log) -> NoReturn:
    """The whole start. Raises Refusal, if possible before anything is changed."""
    made = plan(argv, env)
    wanted, command = made.wanted, made.command
    before, env = env, prepare(made, env, log)
    # Once more: an environment that was just made comes first on PATH.
    file = resolve(command[0], env.get("PATH", os.defpath)) if command else scan_folder.SUPERVISOR
    if not wanted.services:
        if wanted.offered and any(env.get(name) for name in (*keys.VARIABLES, settings.TOKEN.name)):
            log.info("a command was given: the services stay off; GPUYARD_SERVICES=jupyter,ssh turns them on")
        if env.get("VIRTUAL_ENV") != before.get("VIRTUAL_ENV") or wanted.cache or wanted.certificates:
            sessions.keep(env)
        health.keep_gpu()
        hooks.run(made.start, env, log)
        exec_command(file, command, env)
    variables, secrets = sessions.select(env)
    if secrets:
        log.info(
            f"sessions and kernels do not get variables with secret-looking names: {', '.join(secrets)}"
            f" ({settings.PASS.name}={secrets[0]} passes one on)"
        )
    scan = set_up_services(wanted, runtime.current_user(env), variables, log)
    hooks.run(made.start, env, log)
    service_env = {name: env[name] for name in ("USER", "LOGNAME") if name in env} | variables
    if not command:
        exec_command(file, (file, str(scan)), service_env)
    supervise_beside(scan, service_env)
    exec_command(file, command, env)


def main(argv: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """The entry point: a refusal is one line on standard error and the exit code."""
    log = Log()
    try:
        log = Log(style(env))
        start(argv, env, log)
    except Refusal as refusal:
        log.error(refusal.id, str(refusal))
        raise SystemExit(refusal.code) from None
    except OSError as error:
        log.error(
            "start-failed", f"the start failed: {error}: is there space left, and may uid {os.getuid()} write there?"
        )
        raise SystemExit(1) from None
