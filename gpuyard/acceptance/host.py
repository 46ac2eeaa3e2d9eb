"""Properties of the engine that break GPUs or this image's C library: age, rootless, snap, Docker Desktop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuyard.acceptance.world import Outside, World
from verify import versions
from verify.model import Claims, Facts, Level, Owner, Status, Verdict

OLDEST = "20.10.10"
"""The first engine whose seccomp profile knows clone3, which newer C libraries start threads with."""

KNOWN = {
    "rootless": (
        "rootless Docker: the toolkit may not touch device cgroups",
        "use CDI: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, then --device nvidia.com/gpu=all; or "
        "nvidia-ctk config --set nvidia-container-cli.no-cgroups=true --in-place",
    ),
    "snap": (
        "Docker from the snap, which sees neither the host's driver nor the toolkit",
        "sudo snap remove docker, and install Docker Engine from docs.docker.com/engine/install",
    ),
    "desktop": (
        "Docker Desktop, which runs containers in a virtual machine",
        "on Windows: the WSL 2 backend with NVIDIA's Windows driver; on Linux: docker context use default and Docker "
        "Engine; on a Mac there is no NVIDIA GPU",
    ),
}
"""Kinds of engines with what they are and what makes GPUs work there."""


def kind(info: Mapping[str, Any]) -> str:
    """The kind of an engine, from its ``docker info``; empty for a plain one."""
    options = " ".join(info.get("SecurityOptions") or [])
    if "name=rootless" in options:
        return "rootless"
    if "/snap/" in str(info.get("DockerRootDir", "")):
        return "snap"
    return "desktop" if "Docker Desktop" in str(info.get("OperatingSystem", "")) else ""


def probe(world: World) -> Facts:
    """Ask the engine for its version and kind."""
    info = world.client.info()
    wanted = bool(world.start.gpus.devices)
    return {"version": str(info.get("ServerVersion", "")), "kind": kind(info), "gpus": wanted, "mode": mode(info)}


def mode(info: Mapping[str, Any]) -> str:
    """How the engine passes GPUs to containers: by CDI, by NVIDIA's runtime, or not at all."""
    return "CDI" if info.get("CDISpecDirs") else "runtime" if "nvidia" in (info.get("Runtimes") or {}) else ""


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """An old engine refuses threads to every new image; other kinds matter only where a GPU is wanted."""
    version, expected = facts["version"], f"Docker Engine {OLDEST} or newer that can hand over GPUs"
    text = f"Docker {version}"
    if versions.release(version) and not versions.at_least(version, OLDEST):
        remedy = f"upgrade Docker to {OLDEST} or newer; until then --security-opt seccomp=unconfined"
        return Verdict(Status.FAIL, f"{text} refuses clone3: no threads", expected, remedy, Owner.HOST)
    what, remedy = KNOWN.get(facts["kind"], ("", ""))
    if what and facts["gpus"] and not (facts["kind"] == "rootless" and facts["mode"] == "CDI"):
        return Verdict(Status.FAIL, f"{text}: {what}", expected, remedy, Owner.HOST)
    note = f", {what} (for a GPU: {remedy})" if what else ""
    return Verdict(Status.PASS, text + note, expected)


CHECKS = [Outside("engine-host", "engine", Level.CONTAINER, "The engine suits GPUs and this image", probe, evaluate)]
