"""Running other programs: logged, and with their output shown when they fail."""

from __future__ import annotations

import logging
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuyard.errors import UserError

log = logging.getLogger("gpuyard")


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    capture: bool = True,
    hint: str = "",
) -> str:
    """Runs a command to its end and returns its standard output.

    With ``capture`` off, its output goes to the terminal as it comes and the result is empty.
    Raises UserError with the last lines of its output, and ``hint``, if it fails or is missing.
    """
    log.debug("$ %s", shlex.join(command))
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.STDOUT if capture else None,
        )
    except FileNotFoundError as error:
        raise UserError("program-missing", f"{command[0]}: not found. {hint}".rstrip()) from error
    if done.returncode:
        tail = "\n".join((done.stdout or "").strip().splitlines()[-15:])
        raise UserError(
            "program-failed", f"{shlex.join(command[:3])} … failed (exit {done.returncode}). {hint}\n{tail}".strip()
        )
    return done.stdout or ""
