"""Finding the parts of an object that a policy speaks of, whatever kind of job they are in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]


def objects(node: Any) -> Iterator[Object]:
    """Every mapping in it, from the outside in."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from objects(child)


def pods(node: Any) -> list[Object]:
    """Every pod's spec, and the patches of one: what has containers and volumes."""
    return [found for found in objects(node) if "containers" in found and "volumes" in found]


def containers(node: Any) -> list[Object]:
    """Every container, those that run first included."""
    return [found for pod in pods(node) for found in [*pod.get("initContainers", ()), *pod["containers"]]]


def expanded(word: str, env: dict[str, str]) -> str:
    """A word of ``args`` as the kubelet hands it on: ``$$`` is a dollar, ``$(NAME)`` a value where there is one."""
    out, rest = "", word
    while rest:
        head, dollar, tail = rest.partition("$")
        out, rest = out + head, tail
        if dollar and tail.startswith("$"):
            out, rest = out + "$", tail[1:]
        elif dollar and tail.startswith("(") and ")" in tail:
            name, _, rest = tail[1:].partition(")")
            out += env.get(name, f"$({name})")
        else:
            out += dollar
    return out
