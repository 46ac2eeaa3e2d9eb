"""Which environment variables hold a secret: the one definition, for the host, the image's start and the suite.

``entrypoints/gpuyard_start/secret_names.py`` is a link to this file: in the image it is a file of its own, because a
container's start must not depend on the suite.
"""

from __future__ import annotations

import re

_WORDS = frozenset(
    (
        *("TOKEN", "TOKENS", "PAT", "JWT", "BEARER", "AUTH", "SECRET", "SECRETS", "CREDENTIAL", "CREDENTIALS", "CREDS"),
        *("PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PASSPHRASE", "PASSCODE", "PWD", "SSHPASS"),
        *("KEY", "KEYS", "APIKEY", "PRIVATE", "COOKIE", "SIGNATURE", "DSN", "WEBHOOK"),
    )
)
# Of words that are written without an underscore before them: PGPASSWORD, GITHUBTOKEN, OPENAIAPIKEY.
_ENDINGS = ("PASSWORD", "PASSWD", "PASSPHRASE", "TOKEN", "SECRET", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY")
# The value is a place where the secret lies, or a number of things.
_PLACES = frozenset(("FILE", "FILES", "PATH", "DIR", "FOLDER", "SOCK", "SOCKET"))
_COUNTS = frozenset(("MAX", "MIN", "NUM", "N", "COUNT", "LIMIT", "TOTAL", "PER", "LENGTH", "SIZE"))
_NEVER = frozenset(("PWD", "OLDPWD", "GPUYARD_PASS", "GPUYARD_HOST_KEYS"))
_VALUE = re.compile(
    r"(?<=://)[^/\s@]+@"  # a name and a password in an address
    r"|\b(gh[pousr]_|github_pat_|hf_|sk-|xox[abp]-|AKIA|glpat-|pypi-)[A-Za-z0-9_\-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+"
)
MASK = "***"


def is_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a credential."""
    upper = name.upper()
    words = [word.rstrip("0123456789") for word in upper.replace("PUBLIC_KEY", "PUBLIC").split("_")]
    if upper in _NEVER or words[-1] in _PLACES or not _COUNTS.isdisjoint(words):
        return False
    return any(word in _WORDS or word.endswith(_ENDINGS) for word in words)


def has_secret(value: str) -> bool:
    """Whether a value holds something of a credential's form: a password in an address, a known kind of token."""
    return bool(_VALUE.search(value))


def without_secrets(value: str) -> str:
    """The value with everything of a credential's form replaced."""
    return _VALUE.sub(lambda found: MASK + ("@" if found.group(0).endswith("@") else ""), value)
