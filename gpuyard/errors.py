"""The one kind of error that a user sees, and warnings: each has an id that ``gpuyard explain ID`` explains."""

from __future__ import annotations

import logging

log = logging.getLogger("gpuyard")


class UserError(Exception):
    """A mistake or a missing condition on the user's side.

    ``id`` is a literal of kebab-case that ``gpuyard/messages/*.toml`` explains; it is printed, is stable, and is what
    tests assert. ``message`` is one line: what was wrong, what was expected, what to do. ``exit_code`` is what the
    command line ends with.
    """

    def __init__(self, id: str, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.id = id
        self.exit_code = exit_code


class UsageError(UserError):
    """A usage error: an unknown line, image, check or value (exit code 2)."""

    def __init__(self, id: str, message: str) -> None:
        super().__init__(id, message, exit_code=2)


def warn(id: str, message: str) -> None:
    """Logs a warning with its id, explained like that of an error."""
    log.warning("warning[%s]: %s", id, message)
