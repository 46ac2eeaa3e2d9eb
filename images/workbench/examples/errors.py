"""Errors that the user can act on: one line instead of a traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence

from examples.stopping import STOP, Stopped

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The disk has no space left, or this user's share of it has none."""


class ExampleError(Exception):
    """An error that the user can act on: what is wrong, what was expected, what to do."""


def script(name: str, main: Callable[[Sequence[str] | None], object]) -> int:
    """Runs a program as a command: the exit code, with errors as one line each on standard error."""
    STOP.listen()
    try:
        main(None)
    except ExampleError as error:
        sys.stderr.write(f"{name}: {' '.join(str(error).split())}\n")
        return 1
    except Stopped as stopped:
        sys.stderr.write(f"{name}: {stopped}\n")
        return stopped.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read standard output has gone; the interpreter must not try to flush it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in FULL:
            raise
        place = f" ({error.filename})" if error.filename else ""
        sys.stderr.write(
            f"{name}: {error.strerror}{place}: free some and run the same command; the last checkpoint is intact\n"
        )
        return 1
    return 0
