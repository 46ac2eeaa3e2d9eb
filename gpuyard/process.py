"""Running other programs: logged, without their input, and with their output shown when they fail."""

from __future__ import annotations

import logging
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuyard.errors import UserError

log = logging.getLogger("gpuyard")

TIMED_OUT = 124
"""The exit code of ``attempt`` for a program that took too long, as of timeout(1)."""


@dataclass(frozen=True)
class Ended:
    """How a program ended, and its standard output and error together."""

    code: int
    output: str


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    capture: bool = True,
    hint: str = "",
) -> str:
    """Runs a command to its end and returns its output.

    With ``capture`` off, its output goes to the terminal as it comes and the result is empty.
    Raises UserError with the last lines of its output, and ``hint``, if it fails or is missing.
    """
    done = attempt(command, cwd=cwd, env=env, capture=capture, hint=hint)
    if done.code:
        tail = "\n".join(done.output.strip().splitlines()[-15:])
        raise UserError(
            "program-failed", f"{shlex.join(command[:3])} … failed (exit {done.code}). {hint}\n{tail}".strip()
        )
    return done.output


def attempt(
    command: Sequence[str],
    *,
    seconds: float | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    capture: bool = True,
    hint: str = "",
) -> Ended:
    """Runs a command that may fail, for at most ``seconds``. Raises UserError if the program is missing."""
    log.debug("$ %s", shlex.join(command))
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            check=False,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.STDOUT if capture else None,
        )
    except FileNotFoundError as error:
        raise _missing(command, hint) from error
    except subprocess.TimeoutExpired:
        return Ended(TIMED_OUT, f"no answer within {seconds:.0f} seconds")
    return Ended(done.returncode, done.stdout or "")


def piped(command: Sequence[str], *, stderr: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Starts a command with pipes for its input and output. Raises UserError if the program is missing."""
    log.debug("$ %s", shlex.join(command[:6]))
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
    except FileNotFoundError as error:
        raise _missing(command, "") from error


def _missing(command: Sequence[str], hint: str) -> UserError:
    return UserError("program-missing", f"{command[0]}: not found. {hint}".rstrip())
