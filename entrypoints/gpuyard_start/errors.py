"""The one way in which a start is refused."""

from __future__ import annotations

USAGE = 2
NOT_EXECUTABLE = 126
NOT_FOUND = 127


class Refusal(Exception):
    """The container must not start. The message is one line: what is wrong, what was expected, what to do.

    ``id`` is a literal of kebab-case that ``entrypoints/messages.toml`` explains (``verify explain ID``).
    """

    def __init__(self, id: str, message: str = "", code: int = USAGE) -> None:
        if not message:
            id, message = "", id
        super().__init__(message)
        self.id = id
        self.code = code
