"""The user's own steps of a start: programs in two folders of the image and in the same two of a mount."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from ..errors import Refusal
from ..log import Log

PLACES = (Path("/usr/local/share/gpuyard"), Path("/etc/gpuyard/hooks"))
# As the user that the container was started as, before root is given up; and as the user, right before the end.
SETUP = "setup.d"
START = "start.d"
_NAME = re.compile(r"\d\d-[^/]+\.(sh|py)(\.optional)?\Z")


def find(stage: str, places: tuple[Path, ...] = PLACES) -> tuple[Path, ...]:
    """The hooks of a stage in the order of their names; refuses one that can't be run."""
    found: list[Path] = []
    for place in places:
        try:
            found += [path for path in (place / stage).iterdir() if not path.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Refusal(
                "hook-unusable", f"{place / stage} can't be read ({error.strerror}): let other users enter it"
            ) from None
    for path in found:
        if stage == SETUP and os.geteuid() == 0 and not any(path.resolve().is_relative_to(p.resolve()) for p in places):
            raise Refusal(
                "hook-outside",
                f"hook {path} leads to {path.resolve()}: root runs only what lies in the folders of hooks",
            )
        if not _NAME.match(path.name):
            raise Refusal(
                "hook-unusable", f"hook {path} has no name of the form 10-name.sh or 10-name.py: rename or remove it"
            )
        if not path.is_file() or not os.access(path, os.X_OK):
            raise Refusal("hook-unusable", f"hook {path} is not executable: chmod +x it, or remove it")
    return tuple(sorted(found, key=lambda path: (path.name, str(path))))


def _fault(path: Path, env: dict[str, str]) -> tuple[str, int] | None:
    """Runs one hook; what went wrong, in words and as an exit code."""
    try:
        # Standard output belongs to the command; what a hook prints is part of the log.
        ended = subprocess.run([path], env=env, stdin=subprocess.DEVNULL, stdout=2, check=False)
    except OSError as error:
        return f"can't be executed ({error.strerror}): does its first line name a program, as in #!/bin/sh?", 126
    if ended.returncode < 0:
        return f"was killed by signal {-ended.returncode}", 128 - ended.returncode
    return (f"failed with exit code {ended.returncode}", ended.returncode) if ended.returncode else None


def run(found: tuple[Path, ...], env: dict[str, str], log: Log) -> None:
    """Runs hooks one after the other; one that fails ends the start with its code unless it is optional."""
    for path in found:
        log.info(f"hook {path} runs")
        begun = time.monotonic()
        fault = _fault(path, env)
        took = f"{time.monotonic() - begun:.1f} s"
        if fault is None:
            log.info(f"hook {path} succeeded after {took}")
        elif path.name.endswith(".optional"):
            log.warning(
                "hook-optional-failed", f"hook {path} {fault[0]} after {took}; it is optional, the start goes on"
            )
        else:
            raise Refusal("hook-failed", f"hook {path} {fault[0]} after {took}", code=fault[1])
