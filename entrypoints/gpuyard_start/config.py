"""What the container was asked to do: the environment and the arguments, parsed once and validated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from . import modes, settings
from .additions import ca, caches, overlay
from .errors import Refusal
from .jupyter.config import Jupyter, read_jupyter
from .ssh import keys

IMAGE_JSON = Path("/etc/gpuyard/image.json")
HOST_KEY_FOLDER = Path(settings.HOST_KEYS.default)
SYSTEM_KEYS = Path("/etc/gpuyard/authorized_keys")
JUPYTER = "jupyter"
SSH = "ssh"
SERVICES = (JUPYTER, SSH)


class Ssh(NamedTuple):
    """sshd as it will be started: ``port`` must be free, 22 is used in addition where it is free, too."""

    port: int
    keys: tuple[keys.KeyLine, ...]
    host_keys: Path
    strict: bool = False


class Config(NamedTuple):
    """The whole start, validated. No command and no service means a shell."""

    command: tuple[str, ...]
    jupyter: Jupyter | None
    ssh: Ssh | None
    offered: tuple[str, ...]
    overlay: Path | None = None
    cache: Path | None = None
    certificates: bytes | None = None

    @property
    def services(self) -> tuple[str, ...]:
        """The services to start, in order."""
        wanted = {JUPYTER: self.jupyter, SSH: self.ssh}
        return tuple(name for name in SERVICES if wanted[name] is not None)


def claims(path: Path = IMAGE_JSON) -> dict[str, object]:
    """What the image says about itself; nothing if the file is missing."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Refusal("image-damaged", f"{path} can't be used ({error}): pull or build the image again") from None
    return found if isinstance(found, dict) else {}


def offered_services(image: dict[str, object]) -> tuple[str, ...]:
    """The services that this image ships, by its own claims."""
    listed = image.get("services")
    return tuple(name for name in SERVICES if isinstance(listed, list) and name in listed)


def wanted_services(env: dict[str, str], offered: tuple[str, ...]) -> tuple[str, ...] | None:
    """The services named by ``GPUYARD_SERVICES``; None if it is unset."""
    named = settings.SERVICES.read(env)
    if named in ((), ("none",)):
        return () if named else None
    for name in named:
        if name not in SERVICES:
            raise Refusal("setting-invalid", f"GPUYARD_SERVICES names '{name}': expected {', '.join(SERVICES)} or none")
        if name not in offered:
            raise Refusal(
                "service-not-in-image",
                f"GPUYARD_SERVICES asks for {name}, which this image does not have: use the workbench image",
            )
    return tuple(name for name in SERVICES if name in named)


def read_ssh(env: dict[str, str], home: Path, asked: bool) -> Ssh | None:
    """sshd's port and keys; None if no key was given and SSH was not asked for by name."""
    number, strict = settings.SSH_PORT.read(env), settings.SSH_STRICT.read(env)
    found = keys.collect(env, (SYSTEM_KEYS, home / ".ssh" / "authorized_keys"))
    folder = settings.HOST_KEYS.read(env)
    if not found and asked:
        raise Refusal("login-key-missing", 'SSH was asked for without a key: add -e SSH_PUBLIC_KEY="$(cat FILE.pub)"')
    if not found:
        return None
    return Ssh(number, found, folder or HOST_KEY_FOLDER, strict)


def _with_mode(mode: modes.Mode, env: dict[str, str]) -> dict[str, str]:
    """Translates a mode argument into its environment variables. Refuses two that disagree."""
    given = {settings.SERVICES.name: mode.service, settings.JUPYTER_PORT.name: mode.port}
    found = dict(env)
    for name, value in given.items():
        if value is None:
            continue
        if env.get(name, "").strip() not in ("", value):
            raise Refusal(
                "settings-conflict", f"{name}={env[name]}, but the command asks for {value}: give one of them"
            )
        found[name] = value
    return found


def read(
    argv: tuple[str, ...], env: dict[str, str], image: dict[str, object], home: Path, given: tuple[Path, ...] = ()
) -> Config:
    """Everything that was asked for. Raises Refusal; changes nothing. ``given``: folders that will be the user's."""
    mode = modes.read(argv)
    env = _with_mode(mode, env)
    argv = mode.command
    offered = offered_services(image)
    named = wanted_services(env, offered)
    chosen = named if named is not None else (() if argv else offered)
    jupyter = read_jupyter(env, mode.options) if JUPYTER in chosen else None
    ssh = read_ssh(env, home, asked=named is not None) if SSH in chosen else None
    if jupyter and ssh and jupyter.port in (ssh.port, 22):
        raise Refusal(
            "settings-conflict",
            f"Jupyter and SSH both want port {jupyter.port}: change JUPYTER_PORT or GPUYARD_SSH_PORT",
        )
    added = overlay.wanted(env, given), caches.wanted(env, given), ca.wanted(env)
    return Config(argv, jupyter, ssh, offered, *added)
