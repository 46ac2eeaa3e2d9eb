"""The command line: one typer application, one line for a user's mistake, documented exit codes."""

from __future__ import annotations

import errno
import importlib
import logging
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from gpuyard.errors import UserError

HELP = """PyTorch + CUDA training images, built from hash-locked parts and proven from inside.

Exit codes: 0 done; 1 refused or failed; 2 usage error; verify also 3: a required check could
not run.
"""
COMMANDS = {
    "build": "building",
    "fetch": "building",
    "reproduce": "building",
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
"""Each command and the room of gpuyard.commands that holds its module: a function of that name, or an application."""
TAKEN = ("inspect", "list", "reproduce")
"""Names that mean something else in Python or where they are used: theirs end with an underscore."""


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
            app.command(name)(getattr(module, word))
    return app


def _options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the commit.")] = False,
) -> None:
    if version:
        from gpuyard.image.build import revision

        print(f"gpuyard {revision() or 'outside git'}")
        raise typer.Exit


def main(argv: list[str] | None = None) -> None:
    """The program: parses, runs, and turns a UserError into one line and its exit code."""
    words = sys.argv[1:] if argv is None else argv
    ours, command = _split(words)
    logging.basicConfig(level=logging.WARNING, format="gpuyard: %(message)s")
    try:
        app = application([word for word in ours[:1] if word in COMMANDS] or COMMANDS)
        app(args=ours, obj=command, prog_name="gpuyard")
    except UserError as error:
        print(f"gpuyard: {_labelled(error)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(
            f"gpuyard: error[disk-full]: the disk is full ({error}). Free some (gpuyard clean, docker system df), "
            "then run again",
            file=sys.stderr,
        )
        sys.exit(1)


def _labelled(error: UserError) -> str:
    return f"error[{error.id}]: {error}" if error.id else str(error)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]
