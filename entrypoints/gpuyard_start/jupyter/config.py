"""JupyterLab as it was asked for: login, address and certificate, read from the environment and validated."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from .. import settings
from ..errors import Refusal
from ..values import read_file

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
        raise Refusal(
            "token-file-unusable", f"JUPYTER_TOKEN_FILE={path} can't be read ({reason}): expected a file with the token"
        ) from None
    if not token:
        raise Refusal("token-file-unusable", f"JUPYTER_TOKEN_FILE={path} is empty: expected a file with the token")
    return token


def _given_token(env: dict[str, str]) -> str | None:
    """The user's token, the empty string where logins are switched off on purpose, None for a random one."""
    file = settings.TOKEN_FILE.read(env)
    token = env.get(settings.TOKEN.name)
    if file and token:
        raise Refusal("settings-conflict", "both JUPYTER_TOKEN and JUPYTER_TOKEN_FILE are set: give one of them")
    if file:
        return _token_from_file(file)
    if token == "" and not settings.NO_AUTH.read(env):
        raise Refusal(
            "token-empty",
            "JUPYTER_TOKEN is empty, which would let anyone run code here: leave it unset for a random token,"
            " give one, or set JUPYTER_ALLOW_NO_AUTH=yes",
        )
    return token


def _password_hash(env: dict[str, str]) -> str:
    text = settings.PASSWORD_HASH.read(env)
    if not text:
        return ""
    if settings.TOKEN_FILE.read(env) or settings.TOKEN.name in env:
        raise Refusal("settings-conflict", "both a Jupyter token and JUPYTER_PASSWORD_HASH are set: give one of them")
    if not _HASH.match(text):
        raise Refusal(
            "password-hash-invalid",
            "JUPYTER_PASSWORD_HASH is not a password's hash: expected what 'jupyter lab password' writes"
            " (argon2:$argon2id$…); in a compose file each $ is written $$",
        )
    return text


def _base_url(env: dict[str, str]) -> str:
    text = settings.BASE_URL.read(env)
    path = f"/{text.strip('/')}/" if text.strip("/") else "/"
    if not _URL_PATH.match(path) or {".", ".."} & set(path.split("/")):
        raise Refusal(
            "setting-invalid",
            f"JUPYTER_BASE_URL is '{text}': expected a path such as /lab/alice/, without a host name",
        )
    return path


def _origins(env: dict[str, str]) -> tuple[str, ...]:
    found = settings.ORIGINS.read(env)
    for origin in found:
        if not _ORIGIN.match(origin):
            raise Refusal(
                "setting-invalid",
                f"JUPYTER_ALLOW_ORIGIN names '{origin}': expected addresses such as https://lab.example.org, with"
                " commas between them; * would let any page run code here",
            )
    return found


def _link(env: dict[str, str]) -> str:
    """The address under which people reach the server, for the log; empty if none was given."""
    text = settings.LINK.read(env).rstrip("/")
    if text and not _ORIGIN.match(text):
        raise Refusal(
            "setting-invalid",
            f"JUPYTER_LINK is '{text}': expected the address that you type, such as http://127.0.0.1:9999",
        )
    return text.replace("//0.0.0.0", "//127.0.0.1")


def _certificate(env: dict[str, str]) -> tuple[Path | None, Path | None]:
    certificate, key = settings.CERTFILE.read(env), settings.KEYFILE.read(env)
    if key and not certificate:
        raise Refusal("settings-conflict", "JUPYTER_KEYFILE is set but JUPYTER_CERTFILE is not: give both")
    return certificate, key


def read_jupyter(env: dict[str, str], options: tuple[str, ...] = ()) -> Jupyter:
    """JupyterLab's port, login, address and certificate. Raises Refusal; changes nothing."""
    number = settings.JUPYTER_PORT.read(env)
    settings.NO_AUTH.read(env)
    token, password_hash = _given_token(env), _password_hash(env)
    if token and (not (token.isascii() and token.isprintable()) or " " in token):
        raise Refusal(
            "token-invalid", "the Jupyter token has blanks or unusual characters: expected plain ASCII without blanks"
        )
    random = token is None and not password_hash
    chosen = os.urandom(TOKEN_BYTES).hex() if random else token or ""
    certificate, key = _certificate(env)
    return Jupyter(
        number, chosen, random, password_hash, _base_url(env), _origins(env), certificate, key, _link(env), options
    )
