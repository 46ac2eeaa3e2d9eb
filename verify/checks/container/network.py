"""The names and interfaces that ranks of several containers find each other by."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
from functools import partial
from pathlib import Path
from typing import List, Sequence

from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, listed, passed

VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
NEVER = ("lo", "docker")
"""What NCCL leaves out as long as anything else is there."""
INFINIBAND = Path("/dev/infiniband")
VERBS = "libibverbs.so.1"
PROVIDERS = "in your own image: apt-get update && apt-get install -y libibverbs1 ibverbs-providers"


def probe_hostname() -> Facts:
    """Resolve this container's own name."""
    name = socket.gethostname()
    try:
        found = sorted({str(entry[4][0]) for entry in socket.getaddrinfo(name, None)})
    except OSError as error:
        return {"name": name, "addresses": [], "error": str(error)}
    return {"name": name, "addresses": found, "error": ""}


def evaluate_hostname(facts: Facts, _claims: Claims) -> Verdict:
    """Other nodes are told this address; torch falls back to the loopback with a warning only."""
    name, found = facts["name"], facts["addresses"]
    expected = "the own name has an address that other containers reach"
    remedy = "docker run --hostname NAME --network NET ..., and no line '127.0.0.1 NAME' in /etc/hosts"
    if facts["error"]:
        return failed(f"{name} cannot be resolved: {facts['error']}", expected, remedy, Owner.START)
    if all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in found):
        return failed(f"{name} is {listed(found)}, the loopback: no other node", expected, remedy, Owner.START)
    return passed(f"{name} is {listed(found)}", expected)


def probe_interface() -> Facts:
    """List the interfaces and the variables that choose among them."""
    names = [name for _, name in socket.if_nameindex()]
    return {"interfaces": names, "variables": {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}}


def evaluate_interface(facts: Facts, _claims: Claims) -> Verdict:
    """A variable that names no interface ends in 'Unable to find address'; without one the choice is named."""
    interfaces: Sequence[str] = facts["interfaces"]
    expected = "an interface for collectives; better no variable at all"
    for name, value in facts["variables"].items():
        if not chosen(interfaces, value):
            text = f"{name}={value} matches none of {listed(interfaces)}"
            return failed(text, expected, f"unset {name}, or name one of them", Owner.START)
    value = next(iter(facts["variables"].values()), "")
    return passed(f"NCCL would take {listed(chosen(interfaces, value)) or 'none'} of {listed(interfaces)}", expected)


def chosen(interfaces: Sequence[str], value: str = "") -> List[str]:
    """NCCL's rule: prefixes to take, ^ before prefixes to leave, = for whole names; lo and docker come last."""
    if not value:
        return [name for name in interfaces if not name.startswith(NEVER)] or list(interfaces)[:1]
    exclude, exact = value.startswith("^"), value.lstrip("^").startswith("=")
    parts = value.lstrip("^").lstrip("=").split(",")
    matches = [n for n in interfaces if any(n == p if exact else n.startswith(p) for p in parts)]
    return [name for name in interfaces if name not in matches] if exclude else matches


def probe_infiniband() -> Facts:
    """List InfiniBand's device nodes, and count the devices for which NCCL's library finds a provider."""
    nodes = sorted(str(node) for node in INFINIBAND.glob("uverbs*"))
    try:
        verbs = ctypes.CDLL(VERBS)
    except OSError as error:
        return {"nodes": nodes, "error": str(error), "usable": 0}
    usable = ctypes.c_int(0)
    if nodes:
        verbs.ibv_get_device_list.restype = ctypes.c_void_p
        verbs.ibv_get_device_list(ctypes.byref(usable))
    return {"nodes": nodes, "error": "", "usable": usable.value}


def evaluate_infiniband(facts: Facts, _claims: Claims) -> Verdict:
    """Without the library NCCL goes over TCP instead, ten times slower, and says so only with NCCL_DEBUG=INFO."""
    expected = f"{VERBS} and a provider for each device in /dev/infiniband"
    if not facts["nodes"]:
        return passed("no /dev/infiniband", expected)
    if facts["error"]:
        text = f"{listed(facts['nodes'])} is here, but NCCL would go over TCP: {facts['error']}"
        return failed(text, expected, PROVIDERS, Owner.IMAGE)
    if facts["usable"] < len(facts["nodes"]):
        text = f"{len(facts['nodes'])} InfiniBand devices are here, {VERBS} can use {facts['usable']} of them"
        return failed(f"{text}: no provider, so NCCL would go over TCP", expected, PROVIDERS, Owner.IMAGE)
    return passed(f"{listed(facts['nodes'])} and {VERBS} with their providers", expected)


_check = partial(Check, group="network", level=Level.CONTAINER, isolation=Isolation.CHILD, timeout=30.0)

CHECKS: List[Check] = [
    _check(
        id="hostname",
        title="The own hostname is not a loopback address",
        probe=probe_hostname,
        evaluate=evaluate_hostname,
        why="Ranks tell each other their hostname's address; the loopback leads nowhere, and torch only warns.",
        repairs=(
            "docker run --hostname NAME --network NET ...",
            "take the name out of the line 127.0.0.1 in /etc/hosts",
        ),
    ),
    _check(
        id="interface",
        title="There is an interface for collectives",
        probe=probe_interface,
        evaluate=evaluate_interface,
        why="A wrong NCCL_SOCKET_IFNAME ends in 'Unable to find address', '^docker0' alone brings lo back.",
        repairs=("unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME",),
    ),
    _check(
        id="infiniband",
        title="InfiniBand, if any, can be used",
        probe=probe_infiniband,
        evaluate=evaluate_infiniband,
        why="Device nodes without libibverbs: NCCL falls back to TCP without a word, and trains ten times slower.",
        repairs=("apt-get install ibverbs-providers in your own image", "verify --only limit-memlock"),
    ),
]
