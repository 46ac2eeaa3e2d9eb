"""Reading a zstd stream with the system's own libzstd, which Debian and Ubuntu always have."""

from __future__ import annotations

import ctypes
import io
from typing import IO, Any

CHUNK = 1 << 18


class MissingZstd(Exception):
    """This machine has no libzstd."""


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise MissingZstd("libzstd.so.1 is missing: apt install libzstd1") from error
    library.ZSTD_createDCtx.restype = ctypes.c_void_p
    library.ZSTD_decompressStream.restype = ctypes.c_size_t
    library.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Buffer), ctypes.POINTER(_Buffer)]
    library.ZSTD_freeDCtx.argtypes = [ctypes.c_void_p]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]
    return library


class ZstdReader(io.RawIOBase):
    """The decompressed bytes of ``source``. Raises MissingZstd where there is no libzstd."""

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__()
        self._lib = _library()
        self._context: int | None = self._lib.ZSTD_createDCtx()
        self._source = source
        self._held = ctypes.create_string_buffer(b"", 1)
        self._input = _Buffer(None, 0, 0)

    def readable(self) -> bool:
        """True: it is a reader."""
        return True

    def readinto(self, into: Any) -> int:
        """Fills the buffer as far as one step of decompression goes; 0 at the end."""
        target = (ctypes.c_char * len(into)).from_buffer(into)
        output = _Buffer(ctypes.cast(target, ctypes.c_void_p), len(into), 0)
        while output.pos == 0:
            ended = self._input.pos == self._input.size and not self._refill()
            before = self._input.pos
            code = self._lib.ZSTD_decompressStream(self._context, ctypes.byref(output), ctypes.byref(self._input))
            if self._lib.ZSTD_isError(code):
                raise OSError("damaged zstd stream")
            if ended and output.pos == 0 and self._input.pos == before:
                break
        return int(output.pos)

    def _refill(self) -> bool:
        data = self._source.read(CHUNK)
        self._held = ctypes.create_string_buffer(data, max(len(data), 1))
        self._input = _Buffer(ctypes.cast(self._held, ctypes.c_void_p), len(data), 0)
        return bool(data)

    def close(self) -> None:
        """Frees the decoder."""
        if self._context is not None:
            self._lib.ZSTD_freeDCtx(self._context)
            self._context = None
        super().close()
