"""Commands that mean a service: ``ssh``, and ``jupyter`` or ``jupyter lab`` with options for the server."""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import Refusal

JUPYTER = "jupyter"
SSH = "ssh"
# With these, Jupyter only prints something and ends: that is an ordinary command.
_PRINTS = {"--help", "-h", "--help-all", "--version", "--show-config", "--show-config-json", "--generate-config"}
# Health check and login depend on these, so they are variables, which are checked before anything starts.
_VARIABLES = {
    "token": "JUPYTER_TOKEN",
    "password": "JUPYTER_PASSWORD_HASH",
    "hashed_password": "JUPYTER_PASSWORD_HASH",
    "base_url": "JUPYTER_BASE_URL",
    "certfile": "JUPYTER_CERTFILE",
    "keyfile": "JUPYTER_KEYFILE",
    "allow_origin_pat": "JUPYTER_ALLOW_ORIGIN",
    "allow_origin": "JUPYTER_ALLOW_ORIGIN",
    "config": "a file in ~/.jupyter",
}
_EVERYWHERE = {"0.0.0.0", "*", "::", ""}
_OPTION = re.compile(r"--?([\w.-]+?)(?:=(.*))?\Z", re.DOTALL)


class Mode(NamedTuple):
    """What the words after the image's name mean. ``service`` None: ``command`` is run as it is."""

    command: tuple[str, ...]
    service: str | None = None
    options: tuple[str, ...] = ()
    port: str | None = None


def _words(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words behind ``jupyter lab``; None where the command is another."""
    if argv[:2] == (JUPYTER, "lab"):
        return argv[2:]
    return argv[1:] if argv == (JUPYTER,) or argv[:1] == ("jupyter-lab",) else None


def _with_values(words: tuple[str, ...]) -> list[str]:
    """``--port 9`` as one word, as ``--port=9``; other words stay."""
    joined: list[str] = []
    for word in words:
        if joined and re.fullmatch(r"--(port|ip)", joined[-1]) and not word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _jupyter(words: tuple[str, ...]) -> Mode:
    """The service with these options. Refuses those that are set by a variable."""
    kept: list[str] = []
    number = None
    for word in _with_values(words):
        option = _OPTION.match(word)
        name, value = (option[1].rpartition(".")[2], option[2] or "") if option else ("", "")
        if name in _VARIABLES:
            raise Refusal(
                "option-is-setting", f"set {_VARIABLES[name]} instead of '{word.partition('=')[0]}' on the command line"
            )
        if name == "ip" and value not in _EVERYWHERE:
            raise Refusal(
                "jupyter-address",
                f"'{word}': Jupyter always listens on every address of the container; restrict it with docker run"
                f" -p {value}:8888:8888",
            )
        if name == "port":
            number = value
        elif name != "ip":
            kept.append(word)
    if any("\n" in word for word in kept):
        raise Refusal("jupyter-option-invalid", "an option of jupyter lab has a line break: expected one line")
    return Mode((), JUPYTER, tuple(kept), number)


def read(argv: tuple[str, ...]) -> Mode:
    """The mode that a command asks for. Raises Refusal; changes nothing."""
    if argv == (SSH,):
        return Mode((), SSH)
    words = _words(argv)
    if words is None or _PRINTS & set(words) or (words and not words[0].startswith("-")):
        return Mode(argv)
    return _jupyter(words)
