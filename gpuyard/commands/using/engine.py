"""`gpuyard engine start|status|stop`."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from gpuyard.engine import daemon

app = typer.Typer(no_args_is_help=True, help="Start, look at, or stop a Docker engine.")


@app.command()
def start() -> None:
    """Use the engine that answers; install and start one where none does (root on Debian or Ubuntu)."""
    daemon.ensure()
    status()


@app.command()
def status() -> None:
    """Say which engine answers. Exit code 1 if none does."""
    found = daemon.status()
    if not found:
        print("no Docker engine answers")
        raise typer.Exit(1)
    table = Table.grid(padding=(0, 2))
    for name, value in found.items():
        table.add_row(name, str(value))
    Console().print(table)


@app.command()
def stop() -> None:
    """Stop the engine that gpuyard started; an engine of the system's is left alone."""
    print("stopped" if daemon.stop() else "gpuyard started no engine here")
