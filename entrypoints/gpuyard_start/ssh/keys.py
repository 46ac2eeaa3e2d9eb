"""Public SSH keys: where they come from, and whether sshd accepts each line."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .. import settings
from ..errors import Refusal
from ..values import read_file

KEY_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
MIN_RSA_BITS = 2048
VARIABLES = (settings.KEY.name, settings.OTHER_KEY.name)
_EXPECTED = "expected one public key such as 'ssh-ed25519 AAAA… name'"


class KeyLine(NamedTuple):
    """One accepted line of an authorized_keys text, and where it was found."""

    line: str
    origin: str


def fields(blob: bytes) -> list[bytes]:
    """The length-prefixed fields of a key in SSH's wire format; raises ValueError if they do not add up."""
    found: list[bytes] = []
    while blob:
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            raise ValueError("it is cut short")
        found.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return found


def fingerprint(blob: bytes) -> str:
    """A key's fingerprint as ``ssh`` shows it."""
    # Late, because it loads all of OpenSSL.
    import hashlib

    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _skip_options(line: str) -> str:
    """The line from the key type on; options end at the first blank outside double quotes."""
    quoted = False
    for index, char in enumerate(line):
        if char == '"' and line[index - 1 : index] != "\\":
            quoted = not quoted
        if char in " \t" and not quoted:
            return line[index:].lstrip()
    return ""


def _decode(kind: str, text: str) -> list[bytes]:
    try:
        found = fields(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the part after '{kind}' is damaged ({error})") from error
    if len(found) < 2 or found[0] != kind.encode():
        raise ValueError(f"the part after '{kind}' is not a key of that type")
    return found


def fault(line: str) -> str | None:
    """What is wrong with one line of keys, or None if sshd accepts it."""
    if "PRIVATE KEY" in line:
        return "that is a private key: give the public one (the .pub file) and replace this key everywhere"
    if line.startswith(("/", "~", "./")):
        return 'that looks like a file name: give its content, as in -e SSH_PUBLIC_KEY="$(cat FILE.pub)"'
    rest = line if line.split()[0] in KEY_TYPES else _skip_options(line)
    words = rest.split()
    if not words or words[0] not in KEY_TYPES:
        return f"no key type that is still accepted ({', '.join(KEY_TYPES[:2])}, ssh-rsa, …)"
    if len(words) < 2:
        return f"nothing follows '{words[0]}': quote the whole key"
    try:
        found = _decode(words[0], words[1])
    except ValueError as error:
        return str(error)
    if words[0] == "ssh-rsa" and (bits := int.from_bytes(found[-1], "big").bit_length()) < MIN_RSA_BITS:
        return f"an RSA key of {bits} bits is too short (at least {MIN_RSA_BITS}): use ssh-keygen -t ed25519"
    return None


def read_lines(origin: str, text: str) -> list[KeyLine]:
    """The keys in a text; refuses it, with origin and line number, if a line is not a key."""
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if "\0" in line or (wrong := fault(line)) is not None:
            wrong = "a zero byte" if "\0" in line else wrong
            raise Refusal("login-key-invalid", f"{origin}, line {number}: {wrong}; {_EXPECTED}")
        found.append(KeyLine(line, origin))
    return found


def _read_file(path: Path) -> str | None:
    """A key file's text, or None where there is none."""
    try:
        return read_file(path).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if not isinstance(error, IsADirectoryError) and not _is_folder(path):
            raise Refusal(
                "login-key-file-unusable",
                f"{path} can't be read ({error.strerror}): let other users read it (chmod a+r), or give the"
                " key with -e SSH_PUBLIC_KEY=…, or leave SSH off with -e GPUYARD_SERVICES=jupyter",
            ) from None
    raise Refusal(
        "login-key-file-unusable",
        f"{path} is a folder: expected a file of public keys (Docker makes a folder when the host's file is missing)",
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _sources(env: dict[str, str], files: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    for name in VARIABLES:
        yield name, env.get(name, "")
    for path in files:
        yield str(path), _read_file(path) or ""


def collect(env: dict[str, str], files: tuple[Path, ...]) -> tuple[KeyLine, ...]:
    """Every key given by variable or file, each once, in the order of the sources."""
    found: dict[str, KeyLine] = {}
    for origin, text in _sources(env, files):
        for key in read_lines(origin, text):
            found.setdefault(key.line, key)
    return tuple(found.values())
