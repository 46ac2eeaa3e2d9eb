"""Asks libcuda and NVML through ctypes. Only ever called in a child: loading can hang or crash."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Dict, Tuple

from verify.gpu_signs import DRIVER, NVML
from verify.system import read


def load(name: str) -> Tuple[Any, Dict[str, Any]]:
    """The library, or None, and the facts: whether it loaded, why not, and which file was mapped."""
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        return None, {"loaded": False, "load_error": str(error), "mapped": ""}
    return library, {"loaded": True, "load_error": "", "mapped": mapped_file(name)}


def mapped_file(name: str, maps: str = "") -> str:
    """The file behind the library in the text of /proc/self/maps (default: this process's)."""
    stem = name.split(".so")[0]
    for line in (maps or read(Path("/proc/self/maps"))).splitlines():
        path = line.split(None, 5)[5] if len(line.split(None, 5)) == 6 else ""
        if Path(path).name.startswith(stem + ".so"):
            return path
    return ""


def ask_driver() -> Dict[str, Any]:
    """What libcuda answers: the CUDA level it supports, then the code of cuInit."""
    library, facts = load(DRIVER)
    if library is None:
        return facts
    number = ctypes.c_int(0)
    facts["level_code"] = library.cuDriverGetVersion(ctypes.byref(number))
    facts["level"] = number.value
    facts["code"] = library.cuInit(0)
    return facts


def ask_nvml() -> Dict[str, Any]:
    """What NVML answers: the code of nvmlInit, then the driver's version and each GPU's state."""
    library, facts = load(NVML)
    if library is None:
        return facts
    start = getattr(library, "nvmlInit_v2", None) or library.nvmlInit
    facts["code"] = start()
    if facts["code"] == 0:
        text = ctypes.create_string_buffer(96)
        if library.nvmlSystemGetDriverVersion(text, 96) == 0:
            facts["driver"] = text.value.decode(errors="replace")
        count = ctypes.c_uint(0)
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
            facts["count"] = count.value
        facts["devices"] = [_device(library, index) for index in range(count.value)]
    return facts


def _device(library: Any, index: int) -> Dict[str, Any]:
    """The code of asking for the GPU, its compute mode (0 default) and whether MIG is on."""
    handle, mode = ctypes.c_void_p(), ctypes.c_int(0)
    current, pending = ctypes.c_uint(0), ctypes.c_uint(0)
    code = library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
    if code:
        return {"index": index, "code": code}
    library.nvmlDeviceGetComputeMode(handle, ctypes.byref(mode))
    if hasattr(library, "nvmlDeviceGetMigMode"):
        library.nvmlDeviceGetMigMode(handle, ctypes.byref(current), ctypes.byref(pending))
    return {"index": index, "code": 0, "compute_mode": mode.value, "mig": bool(current.value)}
