"""Checks before a container starts: which GPUs it can get, and whether a key is public."""

from __future__ import annotations

import base64
import contextlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from gpuyard.engine.start import Gpus, parse_gpus
from gpuyard.errors import UserError

NONE_HINT = "or start without a GPU: --gpus none"
TOOLKIT = "nvidia-container-toolkit"
CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
KEY_TYPES = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-ed25519@", "sk-ecdsa-sha2-")


@dataclass(frozen=True)
class GpuHost:
    """What host and engine report about GPUs. ``local`` is False where the engine runs elsewhere."""

    driver: bool = False
    toolkit: bool = False
    hook: bool = False
    runtime: bool = False
    cdi: bool = False
    local: bool = True


def probe_gpus(info: Mapping[str, Any], local: bool = True, root: Path = Path("/")) -> GpuHost:
    """Looks at ``docker info`` and, for an engine on this machine, at devices, tools and CDI specs."""
    nodes = ("dev/nvidiactl", "dev/nvidia0", "dev/dxg", "proc/driver/nvidia/version")
    return GpuHost(
        driver=local and any((root / node).exists() for node in nodes),
        toolkit=local and shutil.which("nvidia-ctk") is not None,
        hook=local and shutil.which("nvidia-container-runtime-hook") is not None,
        runtime="nvidia" in (info.get("Runtimes") or {}),
        cdi=_has_cdi(info, local),
        local=local,
    )


def _has_cdi(info: Mapping[str, Any], local: bool) -> bool:
    """Newer engines list CDI devices; for older ones the specification files are read."""
    listed = [str(device.get("ID", "")) for device in info.get("DiscoveredDevices") or []]
    if any(name.startswith("nvidia.com/gpu=") for name in listed):
        return True
    folders = [Path(folder) for folder in info.get("CDISpecDirs") or []] if local else []
    files = [file for folder in folders if folder.is_dir() for file in folder.iterdir()]
    return any(_names_nvidia(file) for file in files if file.suffix in (".json", ".yaml", ".yml"))


def _names_nvidia(file: Path) -> bool:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return bool(re.search(r"""kind["']?\s*:\s*["']?nvidia\.com/gpu["'\s,]""", file.read_text()))
    return False


def missing_for_gpus(host: GpuHost) -> str | None:
    """The first piece that is missing to hand a GPU to a container, with what installs it."""
    reachable = host.runtime or host.cdi or host.hook
    if host.local and not host.driver:
        return (
            "no NVIDIA driver on this host (no /dev/nvidiactl, no /dev/dxg): "
            "install it (Ubuntu: sudo ubuntu-drivers install; Debian: sudo apt install nvidia-driver)"
        )
    if reachable:
        return None
    if not host.local:
        return f"the engine offers no 'nvidia' runtime and no CDI device: on its host run {CONFIGURE}"
    if not host.toolkit:
        return (
            f"the NVIDIA Container Toolkit is not installed: sudo apt install {TOOLKIT} "
            f"(from NVIDIA's repository), then {CONFIGURE}"
        )
    return f"the engine does not know the NVIDIA Container Toolkit yet: {CONFIGURE}"


def choose_gpus(text: str, host: GpuHost) -> tuple[Gpus, str]:
    """The GPUs for ``--gpus TEXT`` and, where ``auto`` found none, one line that says so.

    Raises UserError with the missing piece if GPUs were asked for by name.
    """
    wanted = parse_gpus(text)
    if wanted == ():
        return Gpus(), ""
    missing = missing_for_gpus(host)
    if missing and wanted is None:
        return Gpus(), f"no GPU for the container: {missing}"
    if missing:
        raise UserError("gpu-unavailable", f"--gpus {text}: {missing}, {NONE_HINT}")
    only_cdi = host.cdi and not (host.runtime or host.hook)
    return Gpus(wanted or ("all",), cdi=only_cdi), ""


def is_local(client: docker.DockerClient) -> bool:
    """Whether the engine runs on this machine, so that its devices and ports are the host's."""
    return str(client.api.base_url).startswith("http+docker://")


def public_key(path: Path) -> str:
    """The one public key in a file. Refuses private keys, and anything that is not a key."""
    try:
        text = path.expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UserError("ssh-key-unreadable", f"--ssh-key {path}: cannot be read: {reason}") from None
    if "PRIVATE KEY" in text or text.startswith("PuTTY-User-Key-File"):
        raise UserError(
            "ssh-key-private", f"--ssh-key {path}: this is a private key, which stays with you; give {path}.pub"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) != 1 or not _is_public(lines[0]):
        raise UserError(
            "ssh-key-invalid",
            f"--ssh-key {path}: expected one public key, such as ~/.ssh/id_ed25519.pub "
            "(make one with ssh-keygen -t ed25519)",
        )
    return lines[0]


def _is_public(line: str) -> bool:
    """Whether a line is a key type and a blob that says the same type."""
    kind, _, rest = line.partition(" ")
    try:
        blob = base64.b64decode(rest.split(" ")[0], validate=True)
    except ValueError:
        return False
    return kind.startswith(KEY_TYPES) and blob[4 : 4 + len(kind)] == kind.encode() and len(blob) > 40
