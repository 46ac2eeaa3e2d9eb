"""How a container is started: one frozen description, turned into a `docker run` line or SDK options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from docker.types import DeviceRequest, Ulimit

from gpuyard.errors import UsageError
from verify.secret_names import has_secret, is_secret

GPU_CHOICES = "all, none, auto, or devices such as 0,1"
GIB = 1 << 30
SHM_DEFAULT = 8 * GIB
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": GIB}
# Locked memory for RDMA and pinned buffers, and the stack that NVIDIA asks for. Only beside a GPU:
# an engine that itself runs in a container, as in CI, may not raise the limit and would not start.
_ULIMITS = (("memlock", -1), ("stack", 64 << 20))


@dataclass(frozen=True)
class Gpus:
    """The GPUs a container gets: none, ``("all",)`` or indices and UUIDs; by CDI names if ``cdi``."""

    devices: tuple[str, ...] = ()
    cdi: bool = False

    def words(self) -> list[str]:
        """The options of ``docker run``."""
        if not self.devices:
            return []
        if self.cdi:
            return [word for name in self._names() for word in ("--device", name)]
        # The inner quotes are Docker's: it reads the value as CSV, where a comma would end the field.
        wanted = "all" if self.devices == ("all",) else f'"device={",".join(self.devices)}"'
        return ["--gpus", wanted]

    def requests(self) -> list[DeviceRequest]:
        """The same for the SDK."""
        if not self.devices:
            return []
        if self.cdi:
            return [DeviceRequest(driver="cdi", device_ids=self._names())]
        if self.devices == ("all",):
            return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
        return [DeviceRequest(device_ids=list(self.devices), capabilities=[["gpu"]])]

    def _names(self) -> list[str]:
        return [f"nvidia.com/gpu={device}" for device in self.devices]


@dataclass(frozen=True)
class Port:
    """A port of the container on the host; ``host`` None lets the engine choose a free one."""

    container: int
    host: int | None
    bind: str = "127.0.0.1"

    @property
    def words(self) -> str:
        """The value of ``--publish``."""
        address = f"[{self.bind}]" if ":" in self.bind else self.bind
        return f"{address}:{self.host or ''}:{self.container}"


@dataclass(frozen=True)
class Start:
    """Everything about a container's start. ``env`` holds ``NAME=value`` or ``NAME`` (passed through)."""

    image: str
    gpus: Gpus = Gpus()
    shm: str = "8g"
    name: str | None = None
    detach: bool = False
    terminal: bool = False
    keep: bool = False
    ports: tuple[Port, ...] = ()
    publish: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    user: str | None = None
    memory: str | None = None

    def line(self) -> list[str]:
        """The `docker run` line that starts exactly this."""
        options = {"--name": [self.name] if self.name else [], "--shm-size": [self.shm]}
        options["--memory"] = [self.memory] if self.memory else []
        options["--user"] = [self.user] if self.user else []
        options["--ulimit"] = [f"{name}={value}" for name, value in self._ulimits()]
        options["--publish"] = [port.words for port in self.ports] + list(self.publish)
        options["--volume"] = list(self.volumes)
        options["--env"] = list(self.env)
        options["--label"] = [f"{name}={value}" for name, value in self.labels.items()]
        flags = [f"{name}={value}" for name, values in options.items() for value in values]
        return ["docker", "run", *self._mode(), *self.gpus.words(), *flags, self.image, *self.command]

    def _mode(self) -> list[str]:
        mode = ["--detach"] if self.detach else ["-it"] if self.terminal else ["-i"]
        return mode if self.keep else [*mode, "--rm"]

    def _ulimits(self) -> tuple[tuple[str, int], ...]:
        return _ULIMITS if self.gpus.devices else ()

    def options(self) -> dict[str, Any]:
        """The same for ``docker.containers.create``, which takes values in ``env``, not bare names."""
        return {
            "image": self.image,
            "command": list(self.command) or None,
            "name": self.name,
            "user": self.user,
            "device_requests": self.gpus.requests(),
            "shm_size": size(self.shm),
            "mem_limit": size(self.memory, "--memory") if self.memory else None,
            "ulimits": [Ulimit(name=name, soft=value, hard=value) for name, value in self._ulimits()],
            "ports": {f"{port.container}/tcp": (port.bind, port.host) for port in self.ports},
            "volumes": list(self.volumes),
            "environment": list(self.env),
            "labels": dict(self.labels),
        }


def size(text: str, option: str = "--shm-size") -> int:
    """Bytes of a size as Docker writes it (``8g``, ``512m``). Raises UsageError."""
    found = re.fullmatch(r"(\d+)([bkmg]?)b?", text.strip().lower())
    if not found or int(found[1]) == 0:
        raise UsageError("size-invalid", f"{option} {text!r}: expected a size such as 8g or 512m")
    return int(found[1]) * _UNITS[found[2]]


def default_shm(memory: int) -> str:
    """8 GiB, or half of a small host's memory: it is a limit, and pages count only when used."""
    wanted = min(SHM_DEFAULT, memory // 2) if memory else SHM_DEFAULT
    return f"{wanted // GIB}g" if wanted >= GIB else f"{max(wanted >> 20, 64)}m"


def parse_gpus(text: str) -> tuple[str, ...] | None:
    """The devices asked for; empty for ``none``, None for ``auto``. Raises UsageError."""
    if text in ("auto", "none", "all"):
        return {"auto": None, "none": (), "all": ("all",)}[text]
    devices = tuple(part.strip() for part in text.removeprefix("device=").split(","))
    if not all(re.fullmatch(r"\d+(:\d+)?|(GPU|MIG)-[\w/-]+", device) for device in devices):
        raise UsageError("gpus-invalid", f"--gpus {text!r}: expected {GPU_CHOICES}")
    return devices


def split_secrets(env: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The ``-e`` values for a command line, and secrets to hand over by docker's own environment.

    A variable with a secret's name, or with a password or token in its value, is replaced by its bare name: the
    value appears in no process list and in no printed line.
    """
    words: list[str] = []
    secrets: dict[str, str] = {}
    for item in env:
        name, given, value = item.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError("env-name-invalid", f"-e {name!r}: expected NAME=value or NAME")
        if given and (is_secret(name) or has_secret(value)):
            secrets[name] = value
        words.append(name if name in secrets else item)
    return tuple(words), secrets
