"""The one environment of SSH sessions, Jupyter's terminals and kernels: the container's own, without secrets.

It is kept as name, ``=``, value and a zero byte, the one byte that no value can hold: nothing is quoted,
so nothing can be quoted wrongly, and no shell reads it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from .. import places, settings
from ..errors import Refusal
from ..folder import drop_to_owner, find_folder, make_folder
from ..secret_names import is_secret

FILE = "environment"
SHELL = "/bin/bash"
PROGRAM = Path(__file__).resolve().parents[2] / "session"
# When memory runs out, the kernel ends what runs in a session before Jupyter and sshd.
OOM_SCORE = "500"
# Each session has its own.
_PER_SESSION = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "MAIL", "TERM"})
_SPENT = frozenset(setting.name for setting in settings.TABLE if setting.spent)


def select(env: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What sessions get, and the names of the secrets that they do not get."""
    passed = set(settings.PASS.read(env))
    for name in sorted(passed):
        if name not in env:
            raise Refusal(
                "pass-unset", f"GPUYARD_PASS names {name}, which is not set: add -e {name}=…, or leave it out"
            )
    given = {k: v for k, v in env.items() if k not in _PER_SESSION | _SPENT}
    secrets = tuple(sorted(name for name in given if is_secret(name) and name not in passed))
    return {name: value for name, value in given.items() if name not in secrets}, secrets


def pack(variables: dict[str, str]) -> bytes:
    return b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())


def unpack(data: bytes) -> dict[bytes, bytes]:
    pairs = (pair.partition(b"=") for pair in data.split(b"\0") if pair)
    return {name: value for name, _, value in pairs}


def write(folder: Path, variables: dict[str, str]) -> None:
    """Writes the environment for later sessions into a file that only this user can read."""
    descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(pack(variables))


def keep(env: dict[str, str]) -> None:
    """Keeps what the start added for sessions by ``docker exec``; does nothing if there is no place for it."""
    with contextlib.suppress(OSError, Refusal):
        write(make_folder(), select(env)[0])


def restored(current: dict[bytes, bytes], folder: Path | None) -> dict[bytes, bytes]:
    """A session's environment: the container's over what sshd or Jupyter gave."""
    try:
        kept = unpack((folder / FILE).read_bytes()) if folder else {}
    except OSError:
        kept = {}
    # Python itself sets this one where sshd gave no language.
    given = {name: value for name, value in current.items() if name != b"LC_CTYPE"}
    return {**given, **kept, b"SHELL": SHELL.encode()}


def start_folder(arguments: list[str], env: Mapping[str, str], current: Path) -> Path | None:
    """Where a session begins instead: a login that sshd put into the home goes to the workspace.

    Commands stay in the home, where scp, sftp and rsync put relative paths, too.
    """
    return places.WORKSPACE if not arguments and current == Path(env.get("HOME", "/")) else None


def enter(arguments: list[str]) -> NoReturn:
    """Becomes the shell of a session. ``arguments`` are those that a login shell gets: none, or ``-c`` and a text."""
    if os.getuid() == 0 and find_folder() is None:
        # ``docker exec`` runs as the user that the container was started as, not as the one that it became.
        drop_to_owner()
    try:
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    except OSError:
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        if folder := start_folder(arguments, os.environ, Path.cwd()):
            os.chdir(folder)
    name = "bash" if arguments else "-bash"
    os.execve(SHELL, [name, *arguments], restored(dict(os.environb), find_folder()))
