"""The package indexes this machine uses: pip's and uv's own configuration, as uv settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from gpuyard.errors import UserError
from gpuyard.process import run

CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
CA_FILE = Path("/etc/ssl/certs/ca-certificates.crt")


def indexes() -> list[str]:
    """The package indexes of this machine, the default one first; empty means the public index.

    uv's variables win over pip's configuration. Folders and files are left out: a build can't see them.
    """
    default = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or _pip("index-url")
    extra = os.environ.get("UV_INDEX") or _pip("extra-index-url")
    return [url for url in [*default.split(), *extra.split()] if url.startswith(("http://", "https://"))]


def uv_environment(urls: list[str] | None = None) -> dict[str, str]:
    """This process's environment, with uv pointed at the machine's indexes."""
    urls = indexes() if urls is None else urls
    env = dict(os.environ)
    if urls:
        env["UV_DEFAULT_INDEX"] = urls[0]
        env["UV_INDEX"] = " ".join(urls[1:])
    return env


def uv_configuration(urls: list[str]) -> str:
    """A uv.toml that names these indexes, for a build that gets it as a secret."""
    return "".join(
        f'[[index]]\nurl = "{url}"\n' + ("default = true\n" if number == 0 else "") for number, url in enumerate(urls)
    )


def ca_bundle(environ: Mapping[str, str] | None = None) -> Path | None:
    """The certificate bundle this machine's clients trust, or None where they use their own."""
    environ = os.environ if environ is None else environ
    for variable in CA_VARIABLES:
        if (path := environ.get(variable)) and Path(path).is_file():
            return Path(path)
    return CA_FILE if CA_FILE.is_file() else None


def _pip(key: str) -> str:
    """A value of pip's configuration or environment, or nothing."""
    if value := os.environ.get("PIP_" + key.replace("-", "_").upper()):
        return value
    for section in ("install", "global"):
        try:
            return run([sys.executable, "-m", "pip", "config", "get", f"{section}.{key}"]).strip()
        except UserError:
            continue
    return ""
