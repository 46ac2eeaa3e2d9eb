"""A quick look at the GPUs through NVML, which makes no context on them and takes no memory of theirs."""

from __future__ import annotations

import ctypes

LIBRARY = "libnvidia-ml.so.1"
_CODES = {
    3: "is not supported here",
    4: "has no permission",
    9: "finds no driver",
    15: "says that the GPU has fallen off the bus: look at the host's kernel log, and reboot it",
    16: "says that the GPU needs a reset",
    18: "says that library and kernel module differ: reboot the host, then create this container again",
    999: "answers 'unknown error': device access was revoked (systemctl daemon-reload does that); create"
    " the container again",
}


def available(library: str = LIBRARY) -> bool:
    """Whether the driver's library was mounted."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _message(code: int) -> str:
    return f"GPU: NVML {_CODES.get(code, 'failed')} (code {code})"


def fault(library: str = LIBRARY) -> str | None:
    """Why the GPUs can't be reached any more, or None."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return f"GPU: {library} was here at the start and is gone"
    if code := nvml.nvmlInit_v2():
        return _message(code)
    count = ctypes.c_uint(0)
    if code := nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return _message(code)
    if not count.value:
        return "GPU: the driver lists no device any more"
    handle = ctypes.c_void_p()
    for index in range(count.value):
        if code := nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
            return f"{_message(code)}, GPU {index}"
    return None
