"""Mounts as typed on the command line: a value that looks like a folder is mounted as a folder."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from gpuyard.errors import UsageError, UserError

CA = "/etc/gpuyard/ca.pem"


def resolved(mount: str, here: Path) -> str:
    """The mount with its folder's full path. Refuses a relative path to a folder that is not there.

    Docker takes ``data/raw`` for a bad name of a volume, and ``~/data`` literally where no shell has seen it.
    """
    source, colon, rest = mount.partition(":")
    if not colon or source.startswith("/") or not ("/" in source or source.startswith((".", "~"))):
        return mount
    folder = os.path.normpath(here / Path(source).expanduser())
    if not Path(folder).exists():
        raise UsageError(
            "mount-source-missing", f"-v {mount}: there is no folder {folder}: make it first, or give a full path"
        )
    return f"{folder}:{rest}"


def notice(mount: str, here: Path) -> str | None:
    """A warning where a volume has the name of a folder here: docker mounts the volume, not the folder."""
    source, colon, rest = mount.partition(":")
    if not colon or "/" in source or not (here / source).is_dir():
        return None
    return f"-v {mount} mounts docker's volume '{source}', not the folder: for the folder write -v ./{source}:{rest}"


def refuse_missing(mounts: tuple[str, ...]) -> None:
    """Refuses a mount of a folder that this host lacks: docker would make one that belongs to root."""
    for mount in mounts:
        source, colon, _ = mount.partition(":")
        if colon and source.startswith("/") and not os.path.lexists(source):
            raise UserError(
                "mount-source-missing", f"-v {mount}: there is no {source} on this host: mkdir -p {source} first"
            )


def certificates(file: Path) -> tuple[str, str]:
    """The mount and the variable for a company's certificates. Refuses a file without certificates."""
    path = file.expanduser().absolute()
    try:
        text = path.read_text("ascii", "ignore")
        if "BEGIN CERTIFICATE" not in text:
            raise ValueError("no line BEGIN CERTIFICATE in it")
        ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise UserError("ca-not-pem", f"--ca {file}: {reason}: expected certificates in PEM form") from None
    return f"{path}:{CA}:ro", f"GPUYARD_CA={CA}"
