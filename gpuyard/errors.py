"""The one kind of error a user sees: a line that says what was wrong, what was expected, what to do."""

from __future__ import annotations


class UserError(Exception):
    """A mistake or a missing condition on the user's side. ``exit_code`` is what the CLI ends with."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(UserError):
    """Words the CLI does not know: an unknown line, image, check or value (exit code 2)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=2)
