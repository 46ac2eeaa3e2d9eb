"""Whether a port can be had, known before anything is started."""

from __future__ import annotations

import errno
import socket

from ..errors import Refusal
from ..log import Log

BEST_EFFORT = 22


def bind_fault(number: int) -> OSError | None:
    """Why a port can't be listened on, or None."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", number))
            probe.listen()
        except OSError as error:
            return error
    return None


def check(number: int, service: str, variable: str) -> None:
    """Refuses a port that can't be had, with the variable that changes it."""
    if (fault := bind_fault(number)) is None:
        return
    reason = "is taken" if fault.errno == errno.EADDRINUSE else f"can't be had ({fault.strerror})"
    raise Refusal(f"port {number} for {service} {reason}: free it, or choose another with -e {variable}=PORT", code=1)


def for_ssh(wanted: int, log: Log) -> tuple[int, ...]:
    """The ports for sshd: the wanted one, and 22 where it can be had."""
    if wanted == BEST_EFFORT:
        return (wanted,)
    if fault := bind_fault(BEST_EFFORT):
        log.warning(f"SSH: port 22 can't be had ({fault.strerror}): SSH answers on {wanted} only")
        return (wanted,)
    return (wanted, BEST_EFFORT)
