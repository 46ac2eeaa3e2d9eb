"""Restarts a service that ended, each time later, and gives up after several failures."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from ..log import Log
from . import scan_folder

WINDOW = 120.0
TOO_MANY = 5
LONGEST_WAIT = 8.0
# s6 gives this as the exit code when a signal ended the service.
KILLED = 256
_DOWN = 125


class Ended(NamedTuple):
    """How a service ended: with an exit code, or by a signal."""

    code: int
    signal: int

    @property
    def clean(self) -> bool:
        """Whether it ended on purpose, for example by Shut Down in Jupyter's menu."""
        return self.code == 0

    @property
    def exit_code(self) -> int:
        """The code that a shell would give for it; never 0."""
        return 128 + self.signal if self.code == KILLED else self.code or 1

    def __str__(self) -> str:
        return f"killed by signal {self.signal}" if self.code == KILLED else f"exit code {self.code}"


def recent(deaths: list[float], now: float) -> list[float]:
    """The failures that still count."""
    return [moment for moment in deaths if 0 <= now - moment < WINDOW]


def wait_before(failures: int) -> float:
    """Seconds to wait before the next start: 0, 1, 2, 4, 8, 8, …"""
    return 0.0 if failures <= 1 else min(LONGEST_WAIT, 2.0 ** (failures - 2))


def _note_failure(folder: Path, now: float) -> int:
    """Adds a failure to the service's notes; the number that count now."""
    notes = folder / "failures.json"
    try:
        known = [float(moment) for moment in json.loads(notes.read_text("utf-8"))]
    except (OSError, ValueError):
        known = []
    kept = [*recent(known, now), now]
    notes.write_text(json.dumps(kept), "utf-8")
    return len(kept)


def wanted_up(service: Path) -> bool:
    """Whether the supervisor wants the service to run; it does not once the container is being stopped."""
    told = subprocess.run(
        ["/usr/bin/s6-svstat", "-o", "wantedup", str(service)], capture_output=True, text=True, check=False
    )
    return told.stdout.strip() != "false"


def rest(service: Path, seconds: float) -> None:
    """Sleeps, but wakes when the container is stopped: the supervisor waits for this process."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and wanted_up(service):
        time.sleep(0.2)


def give_up(log: Log, scan: Path, service: str, ended: Ended) -> int:
    """Logs why, and ends the container unless a command runs in it. Returns s6's code for 'do not start again'."""
    fatal = scan_folder.is_fatal(scan.parent)
    reason = f"{service} failed {TOO_MANY} times within {WINDOW:g} s, last with {ended}: see its lines above"
    log.error("service-gave-up", reason + ("; the container ends" if fatal else "; it stays off, your command goes on"))
    if fatal:
        (scan.parent / "verdict").write_text(str(ended.exit_code), "utf-8")
        subprocess.run(["/usr/bin/s6-svscanctl", "-t", str(scan)], check=False)
    return _DOWN


def finish(argv: list[str], style: str) -> int:
    """s6's ``finish`` of a service: argv is exit code, signal, service name. Runs in the service's folder."""
    ended, service, scan = Ended(int(argv[0]), int(argv[1])), argv[2], Path.cwd().parent
    log = Log(style, "start")
    if not wanted_up(Path.cwd()):
        return 0
    if ended.clean:
        log.info(f"{service} ended by itself and is started again")
        return 0
    failures = _note_failure(Path.cwd(), time.time())
    if failures >= TOO_MANY:
        return give_up(log, scan, service, ended)
    wait = wait_before(failures)
    again = f"in {wait:g} s" if wait else "now"
    log.warning(
        "service-ended", f"{service} ended ({ended}); it is started again {again} (failure {failures} of {TOO_MANY})"
    )
    rest(Path.cwd(), wait)
    return 0


def ended() -> int:
    """s6's last act: removes the start's own files, secrets among them; the container's exit code."""
    scan = Path.cwd()
    try:
        code = int((scan.parent / "verdict").read_text("utf-8"))
    except (OSError, ValueError):
        code = 0
    scan_folder.remove(scan.parent)
    return code


def lost(scan: Path, signal: int, style: str) -> int:
    """Logs that the supervisor itself was killed. Returns the exit code."""
    folder = scan.parent
    alone = scan_folder.is_fatal(folder)
    outcome = "the container ends" if alone else "JupyterLab and SSH are not restarted any more, your command goes on"
    log = Log(style, "start")
    log.error("supervisor-killed", f"the services' supervisor was killed by signal {signal}: {outcome}")
    if alone:
        scan_folder.remove(folder)
    return 128 + signal
