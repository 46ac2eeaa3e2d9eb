"""Engines that start no container: they note how they were called, and run the command on this machine."""

from __future__ import annotations

import os
from pathlib import Path

# Everything up to the image is the engine's; what follows is the command.
ENGINE = """#!/bin/bash
echo "$@" >>"$HOME_OF_TEST/$(basename "$0").txt"
[ "$1" != rm ] || exit 0
while [ "$1" != local/image:test ]; do shift; done
shift
exec "$@"
"""
VERIFY = """#!/bin/bash
echo "verify $*"
exit "${VERDICT:-0}"
"""
# pyxis is a plugin of srun: without it srun does not know these options.
SRUN = """#!/bin/bash
printf '%s\\n' "$@" >>"$HOME_OF_TEST/srun.txt"
words=()
for word in "$@"; do case $word in --container-* | --no-container-mount-home) ;; *) words+=("$word") ;; esac; done
exec /usr/bin/srun "${words[@]}"
"""


def stand_ins(folder: Path, verdict: int = 0) -> str:
    """Writes them, and returns a PATH on which they come first."""
    place = folder / "bin"
    place.mkdir()
    programs = {"docker": ENGINE, "apptainer": ENGINE, "verify": VERIFY, "srun": SRUN}
    for name, program in programs.items():
        (place / name).write_text(program.replace("$HOME_OF_TEST", str(folder)).replace("${VERDICT:-0}", str(verdict)))
        (place / name).chmod(0o755)
    return f"{place}:{os.environ['PATH']}"
