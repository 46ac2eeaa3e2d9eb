"""`gpuyard explain ID`: what a printed id means and what repairs it."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from gpuyard import messages
from gpuyard.errors import UsageError


def explain(
    id: Annotated[str, typer.Argument(help="The word in brackets of an error or a warning; none lists all.")] = "",
) -> None:
    """Say what an error's or a warning's id means, and what repairs it."""
    known = messages.load()
    if not id:
        width = max(map(len, known))
        print("\n".join(f"{message.id:{width}}  {message.means}" for message in known.values()))
    elif id in known:
        message = known[id]
        print(f"{message.id} ({message.room})\n\n{message.means}\n\nWhat to do:")
        print("\n".join(f"  - {step}" for step in message.repair))
    else:
        near = difflib.get_close_matches(id, known, n=3, cutoff=0.5)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise UsageError("explain-unknown-id", f"unknown id {id!r}{hint}. gpuyard explain lists all of them")
