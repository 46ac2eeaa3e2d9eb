"""The log's line about GPUs and their driver. A child process with a time limit asks the driver."""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from ..errors import Notice
from ..log import Log

TIME_LIMIT = 15.0
# Without a device node there is no driver to wait for: the answer comes in about 10 ms.
QUICK_LIMIT = 0.1
_DEVICE = re.compile(r"nvidia\d+\Z|dxg\Z")
_HELPERS = ("nvidiactl", "nvidia-uvm")
_NAME_BYTES = 128


class Facts(TypedDict):
    """What was seen. ``cuda`` is the driver's CUDA level times 1000, ``init`` the code of ``cuInit``."""

    devices: list[str]
    missing: list[str]
    closed: list[str]
    libcuda: bool
    libnvml: bool
    init: int | None
    cuda: int | None
    names: list[str]


def device_nodes(folder: Path = Path("/dev")) -> list[str]:
    """The GPUs' device nodes (``dxg`` is WSL's)."""
    try:
        return sorted(name for name in os.listdir(folder) if _DEVICE.match(name))  # noqa: PTH208
    except OSError:
        return []


def _closed(path: Path) -> bool:
    """Whether opening the node is refused; a node that answers otherwise is not judged here."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _library(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _device_names(cuda: ctypes.CDLL) -> list[str]:
    count = ctypes.c_int(0)
    if cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    names = []
    for index in range(count.value):
        text = ctypes.create_string_buffer(_NAME_BYTES)
        cuda.cuDeviceGetName(text, _NAME_BYTES, index)
        names.append(text.value.decode("utf-8", "replace"))
    return names


def probe(folder: Path = Path("/dev")) -> Facts:
    """Asks device nodes and driver. May hang or crash with a broken driver: run it by ``limited``."""
    devices = device_nodes(folder)
    helpers = () if "dxg" in devices else _HELPERS
    missing = [name for name in helpers if devices and not (folder / name).exists()]
    closed = [name for name in (*devices, *helpers) if (folder / name).exists() and _closed(folder / name)]
    cuda, nvml = _library("libcuda.so.1"), _library("libnvidia-ml.so.1")
    facts = Facts(
        devices=devices, missing=missing, closed=closed, libcuda=cuda is not None, libnvml=nvml is not None,
        init=None, cuda=None, names=[],
    )  # fmt: skip
    if cuda is None:
        return facts
    level = ctypes.c_int(0)
    facts["cuda"] = level.value if cuda.cuDriverGetVersion(ctypes.byref(level)) == 0 else None
    facts["init"] = int(cuda.cuInit(0))
    facts["names"] = _device_names(cuda) if facts["init"] == 0 else []
    return facts


def limited(work: Callable[[], Facts], limit: float) -> Facts | None:
    """The answer of ``work`` from a child; None where the child hung for ``limit`` seconds or crashed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    text = b""
    end = time.monotonic() + limit
    while select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(reader, 65536)
        if not part:
            break
        text += part
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        found: Facts = json.loads(text)
    except ValueError:
        return None
    return found


def cuda_text(level: int) -> str:
    """The driver's number in the usual writing: thousands are the major version."""
    return f"{level // 1000}.{level % 1000 // 10}"


_CODES = {
    3: "the driver is not initialised",
    34: "a stub libcuda.so.1 is loaded instead of the driver: take stubs folders off LD_LIBRARY_PATH",
    46: "the devices are busy or unavailable (exclusive mode, or another process holds them)",
    100: "the driver sees no device: check CUDA_VISIBLE_DEVICES and the devices given to --gpus",
    101: "a device in CUDA_VISIBLE_DEVICES does not exist",
    304: "a call to the operating system failed: the device nodes are there but can't be used",
    802: "not ready: NVIDIA Fabric Manager is not running on the host, or does not match the driver",
    803: "driver library and kernel module differ: reboot the host, then create this container again",
    804: "a forward-compatibility libcuda.so.1 is loaded, which this GPU does not support: remove its folder",
    999: "the driver is in a bad state, or device access was revoked: create the container again, or reboot",
}


def _broken(facts: Facts) -> str | None:
    """The first broken link between device nodes and driver, or None."""
    if not facts["devices"] and facts["init"] != 0:
        library = "libcuda.so.1" if facts["libcuda"] else "libnvidia-ml.so.1"
        return f"the driver's library {library} is here, but no device node /dev/nvidia0: add --gpus all"
    if facts["closed"]:
        return f"opening /dev/{facts['closed'][0]} is refused: access was revoked; create the container again"
    if not facts["libcuda"]:
        partial = "NVIDIA_DRIVER_CAPABILITIES lacks compute"
        reason = partial if facts["libnvml"] else "no driver library was mounted"
        return f"device nodes are here, but libcuda.so.1 is not ({reason})"
    if facts["init"] != 0:
        code = facts["init"]
        known = _CODES.get(code or 0, "see the CUDA driver API's list of results")
        lacking = ", ".join("/dev/" + name for name in facts["missing"])
        return f"cuInit answered {code}: {known}" + (f"; missing: {lacking}" if lacking else "")
    return None


def evaluate(facts: Facts | None, needs: str | None) -> str | Notice:
    """A line for what was seen, or a warning. ``needs`` is the CUDA level that the image was built for."""
    if facts is None:
        said = "GPU: the driver did not answer (it hung or crashed): see 'verify --only driver'"
        return Notice("gpu-driver-silent", said)
    if not facts["devices"] and not facts["libcuda"] and not facts["libnvml"]:
        return "GPU: no GPU was given to this container: add --gpus all to use one"
    if broken := _broken(facts):
        return Notice("gpu-unusable", f"GPU: not usable: {broken}")
    level = facts["cuda"] or 0
    names = facts["names"]
    listed = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    text = f"GPU: {listed or 'no device'}; the driver supports CUDA {cuda_text(level)}"
    if needs and level // 1000 < int(needs.split(".")[0]):
        said = f"{text}, this image needs {needs}: update the host's driver or take an older line"
        return Notice("gpu-driver-old", said)
    return text


def _needs(image: dict[str, object]) -> str | None:
    versions = image.get("versions")
    found = versions.get("cuda") if isinstance(versions, dict) else None
    return found if isinstance(found, str) and re.match(r"\d+\.\d+", found) else None


def announce(image: dict[str, object], log: Log) -> None:
    """Logs the verdict: at once without a device, else from the background when the driver has answered."""
    if not device_nodes():
        log.say(evaluate(limited(probe, QUICK_LIMIT), _needs(image)))
        return
    child = os.fork()
    if child == 0:
        # An orphan, reaped by PID 1: the user's command gets no child that it did not make.
        if os.fork() == 0:
            log.say(evaluate(limited(probe, TIME_LIMIT), _needs(image)))
        os._exit(0)
    os.waitpid(child, 0)
