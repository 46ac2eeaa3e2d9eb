"""Whether other nodes can reach this one by its name."""

from __future__ import annotations

import os
import socket

from examples.errors import ExampleError

FORCED = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")


def require_reachable(name: str) -> None:
    """This node's name must not stand for the loopback: other nodes are told to connect to it."""
    if any(os.environ.get(variable) for variable in FORCED):
        return
    fix = f"or name the network card in {' and '.join(FORCED)}"
    try:
        found = addresses(name)
    except OSError:
        raise ExampleError(
            f"this node's name {name} can't be resolved, so other nodes can't be told where it is: "
            f"add it to /etc/hosts, {fix}"
        ) from None
    # The first one counts: it is what the processes tell each other.
    if is_loopback(found[0]):
        raise ExampleError(
            f"this node's name {name} stands for {', '.join(found)}, which other nodes can't reach: "
            f"take it out of that line of /etc/hosts, {fix}"
        )


def addresses(name: str) -> list[str]:
    """What a name stands for, in the order in which it is tried."""
    return list(dict.fromkeys(str(entry[4][0]) for entry in socket.getaddrinfo(name, None)))


def own_addresses() -> set[str]:
    """The addresses by which this node knows itself."""
    found = {"127.0.0.1", "::1"}
    for name in (socket.gethostname(), "localhost"):
        try:
            found.update(addresses(name))
        except OSError:
            continue
    return found


def is_loopback(address: str) -> bool:
    """Whether an address never leaves this node."""
    return address.startswith("127.") or address == "::1"
