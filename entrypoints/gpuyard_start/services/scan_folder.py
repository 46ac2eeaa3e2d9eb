"""The supervisor's scan folder: one folder per service, whose programs are links into the image.

Links, because a tmpfs that Docker mounts does not let files on it be executed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..errors import Refusal

PROGRAMS = Path(__file__).resolve().parents[2] / "services"
SUPERVISOR = str(PROGRAMS / "s6-keeper")
SCAN = "services"
PRIVATE = "ssh"
# Everything a start puts into its folder.
OURS = (SCAN, PRIVATE, "state.json", "fatal", "verdict", "stopping")
# A container has to end within two seconds of ``docker stop``.
KILL_AFTER_MS = "1200"


def write_private(path: Path, text: str) -> None:
    """Writes a file that only this user can read, from its first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text)


def running(folder: Path) -> bool:
    """Whether a supervisor works in this start's folder: only then does its pipe have a reader."""
    try:
        os.close(os.open(folder / SCAN / ".s6-svscan" / "control", os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def remove(folder: Path) -> None:
    """Removes what a start put there, including secrets; a home beside it stays."""
    # Late: a first start has nothing to remove, and this import is slow.
    import shutil

    for name in OURS:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def make_scan_folder(folder: Path, fatal: bool) -> Path:
    """The empty scan folder. ``fatal``: a service that keeps failing ends the container."""
    if running(folder):
        raise Refusal(
            "services-running", "this container's services are running already: stop it, or start another one", code=1
        )
    # A container that was killed and is started again finds what the first start left.
    if any((folder / name).exists() for name in OURS):
        remove(folder)
    scan = folder / SCAN
    control = scan / ".s6-svscan"
    control.mkdir(mode=0o700, parents=True)
    (control / "finish").symlink_to(PROGRAMS / "ended")
    for told in ("SIGTERM", "SIGINT"):
        (control / told).symlink_to(PROGRAMS / "stop")
    write_private(folder / "fatal", "yes" if fatal else "no")
    return scan


def is_fatal(folder: Path) -> bool:
    """Whether the container ends with its services, because no command of the user's runs beside them."""
    return (folder / "fatal").read_text("utf-8").strip() == "yes"


def add(scan: Path, name: str) -> Path:
    """A service's folder; the caller puts the service's settings into it."""
    folder = scan / name
    folder.mkdir(mode=0o700)
    (folder / "run").symlink_to(PROGRAMS / name / "run")
    (folder / "finish").symlink_to(PROGRAMS / "finish")
    write_private(folder / "timeout-kill", KILL_AFTER_MS + "\n")
    # Waiting between two starts happens in ``finish``: it must not be cut short.
    write_private(folder / "timeout-finish", "0\n")
    return folder


def add_logger(folder: Path, program: Path) -> None:
    """A program that reads what a service prints and passes it on."""
    (folder / "log").mkdir(mode=0o700)
    (folder / "log" / "run").symlink_to(program)


def add_jupyter(
    scan: Path, settings: dict[str, dict[str, object]], options: tuple[str, ...] = (), as_json: bool = False
) -> None:
    """JupyterLab with its settings beside it; ``options`` go to its command line."""
    folder = add(scan, "jupyter")
    if options:
        write_private(folder / "options", "".join(f"{option}\n" for option in options))
    if as_json:
        add_logger(folder, PROGRAMS / "lines")
    write_private(folder / "settings.json", json.dumps(settings, indent=1))
    # Jupyter's own name for the file: it reads the settings beside it.
    name = "jupyter_server_config.py"
    (folder / name).symlink_to(PROGRAMS / "jupyter" / name)


def add_memory(scan: Path) -> None:
    """The service that reports processes ended because memory ran out."""
    add(scan, "memory")


def add_ssh(scan: Path, sshd_config: str, as_json: bool = False) -> None:
    """sshd with its settings beside it, and a logger that gives each line a time."""
    folder = add(scan, "ssh")
    write_private(folder / "sshd_config", sshd_config)
    add_logger(folder, PROGRAMS / "lines" if as_json else PROGRAMS / "ssh" / "log" / "run")
