"""What a notebook's kernel does when the container is told to stop: it ends when its cell has ended.

IPython keeps a kernel alive whose signal handler says ``sys.exit``; nobody could use it any more, and Docker would
wait its whole time for it.
"""

from __future__ import annotations

from typing import Protocol

from ..folder import find_folder
from ..services.stopping import SIGN


class Shell(Protocol):
    """What is used of IPython's shell."""

    events: Events

    def ask_exit(self) -> None:
        """Ends the kernel after what it does now."""


class Events(Protocol):
    """IPython's list of callbacks."""

    def register(self, event: str, function: object) -> None: ...


def leave(shell: Shell) -> None:
    """Ends the kernel where the container is being stopped."""
    folder = find_folder()
    if folder is not None and (folder / SIGN).exists():
        shell.ask_exit()


def load_ipython_extension(shell: Shell) -> None:
    """IPython's way in."""
    shell.events.register("post_execute", lambda: leave(shell))
