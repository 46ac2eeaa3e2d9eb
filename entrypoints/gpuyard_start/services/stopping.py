"""Stopping the container: every running program gets SIGTERM at once, and is waited for.

The supervisor itself would end Jupyter and sshd first, and with them a kernel that is saving its model. How long
Docker waits is Docker's affair: whoever has not ended by then is killed by it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from . import scan_folder

PROC = Path("/proc")
# Programs that only run others. They end with those, or with the container; a signal to them could cut short what
# the program inside does when it is stopped.
_CARRIERS = ("bash", "dash", "sh", "zsh", "fish", "session", "screen", "SCREEN", "tini")
_SUPERVISOR = "s6-"
# A kernel looks for it when a cell has ended.
SIGN = "stopping"
# The services that people's programs run below.
_ENTERED = ("jupyter", "sshd")


class Process(NamedTuple):
    """One process: its number, its parent's, its name, and when it began, since numbers are used again."""

    pid: int
    parent: int
    name: str
    born: str


def read(pid: int, proc: Path = PROC) -> Process | None:
    """The process, or None if it is gone or a zombie."""
    try:
        text = (proc / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return None if rest[0] in "ZX" else Process(pid, int(rest[1]), name, rest[19])


def _group(process: Path) -> str:
    """A process's control groups, as this container names them."""
    try:
        return (process / "cgroup").read_text("utf-8", "replace")
    except OSError:
        return ""


def processes(proc: Path = PROC) -> dict[int, Process]:
    """Every process of this container: with ``--pid host``, those of the host can be seen, and are left out."""
    own = _group(proc / "self")
    folders = [folder for folder in proc.iterdir() if folder.name.isdigit() and _group(folder) == own]
    return {process.pid: process for process in (read(int(folder.name), proc) for folder in folders) if process}


def _is_carrier(process: Process) -> bool:
    return process.name in _CARRIERS or process.name.startswith(("tmux", "sshd", "s6-"))


def _above(process: Process, everyone: dict[int, Process]) -> set[int]:
    """The numbers of the processes above one, up to the first."""
    found: set[int] = set()
    while (above := everyone.get(process.parent)) and above.pid not in found:
        found.add(above.pid)
        process = above
    return found


def workers(everyone: dict[int, Process], others: bool) -> list[Process]:
    """The topmost programs of kernels, terminals and logins; with ``others`` also those that left their login.

    What a program started itself is its own to end: a worker that goes first looks like a crash to it.
    """
    supervisor = {process.pid for process in everyone.values() if process.name.startswith(_SUPERVISOR)}
    ours = {process.pid: process for process in everyone.values() if process.parent in supervisor}
    entered = {pid for pid, process in ours.items() if process.name.startswith(_ENTERED)}
    stay = {process.pid for process in everyone.values() if _is_carrier(process)} | set(ours)
    # What the supervisor runs below ends after it, such as the first process of an engine's --init.
    stay.update(*(_above(everyone[pid], everyone) for pid in supervisor))
    found = []
    for process in everyone.values():
        top = process.pid not in stay and (process.parent in stay or process.parent not in everyone)
        above = _above(process, everyone)
        if top and (above & entered or (others and not above & (supervisor | set(ours)))):
            found.append(process)
    return found


def logins(everyone: dict[int, Process]) -> list[Process]:
    """The sessions of sshd. An idle shell outlives the signal, and its session keeps sshd's log open, for whose end
    the supervisor waits; a signal to the session itself ends the shell."""
    supervisor = {process.pid for process in everyone.values() if process.name.startswith(_SUPERVISOR)}
    sshd = {process.pid for process in everyone.values() if process.name == "sshd" and process.parent in supervisor}
    return [process for process in everyone.values() if process.name.startswith("sshd") and process.parent in sshd]


def terminate(found: list[Process]) -> list[Process]:
    """Sends SIGTERM to each; returns those that still existed."""
    reached = []
    for process in found:
        try:
            os.kill(process.pid, signal.SIGTERM)
        except OSError:
            continue
        reached.append(process)
    return reached


def main() -> None:
    """Runs in the scan folder."""
    scan = Path.cwd()
    alone = scan_folder.is_fatal(scan.parent)
    with contextlib.suppress(OSError):
        (scan.parent / SIGN).touch()
    waited = terminate(workers(processes(), others=alone))
    while waited := [process for process in waited if read(process.pid) == process]:
        time.sleep(0.05)
    terminate(logins(processes()))
    subprocess.run(["/usr/bin/s6-svscanctl", "-t", str(scan)], check=False)
