"""The program: runs a command, and turns a user's mistake into one line and a documented exit code."""

from __future__ import annotations

import errno
import logging
import sys

from gpuyard.commands.tree import COMMANDS, TAKE_COMMAND, application
from gpuyard.errors import UsageError, UserError


def main(argv: list[str] | None = None) -> None:
    """The program: parses, runs, and turns a UserError into one line and its exit code."""
    words = sys.argv[1:] if argv is None else argv
    ours, command = _split(words)
    logging.basicConfig(level=logging.WARNING, format="gpuyard: %(message)s")
    try:
        refuse_stray(ours, command)
        app = application([word for word in ours[:1] if word in COMMANDS] or COMMANDS)
        app(args=ours, obj=command, prog_name="gpuyard")
    except UserError as error:
        print(f"gpuyard: error[{error.id}]: {error}", file=sys.stderr)
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


def refuse_stray(ours: list[str], behind: list[str]) -> None:
    """Refuses words after -- where no command takes any: they would change nothing."""
    if behind and ours and ours[0] in COMMANDS and ours[0] not in TAKE_COMMAND:
        raise UsageError(
            "words-after-dashes",
            f"gpuyard {ours[0]} does not take a command, so nothing may follow --; found {' '.join(behind)}",
        )


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]
