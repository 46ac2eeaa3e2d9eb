"""Jupyter's certificate and key: checked before anything is started, by the library that will use them."""

from __future__ import annotations

from pathlib import Path

from ..errors import Refusal
from .config import Jupyter


def _refuse_unreadable(variable: str, path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise Refusal(
            "tls-file-unreadable",
            f"{variable}={path} can't be read ({error.strerror}): mount it so that Jupyter's user may read it",
        ) from None


def check(jupyter: Jupyter) -> None:
    """Refuses a certificate or key that can't be used. Nothing is imported where there is none."""
    if jupyter.certificate is None:
        return
    import ssl

    key = jupyter.key or jupyter.certificate
    _refuse_unreadable("JUPYTER_CERTFILE", jupyter.certificate)
    _refuse_unreadable("JUPYTER_KEYFILE", key)
    try:
        # An empty password: a key that needs one must fail here, not ask on a terminal that nobody sees.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(jupyter.certificate, key, password="")
    except ssl.SSLError as error:
        reason = (error.reason or "not in PEM form").lower().replace("_", " ")
        raise Refusal(
            "tls-unusable",
            f"JUPYTER_CERTFILE={jupyter.certificate} and its key {key} can't be used ({reason}): expected a"
            " certificate and its own key, both in PEM form and without a passphrase",
        ) from None
