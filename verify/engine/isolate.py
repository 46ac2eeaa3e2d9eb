"""Runs a probe in its own forked child and reports a hang, a crash or an exception as an outcome."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from typing import IO, Any, Dict, NoReturn, Optional, Set

from verify.model import Probe

PR_SET_PDEATHSIG = 1
GRACE = 1.0
POLL = 0.2
OUTPUT_TAIL = 4000

_running: Set[int] = set()
_forking = threading.Lock()
"""One fork at a time: what other packages do before one may refuse a second from another thread (filelock does)."""


@dataclass(frozen=True)
class Outcome:
    """The result of a probe: its facts, or one of error, crash and timed_out."""

    facts: Optional[Dict[str, Any]] = None
    error: str = ""
    crash: str = ""
    timed_out: bool = False
    output: str = ""

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


def run_here(probe: Probe) -> Outcome:
    """Run the probe in this process."""
    try:
        return Outcome(facts=dict(probe()))
    except Exception:
        return Outcome(error=traceback.format_exc())


def run_forked(probe: Probe, timeout: float) -> Outcome:
    """Run the probe in a child; the child and everything it started have ended when this returns or raises."""
    # In memory, because a read-only container may have no folder for temporary files.
    with os.fdopen(os.memfd_create("probe-output"), "w+b") as log:
        reader, writer = os.pipe()
        with _forking:
            pid = os.fork()
        if pid == 0:
            _child(probe, writer, log.fileno())
        os.close(writer)
        _running.add(pid)
        grace = 0.0
        try:
            line = _receive(reader, pid, time.monotonic() + timeout)
            grace = GRACE if line is not None else 0.0
        finally:
            os.close(reader)
            status = _end(pid, grace)
        return _outcome(line, status, _tail(log))


def end_running() -> None:
    """End every child that is running now; safe in a signal handler."""
    for pid in list(_running):
        _kill(pid)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the one that forked it is gone."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def leave_terminal(output: int) -> None:
    """Detach this process from the terminal: own session, no input, output into ``output``."""
    os.setsid()
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable(2)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``."""
    while data:
        data = data[os.write(descriptor, data) :]


def _child(probe: Probe, writer: int, output: int) -> NoReturn:
    try:
        leave_terminal(output)
        write_all(writer, (json.dumps({"facts": dict(probe())}) + "\n").encode())
    except BaseException:
        with contextlib.suppress(OSError):
            write_all(writer, (json.dumps({"error": traceback.format_exc()}) + "\n").encode())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)


def _receive(reader: int, pid: int, deadline: float) -> Optional[bytes]:
    """The child's line, b"" when it ended without one, None when time ran out.

    The end of the pipe alone is not waited for: workers that a probe started may hold it open.
    """
    received = b""
    while not received.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        ended = has_ended(pid)
        if select.select([reader], [], [], 0 if ended else min(POLL, left))[0]:
            chunk = os.read(reader, 65536)
            if not chunk:
                return b""
            received += chunk
        elif ended:
            return b""
    return received


def has_ended(pid: int) -> bool:
    """Whether the child has ended; it is not reaped yet, so that its pid is not reused."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(pid: int, grace: float) -> int:
    until = time.monotonic() + grace
    while not has_ended(pid) and time.monotonic() < until:
        time.sleep(0.01)
    _kill(pid)
    status = os.waitpid(pid, 0)[1]
    _running.discard(pid)
    return status


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _outcome(line: Optional[bytes], status: int, output: str) -> Outcome:
    if line is None:
        return Outcome(timed_out=True, output=output)
    if line:
        reply = json.loads(line)
        return Outcome(facts=reply.get("facts"), error=reply.get("error", ""), output=output)
    if os.WIFSIGNALED(status):
        return Outcome(crash=signal_name(os.WTERMSIG(status)), output=output)
    return Outcome(error=f"the probe's process ended with code {os.WEXITSTATUS(status)} without an answer")


def signal_name(number: int) -> str:
    """SIGBUS for 7; a plain description for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - OUTPUT_TAIL))
    return log.read().decode(errors="replace").strip()
