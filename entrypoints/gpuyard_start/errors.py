"""A refusal, which ends the start, and a notice, with which it goes on. Both have an id that is explained."""

from __future__ import annotations

from typing import NamedTuple

USAGE = 2
NOT_EXECUTABLE = 126
NOT_FOUND = 127


class Refusal(Exception):
    """The container must not start. The message is one line: what is wrong, what was expected, what to do.

    ``id`` is a literal of kebab-case that ``entrypoints/messages.toml`` explains (``verify explain ID``).
    """

    def __init__(self, id: str, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.id = id
        self.code = code


class Notice(NamedTuple):
    """A warning or an error for the log, with an id like that of a refusal."""

    id: str
    message: str
