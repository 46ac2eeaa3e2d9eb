"""What several commands do with their options: refuse those that would have no effect."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from gpuyard.errors import UsageError


def given(context: typer.Context, name: str) -> bool:
    """Whether the user typed the option of that parameter, whatever its value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def refuse_without_effect(options: Iterable[str], why: str) -> None:
    """Refuses the options that were given and would change nothing; ``why`` completes 'has no effect'."""
    if found := ", ".join(options):
        raise UsageError("option-without-effect", f"{found} has no effect {why}")
