"""The environment that an SSH session gets: the container's own, without secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass

# sshd and the login shell set these for each session.
_PER_SESSION = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "MAIL", "TERM"})
# These have done their work when the start is over.
_SPENT = frozenset({"SSH_PUBLIC_KEY", "PUBLIC_KEY", "JUPYTER_TOKEN_FILE"})
_SECRET_WORDS = frozenset(
    (
        *("TOKEN", "TOKENS", "PAT", "AUTH", "SECRET", "SECRETS", "CREDENTIAL", "CREDENTIALS"),
        *("PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PASSPHRASE", "KEY", "KEYS", "APIKEY", "PRIVATE"),
    )
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class SessionEnv:
    """Variables for sessions, and the names that were left out: secrets, and what sshd can't carry."""

    variables: dict[str, str]
    secrets: tuple[str, ...]
    unfit: tuple[str, ...]


def is_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a credential."""
    return not _SECRET_WORDS.isdisjoint(name.upper().split("_"))


def _unfit(name: str, value: str) -> bool:
    return not _NAME.match(name) or "\n" in value or "\r" in value


def select(env: dict[str, str]) -> SessionEnv:
    """Sorts the container's environment into what sessions get and what they do not."""
    given = {k: v for k, v in sorted(env.items()) if k not in _PER_SESSION | _SPENT}
    secrets = tuple(name for name in given if is_secret(name))
    unfit = tuple(name for name, value in given.items() if name not in secrets and _unfit(name, value))
    left_out = {*secrets, *unfit}
    return SessionEnv({k: v for k, v in given.items() if k not in left_out}, secrets, unfit)


def set_env_line(variables: dict[str, str]) -> str:
    r"""sshd's ``SetEnv`` line. sshd takes everything between the quotes literally but ``\`` and ``"``.

    One line, because sshd reads only the first. No shell ever sees it.
    """
    if not variables:
        return ""
    words = []
    for name, value in variables.items():
        if _unfit(name, value):
            raise ValueError(f"{name} can't stand on one line")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        words.append(f'"{name}={escaped}"')
    return "SetEnv " + " ".join(words)
