"""The command line: one typer application, one line for a user's mistake, documented exit codes."""

from __future__ import annotations

import errno
import logging
import sys
from typing import Annotated

import typer

from gpuyard.build import revision
from gpuyard.commands import (
    bases,
    build,
    clean,
    diff,
    engine,
    fetch,
    inspect_,
    list_,
    lock,
    new,
    page,
    pick,
    pipeline,
    publish,
    render,
    report,
    reproduce,
    run,
    tags,
    update,
    verify,
)
from gpuyard.errors import UserError

HELP = """PyTorch + CUDA training images, built from hash-locked parts and proven from inside.

Exit codes: 0 done; 1 refused or failed; 2 words it does not know; verify also 3: a required check could
not run.
"""
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=HELP)
app.command("build")(build.build)
app.command("fetch")(fetch.fetch)
app.command("reproduce")(reproduce.reproduce_)
app.command("verify")(verify.verify)
app.command("tags")(tags.tags)
app.command("publish")(publish.publish)
app.command("pipeline")(pipeline.pipeline)
app.command("inspect")(inspect_.inspect)
app.command("run")(run.run)
app.command("list")(list_.list_)
app.command("pick")(pick.pick)
app.command("diff")(diff.diff)
app.command("bases")(bases.bases)
app.command("lock")(lock.lock)
app.command("update")(update.update)
app.command("report")(report.report)
app.command("page")(page.page)
app.command("clean")(clean.clean)
app.command("new")(new.new)
app.add_typer(engine.app, name="engine")
app.add_typer(render.app, name="render")


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the commit.")] = False,
) -> None:
    if version:
        print(f"gpuyard {revision() or 'outside git'}")
        raise typer.Exit


def main(argv: list[str] | None = None) -> None:
    """The program: parses, runs, and turns a UserError into one line and its exit code."""
    words = sys.argv[1:] if argv is None else argv
    ours, command = _split(words)
    logging.basicConfig(level=logging.WARNING, format="gpuyard: %(message)s")
    try:
        app(args=ours, obj=command, prog_name="gpuyard")
    except UserError as error:
        print(f"gpuyard: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(
            f"gpuyard: the disk is full ({error}). Free some (gpuyard clean, docker system df), run again",
            file=sys.stderr,
        )
        sys.exit(1)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]
