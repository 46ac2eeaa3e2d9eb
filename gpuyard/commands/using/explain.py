"""`gpuyard explain ID`: what a printed id means and what repairs it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated

import typer

from gpuyard import messages
from gpuyard.errors import UsageError
from verify.engine import registry
from verify.explain import explain as explain_check
from verify.messages import OWN


def explain(
    id: Annotated[
        str, typer.Argument(help="The id in brackets of an error or a warning, or a check's; none lists all.")
    ] = "",
) -> None:
    """Print what the id of an error, a warning or a check means, and what repairs it."""
    known = messages.load()
    if not id:
        width = max(map(len, known))
        print("\n".join(f"{message.id:{width}}  {message.means}" for message in known.values()))
        print("\nEvery check of the suite has an id too: gpuyard explain CHECK")
    elif text := _text(known, id):
        print(text)
    else:
        near = difflib.get_close_matches(id, [*known, *(check.id for check in registry.CHECKS)], n=3, cutoff=0.5)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise UsageError("explain-unknown-id", f"unknown id {id!r}{hint}. gpuyard explain lists all of them")


def _text(known: Mapping[str, messages.Message], id: str) -> str:
    if id in known:
        message = known[id]
        steps = "\n".join(f"  - {step}" for step in message.repair)
        return f"{message.id} ({message.room})\n\n{message.means}\n\nWhat to do:\n{steps}"
    if id in OWN or any(check.id == id for check in registry.CHECKS):
        return explain_check(registry.CHECKS, id)
    return _outside(id)


def _outside(id: str) -> str:
    """A check from outside; empty for an id that none has."""
    # Imported here, because the checks bring the engine's client and the SSH library with them.
    from gpuyard.acceptance import suite

    for check in suite.CHECKS:
        if check.id == id:
            needs = f"\nNeeds: {', '.join(check.needs)}" if check.needs else ""
            return (
                f"{check.id}: {check.title}\ngroup {check.group}, level {check.level.value}, seen from outside\n\n"
                f"What: {check.evaluate.__doc__}{needs}\nRun it: gpuyard verify --only {check.id}"
            )
    return ""
