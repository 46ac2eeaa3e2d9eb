"""Whether a port is free, known before anything is started."""

from __future__ import annotations

import errno
import socket

from ..errors import Refusal
from ..log import Log

BEST_EFFORT = 22


def _fault(family: socket.AddressFamily, address: str, number: int) -> OSError | None:
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((address, number))
            probe.listen()
    except OSError as error:
        return error
    return None


def has_ipv6() -> bool:
    """Whether programs can listen on IPv6 here; a kernel or an engine may be without it."""
    return _fault(socket.AF_INET6, "::", 0) is None


def bind_fault(number: int) -> OSError | None:
    """Why a port can't be listened on, on IPv4 or IPv6; None if it can."""
    fault = _fault(socket.AF_INET, "0.0.0.0", number)
    return fault or (_fault(socket.AF_INET6, "::", number) if has_ipv6() else None)


def check(number: int, service: str, variable: str) -> None:
    """Refuses a port that can't be used, and names the variable that changes it."""
    if (fault := bind_fault(number)) is None:
        return
    reason = "is taken" if fault.errno == errno.EADDRINUSE else f"can't be used ({fault.strerror})"
    raise Refusal(
        "service-port-taken",
        f"port {number} for {service} {reason}: free it, or choose another with -e {variable}=PORT",
        code=1,
    )


def for_ssh(wanted: int, log: Log) -> tuple[int, ...]:
    """The ports for sshd: the wanted one, and 22 where that is possible."""
    if wanted == BEST_EFFORT:
        return (wanted,)
    if fault := bind_fault(BEST_EFFORT):
        log.warning("ssh-port-22", f"SSH: port 22 can't be used ({fault.strerror}): SSH answers on {wanted} only")
        return (wanted,)
    return (wanted, BEST_EFFORT)
