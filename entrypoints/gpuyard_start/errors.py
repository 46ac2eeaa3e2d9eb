"""The one way in which a start is refused."""

from __future__ import annotations

USAGE = 2
NOT_EXECUTABLE = 126
NOT_FOUND = 127


class Refusal(Exception):
    """The container must not start. The message is one line: what is wrong, what was expected, what to do."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
