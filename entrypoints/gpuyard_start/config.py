"""What the container was asked to do: the environment and the arguments, parsed once and validated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from . import modes
from .errors import Refusal
from .jupyter.config import Jupyter, read_jupyter
from .ssh import keys
from .values import flag, port

IMAGE_JSON = Path("/etc/gpuyard/image.json")
HOST_KEY_FOLDER = Path("/var/lib/gpuyard/ssh")
SYSTEM_KEYS = Path("/etc/gpuyard/authorized_keys")
WORKSPACE = Path("/workspace")
JUPYTER = "jupyter"
SSH = "ssh"
SERVICES = (JUPYTER, SSH)


class Ssh(NamedTuple):
    """sshd as it will be started: ``port`` must be had, 22 is taken where it can be."""

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

    @property
    def services(self) -> tuple[str, ...]:
        """The services to start, in order."""
        wanted = {JUPYTER: self.jupyter, SSH: self.ssh}
        return tuple(name for name in SERVICES if wanted[name] is not None)


def claims(path: Path = IMAGE_JSON) -> dict[str, object]:
    """What the image says about itself; nothing where the file is missing."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} can't be used ({error}): the image is damaged, pull or build it again") from None
    return found if isinstance(found, dict) else {}


def offered_services(image: dict[str, object]) -> tuple[str, ...]:
    """The services that this image ships, by its own claims."""
    listed = image.get("services")
    return tuple(name for name in SERVICES if isinstance(listed, list) and name in listed)


def wanted_services(env: dict[str, str], offered: tuple[str, ...]) -> tuple[str, ...] | None:
    """The services named by ``GPUYARD_SERVICES``; None where it says nothing."""
    text = env.get("GPUYARD_SERVICES", "").strip()
    if not text:
        return None
    named = [word.strip() for word in text.split(",") if word.strip()]
    if named == ["none"]:
        return ()
    for name in named:
        if name not in SERVICES:
            raise Refusal(f"GPUYARD_SERVICES names '{name}': expected {', '.join(SERVICES)} or none")
        if name not in offered:
            raise Refusal(f"GPUYARD_SERVICES asks for {name}, which this image does not ship: use the workbench image")
    return tuple(name for name in SERVICES if name in named)


def read_ssh(env: dict[str, str], home: Path, asked: bool) -> Ssh | None:
    """sshd's port and keys; None where no key was given and nobody asked for SSH by name."""
    number, strict = port(env, "GPUYARD_SSH_PORT", 2222), flag(env, "GPUYARD_SSH_STRICT")
    found = keys.collect(env, (SYSTEM_KEYS, home / ".ssh" / "authorized_keys"))
    folder = env.get("GPUYARD_HOST_KEYS", "")
    if folder and not folder.startswith("/"):
        raise Refusal(f"GPUYARD_HOST_KEYS is '{folder}': expected the full path of a folder")
    if not found and asked:
        raise Refusal('GPUYARD_SERVICES asks for ssh but no key was given: add -e SSH_PUBLIC_KEY="$(cat FILE.pub)"')
    if not found:
        return None
    return Ssh(number, found, Path(folder) if folder else HOST_KEY_FOLDER, strict)


def _asked_by_word(mode: modes.Mode, env: dict[str, str]) -> dict[str, str]:
    """The environment as if the word of a mode had been said by variable. Refuses two that disagree."""
    given = {"GPUYARD_SERVICES": mode.service, "JUPYTER_PORT": mode.port}
    found = dict(env)
    for name, value in given.items():
        if value is None:
            continue
        if env.get(name, "").strip() not in ("", value):
            raise Refusal(f"{name}={env[name]} and the command ask for different things ({value}): give one of them")
        found[name] = value
    return found


def read(argv: tuple[str, ...], env: dict[str, str], image: dict[str, object], home: Path) -> Config:
    """Everything that was asked for. Raises Refusal; changes nothing."""
    mode = modes.read(argv)
    env = _asked_by_word(mode, env)
    argv = mode.command
    offered = offered_services(image)
    named = wanted_services(env, offered)
    chosen = named if named is not None else (() if argv else offered)
    jupyter = read_jupyter(env, mode.options) if JUPYTER in chosen else None
    ssh = read_ssh(env, home, asked=named is not None) if SSH in chosen else None
    if jupyter and ssh and jupyter.port in (ssh.port, 22):
        raise Refusal(f"Jupyter and SSH both want port {jupyter.port}: change JUPYTER_PORT or GPUYARD_SSH_PORT")
    return Config(argv, jupyter, ssh, offered)
