"""One process that imports torch once, never touches CUDA, and forks a child for every torch probe."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import time
from types import FrameType
from typing import Iterable, Iterator, Mapping, NoReturn, Optional

from verify.engine.isolate import Outcome, end_running, has_ended, leave_terminal, run_forked, signal_name, write_all
from verify.model import Check

IMPORT_TIMEOUT = 180.0
REPLY_GRACE = 10.0

COMPILING = ("compile", "compute", "distributed", "train")
"""Groups whose probes import torch._dynamo."""

import_error = ""
"""Why torch could not be imported; set in the host and its children only."""


class TorchHost:
    """Owns the process. After a failed import the probes still run and meet the error."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self._checks = {check.id: check for check in checks}
        self._buffer = b""
        self._failure: Optional[Outcome] = None
        self._ready = False
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._requests)
            os.close(self._replies)
            _serve(self._checks, requests, replies)
        os.close(requests)
        os.close(replies)

    def ask(self, check: Check) -> Outcome:
        """Run the check's probe; a host that died or hangs at the import answers for all later probes."""
        if not self._ready and self._failure is None:
            self._line(IMPORT_TIMEOUT)
            self._ready = True
        if self._failure is None:
            with contextlib.suppress(BrokenPipeError):
                write_all(self._requests, f"{check.id}\n".encode())
            line = self._line(check.timeout + REPLY_GRACE)
            if line is not None:
                return Outcome(**json.loads(line))
        return self._failure or Outcome(timed_out=True)

    def close(self) -> None:
        """End the process and what it started, within half a second."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        until = time.monotonic() + 0.5
        while not has_ended(self._pid) and time.monotonic() < until:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._requests)
        os.close(self._replies)

    def _line(self, timeout: float) -> Optional[bytes]:
        """The next line of the host; None, with the reason kept, when it hangs or has died."""
        until = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0:
                self._failure = Outcome(timed_out=True)
                return None
            if select.select([self._replies], [], [], min(left, 0.5))[0]:
                chunk = os.read(self._replies, 65536)
                if not chunk:
                    self._failure = self._cause_of_death()
                    return None
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _cause_of_death(self) -> Outcome:
        info = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        if info is not None and info.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
            return Outcome(crash=signal_name(info.si_status))
        return Outcome(error="the process that imports torch ended without an answer")


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage during imports, and none of the imported modules' objects afterwards:
    a collector in a forked child that looks at them would have the kernel copy every page.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _serve(checks: Mapping[str, Check], requests: int, replies: int) -> NoReturn:
    try:
        leave_terminal(os.open(os.devnull, os.O_WRONLY))
        signal.signal(signal.SIGTERM, _stop)
        with uncollected():
            _import_torch()
            if not import_error and any(check.group in COMPILING for check in checks.values()):
                _import_dynamo()
        write_all(replies, b"ready\n")
        for check_id in _lines(requests):
            check = checks[check_id]
            write_all(replies, (run_forked(check.probe, check.timeout).to_json() + "\n").encode())
    finally:
        os._exit(0)


def _import_torch() -> None:
    """Import torch, or keep the reason for the probe of torch-import: a second try would hide it."""
    global import_error  # noqa: PLW0603 - the forked probes inherit it
    try:
        __import__("torch")
    except BaseException as error:
        import_error = f"{type(error).__name__}: {error}"


def _import_dynamo() -> None:
    """Optimizers, DDP and torch.compile all import it: once here saves seconds in each child. It calls no driver."""
    # Inductor reads these at its import. One kernel needs no pool of compiler processes and no search
    # for vector instructions, which starts a Python with torch for each set.
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "0"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    with contextlib.suppress(Exception):
        __import__("torch._dynamo")


def _stop(_number: int, _frame: Optional[FrameType]) -> None:
    end_running()
    os._exit(0)


def _lines(descriptor: int) -> Iterable[str]:
    with os.fdopen(descriptor) as stream:
        yield from (line.strip() for line in stream)
