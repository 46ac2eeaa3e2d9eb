"""The commands, where each is defined, and the typer application made of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Annotated

import typer

HELP = """PyTorch + CUDA training images, built from hash-locked parts and proven from inside.

Exit codes: 0 done; 1 refused or failed; 2 usage error; verify also 3: a required check could
not run.
"""
COMMANDS = {
    "build": "building",
    "fetch": "building",
    "reproduce": "building",
    "load": "publishing",
    "verify": "using",
    "tags": "publishing",
    "publish": "publishing",
    "pipeline": "publishing",
    "inspect": "publishing",
    "run": "using",
    "list": "using",
    "pick": "using",
    "diff": "using",
    "bases": "publishing",
    "lock": "building",
    "update": "building",
    "report": "using",
    "page": "publishing",
    "clean": "building",
    "new": "using",
    "engine": "using",
    "explain": "using",
    "render": "using",
}
"""Each command and the folder of its module, which has a function of that name or a typer application."""
TAKE_COMMAND = ("run", "render")
"""Commands for which words after -- are the command of a container or job."""
TAKEN = ("inspect", "list", "reproduce")
"""Commands whose module and function end with an underscore, because the plain name has another meaning."""


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The application with these commands. Only their modules are imported, which takes most of a short command."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP)
    app.callback(invoke_without_command=True)(_options)
    for name in names:
        word = f"{name}_" if name in TAKEN else name
        module = importlib.import_module(f"gpuyard.commands.{COMMANDS[name]}.{word}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name, cls=getattr(module, "Command", None))(getattr(module, word))
    return app


def _options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the commit.")] = False,
) -> None:
    if version:
        from gpuyard.image.build import revision

        print(f"gpuyard {revision() or 'outside git'}")
        raise typer.Exit
