"""JupyterLab as it was asked for: login, address and certificate, read from the environment and validated."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ..errors import Refusal
from ..values import flag, port, read_file

TOKEN_BYTES = 24
_HASH = re.compile(
    r"argon2:\$argon2id?\$v=\d+\$m=\d+,t=\d+,p=\d+\$[\w+/]+\$[\w+/]+\Z|(sha1|sha256|sha512):\w+:[0-9a-f]+\Z"
)
_URL_PATH = re.compile(r"/([A-Za-z0-9._~-]+/)*\Z")
_ORIGIN = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?\Z")


class Jupyter(NamedTuple):
    """JupyterLab as it will be started. No token and no password hash: no login is asked for."""

    port: int
    token: str
    token_is_random: bool
    password_hash: str = ""
    base_url: str = "/"
    origins: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    link: str = ""
    options: tuple[str, ...] = ()


def _token_from_file(path: Path) -> str:
    try:
        token = read_file(path).decode("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Refusal(f"JUPYTER_TOKEN_FILE={path} can't be read ({reason}): expected a file with the token") from None
    if not token:
        raise Refusal(f"JUPYTER_TOKEN_FILE={path} is empty: expected a file with the token")
    return token


def _given_token(env: dict[str, str]) -> str | None:
    """The user's token, the empty string where logins are switched off on purpose, None for a random one."""
    file = env.get("JUPYTER_TOKEN_FILE", "")
    token = env.get("JUPYTER_TOKEN")
    if file and token:
        raise Refusal("both JUPYTER_TOKEN and JUPYTER_TOKEN_FILE are set: give one of them")
    if file:
        return _token_from_file(Path(file))
    if token == "" and not flag(env, "JUPYTER_ALLOW_NO_AUTH"):
        raise Refusal(
            "JUPYTER_TOKEN is empty, which would let anyone run code here: leave it unset for a random token,"
            " give one, or say JUPYTER_ALLOW_NO_AUTH=yes"
        )
    return token


def _password_hash(env: dict[str, str]) -> str:
    text = env.get("JUPYTER_PASSWORD_HASH", "").strip()
    if not text:
        return ""
    if env.get("JUPYTER_TOKEN_FILE") or "JUPYTER_TOKEN" in env:
        raise Refusal("both a Jupyter token and JUPYTER_PASSWORD_HASH are set: give one of them")
    if not _HASH.match(text):
        raise Refusal(
            "JUPYTER_PASSWORD_HASH is no hash of a password: expected what 'jupyter lab password' writes"
            " (argon2:$argon2id$…); in a compose file each $ is written $$"
        )
    return text


def _base_url(env: dict[str, str]) -> str:
    text = env.get("JUPYTER_BASE_URL", "").strip() or "/"
    path = f"/{text.strip('/')}/" if text.strip("/") else "/"
    if not _URL_PATH.match(path) or {".", ".."} & set(path.split("/")):
        raise Refusal(f"JUPYTER_BASE_URL is '{text}': expected a path such as /lab/alice/, without a host name")
    return path


def _origins(env: dict[str, str]) -> tuple[str, ...]:
    found = tuple(part.strip() for part in env.get("JUPYTER_ALLOW_ORIGIN", "").split(",") if part.strip())
    for origin in found:
        if not _ORIGIN.match(origin):
            raise Refusal(
                f"JUPYTER_ALLOW_ORIGIN names '{origin}': expected addresses such as https://lab.example.org, with"
                " commas between them; * would let any page run code here"
            )
    return found


def _link(env: dict[str, str]) -> str:
    """The address under which people reach the server, for the log; empty where nobody said it."""
    text = env.get("JUPYTER_LINK", "").strip().rstrip("/")
    if text and not _ORIGIN.match(text):
        raise Refusal(f"JUPYTER_LINK is '{text}': expected the address that you type, such as http://127.0.0.1:9999")
    return text.replace("//0.0.0.0", "//127.0.0.1")


def _certificate(env: dict[str, str]) -> tuple[Path | None, Path | None]:
    certificate, key = env.get("JUPYTER_CERTFILE", ""), env.get("JUPYTER_KEYFILE", "")
    if key and not certificate:
        raise Refusal("JUPYTER_KEYFILE is set but JUPYTER_CERTFILE is not: give both")
    return Path(certificate) if certificate else None, Path(key) if key else None


def read_jupyter(env: dict[str, str], options: tuple[str, ...] = ()) -> Jupyter:
    """JupyterLab's port, login, address and certificate. Raises Refusal; changes nothing."""
    number = port(env, "JUPYTER_PORT", 8888)
    flag(env, "JUPYTER_ALLOW_NO_AUTH")
    token, password_hash = _given_token(env), _password_hash(env)
    if token and (not (token.isascii() and token.isprintable()) or " " in token):
        raise Refusal("the Jupyter token holds blanks or unusual characters: expected plain ASCII without blanks")
    random = token is None and not password_hash
    chosen = os.urandom(TOKEN_BYTES).hex() if random else token or ""
    certificate, key = _certificate(env)
    return Jupyter(
        number, chosen, random, password_hash, _base_url(env), _origins(env), certificate, key, _link(env), options
    )
