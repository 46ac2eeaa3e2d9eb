"""Asks libcuda and NVML through ctypes. Only ever called in a child: loading can hang or crash."""

from __future__ import annotations

import ctypes
import operator
import time
from functools import reduce
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from verify.probes.gpu_signs import DRIVER, NVML
from verify.probes.system import read

TROUBLE = 0x8 | 0x40 | 0x80
"""NVML's bits for a hardware slowdown, heat and the power brake."""
SLOW_LOOKS, SLOW_PAUSE = 10, 0.5
CONTEXT_BLOCK = 16 << 20
WRITTEN, ONE = 0x5A, ctypes.c_size_t(1)


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


def ask_context() -> Dict[str, Any]:
    """A context and a small allocation on each GPU through the driver's own API: the call that failed, or none.

    ``trouble`` is the call before any GPU, ``devices`` has one entry for each GPU.
    """
    library, facts = load(DRIVER)
    if library is None:
        return facts
    count = ctypes.c_int(0)
    for name, given in (("cuInit", 0), ("cuDeviceGetCount", ctypes.byref(count))):
        code = getattr(library, name)(given)
        if code:
            return {**facts, "trouble": {"call": name, "code": code}, "devices": []}
    return {**facts, "trouble": None, "devices": [_use(library, index) for index in range(count.value)]}


def _use(library: Any, index: int) -> Dict[str, Any]:
    """Take a block of one GPU's memory, write it, read its last byte and free everything."""
    device, context, block = ctypes.c_int(0), ctypes.c_void_p(), ctypes.c_ulonglong(0)
    size, last = ctypes.c_size_t(CONTEXT_BLOCK), ctypes.c_ubyte(0)
    # The calls of a program that uses the GPU, each with its arguments; the block's address is known after its own.
    calls: Tuple[Tuple[str, Callable[[], Tuple[Any, ...]]], ...] = (
        ("cuDeviceGet", lambda: (ctypes.byref(device), index)),
        ("cuDevicePrimaryCtxRetain", lambda: (ctypes.byref(context), device)),
        ("cuCtxSetCurrent", lambda: (context,)),
        ("cuMemAlloc_v2", lambda: (ctypes.byref(block), size)),
        ("cuMemsetD8_v2", lambda: (block, ctypes.c_ubyte(WRITTEN), size)),
        ("cuMemcpyDtoH_v2", lambda: (ctypes.byref(last), ctypes.c_ulonglong(block.value + CONTEXT_BLOCK - 1), ONE)),
        ("cuMemFree_v2", lambda: (block,)),
        ("cuDevicePrimaryCtxRelease_v2", lambda: (device,)),
    )
    for name, arguments in calls:
        code = getattr(library, name)(*arguments())
        if code:
            return {"index": index, "call": name, "code": code, "held": False}
    return {"index": index, "call": "", "code": 0, "held": last.value == WRITTEN}


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


def ask_health() -> Dict[str, Any]:
    """What NVML counts for each GPU that answers; None for what a GPU or an old NVML does not count."""
    library, facts = load(NVML)
    if library is None or (getattr(library, "nvmlInit_v2", None) or library.nvmlInit)():
        return {"devices": []}
    count = ctypes.c_uint(0)
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    handles = [(index, ctypes.c_void_p()) for index in range(count.value)]
    here = [(i, h) for i, h in handles if library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h)) == 0]
    lasting = _slow(library, [handle for _, handle in here])
    return {**facts, "devices": [{"index": i, **_health(library, h), **lasting[n]} for n, (i, h) in enumerate(here)]}


def _slow(library: Any, handles: List[Any]) -> List[Dict[str, Any]]:
    """For each GPU the reasons for a lower clock that lasted over all looks, and those of any look.

    A single bit may be a matter of milliseconds, so a GPU that is held down is looked at again for some seconds.
    """
    seen: List[List[Optional[int]]] = [[_reasons(library, handle)] for handle in handles]
    for _ in range(SLOW_LOOKS - 1):
        if not any(_lasting(looks) for looks in seen):
            break
        time.sleep(SLOW_PAUSE)
        for looks, handle in zip(seen, handles):  # noqa: B905 - Python 3.9 has no strict
            looks.append(_reasons(library, handle))
    return [{"slow": _lasting(looks) if None not in looks else None, "slow_once": _any(looks)} for looks in seen]


def _reasons(library: Any, handle: Any) -> Optional[int]:
    """NVML's bits of what holds the clock down; None where NVML does not report them."""
    slow = ctypes.c_ulonglong(0)
    known = _answers(library, "nvmlDeviceGetCurrentClocksThrottleReasons", handle, ctypes.byref(slow))
    return slow.value & TROUBLE if known else None


def _lasting(looks: Sequence[Optional[int]]) -> int:
    return reduce(operator.and_, (bits or 0 for bits in looks))


def _any(looks: Sequence[Optional[int]]) -> int:
    return reduce(operator.or_, (bits or 0 for bits in looks))


def _health(library: Any, handle: Any) -> Dict[str, Any]:
    """Uncorrected errors since the driver was loaded, and remapped rows."""
    errors = ctypes.c_ulonglong(0)
    rows = [ctypes.c_uint(0) for _ in range(4)]
    counted = _answers(library, "nvmlDeviceGetTotalEccErrors", handle, 1, 0, ctypes.byref(errors))
    remapped = _answers(library, "nvmlDeviceGetRemappedRows", handle, *map(ctypes.byref, rows))
    return {
        "ecc": errors.value if counted else None,
        "remapped": {"pending": rows[2].value, "failed": rows[3].value} if remapped else None,
    }


def _answers(library: Any, name: str, *given: Any) -> bool:
    """Whether the library has the function and it succeeds."""
    function = getattr(library, name, None)
    return function is not None and function(*given) == 0
