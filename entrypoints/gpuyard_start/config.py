"""What the container was asked to do: the environment and the arguments, parsed once and validated."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from . import keys
from .errors import Refusal

IMAGE_JSON = Path("/etc/gpuyard/image.json")
HOST_KEY_FOLDER = Path("/var/lib/gpuyard/ssh")
SYSTEM_KEYS = Path("/etc/gpuyard/authorized_keys")
WORKSPACE = Path("/workspace")
JUPYTER = "jupyter"
SSH = "ssh"
SERVICES = (JUPYTER, SSH)
TOKEN_BYTES = 24
_YES = ("yes", "true", "1")
_NO = ("", "no", "false", "0")


@dataclass(frozen=True)
class Jupyter:
    """JupyterLab as it will be started. An empty token means that no login is asked for."""

    port: int
    token: str
    token_is_random: bool


@dataclass(frozen=True)
class Ssh:
    """sshd as it will be started: ``port`` must be had, 22 is taken where it can be."""

    port: int
    keys: tuple[keys.KeyLine, ...]
    host_keys: Path
    host_keys_named: bool


@dataclass(frozen=True)
class Config:
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


def flag(env: dict[str, str], name: str) -> bool:
    """A yes-or-no variable; unset and empty mean no."""
    value = env.get(name, "").strip().lower()
    if value not in _YES + _NO:
        raise Refusal(f"{name} is '{env[name]}': expected yes or no")
    return value in _YES


def port(env: dict[str, str], name: str, default: int) -> int:
    """A port number from the environment."""
    text = env.get(name, "").strip() or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise Refusal(f"{name} is '{text}': expected a port number from 1 to 65535")
    return int(text)


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


def _token_from_file(path: Path) -> str:
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Refusal(f"JUPYTER_TOKEN_FILE={path} can't be read ({reason}): expected a file with the token") from None
    if not token:
        raise Refusal(f"JUPYTER_TOKEN_FILE={path} is empty: expected a file with the token")
    return token


def _given_token(env: dict[str, str]) -> str | None:
    """The user's token, the empty string where logins are switched off on purpose, None for a random one."""
    file = env.get("JUPYTER_TOKEN_FILE", "")
    token = env.get("JUPYTER_TOKEN")
    if file and token:
        raise Refusal("both JUPYTER_TOKEN and JUPYTER_TOKEN_FILE are set: give one of them")
    if file:
        return _token_from_file(Path(file))
    if token == "" and not flag(env, "JUPYTER_ALLOW_NO_AUTH"):
        raise Refusal(
            "JUPYTER_TOKEN is empty, which would let anyone run code here: leave it unset for a random token,"
            " give one, or say JUPYTER_ALLOW_NO_AUTH=yes"
        )
    return token


def read_jupyter(env: dict[str, str]) -> Jupyter:
    """JupyterLab's port and token."""
    number = port(env, "JUPYTER_PORT", 8888)
    flag(env, "JUPYTER_ALLOW_NO_AUTH")
    token = _given_token(env)
    if token is None:
        return Jupyter(number, os.urandom(TOKEN_BYTES).hex(), True)
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise Refusal("the Jupyter token holds blanks or unusual characters: expected plain ASCII without blanks")
    return Jupyter(number, token, False)


def read_ssh(env: dict[str, str], home: Path, asked: bool) -> Ssh | None:
    """sshd's port and keys; None where no key was given and nobody asked for SSH by name."""
    number = port(env, "GPUYARD_SSH_PORT", 2222)
    found = keys.collect(env, (SYSTEM_KEYS, home / ".ssh" / "authorized_keys"))
    folder = env.get("GPUYARD_HOST_KEYS", "")
    if folder and not folder.startswith("/"):
        raise Refusal(f"GPUYARD_HOST_KEYS is '{folder}': expected the full path of a folder")
    if not found and asked:
        raise Refusal('GPUYARD_SERVICES asks for ssh but no key was given: add -e SSH_PUBLIC_KEY="$(cat FILE.pub)"')
    if not found:
        return None
    return Ssh(number, found, Path(folder) if folder else HOST_KEY_FOLDER, bool(folder))


def check_user(env: dict[str, str], uid: int) -> None:
    """Root is used only where it was asked for in words."""
    if uid == 0 and not flag(env, "GPUYARD_ALLOW_ROOT"):
        raise Refusal(
            "the container was started as root: leave out --user to be trainer (uid 1000), give"
            " --user UID:GID, or say GPUYARD_ALLOW_ROOT=yes"
        )


def read(argv: tuple[str, ...], env: dict[str, str], image: dict[str, object], home: Path) -> Config:
    """Everything that was asked for. Raises Refusal; changes nothing."""
    offered = offered_services(image)
    named = wanted_services(env, offered)
    chosen = named if named is not None else (() if argv else offered)
    jupyter = read_jupyter(env) if JUPYTER in chosen else None
    ssh = read_ssh(env, home, asked=named is not None) if SSH in chosen else None
    if jupyter and ssh and jupyter.port in (ssh.port, 22):
        raise Refusal(f"Jupyter and SSH both want port {jupyter.port}: change JUPYTER_PORT or GPUYARD_SSH_PORT")
    return Config(argv, jupyter, ssh, offered)
