"""The package indexes and certificates of this machine: pip's and uv's own configuration, and what uv needs of it."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuyard.process import run

CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
CA_FILE = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class Settings:
    """Where this machine gets packages from. Without ``indexes``, it is the public index."""

    indexes: tuple[str, ...] = ()
    no_index: bool = False
    find_links: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    ca: Path | None = None
    client_cert: str | None = None
    proxy: str | None = None

    @classmethod
    def read(cls) -> Settings:
        """pip's settings; uv's index variables win over them, as in every step of a build."""
        pip = pip_settings()
        extra = os.environ.get("UV_INDEX") or pip.get("extra-index-url", "")
        named = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or pip.get("index-url", "")
        # Further indexes come in addition to the default one, whether that was named or not.
        default = named or (public_index() if extra else "")
        return cls(
            indexes=(*default.split(), *extra.split()),
            no_index=pip.get("no-index", "").lower() in ("1", "true", "yes", "on"),
            find_links=tuple(pip.get("find-links", "").split()),
            trusted=tuple(pip.get("trusted-host", "").split()),
            ca=Path(pip["cert"]) if "cert" in pip else ca_bundle(),
            client_cert=pip.get("client-cert"),
            proxy=pip.get("proxy"),
        )


def public_index() -> str:
    """The index that is asked where none is named."""
    from unearth.finder import PackageFinder

    return str(PackageFinder().sources[0]["url"])


def pip_settings() -> dict[str, str]:
    """pip's configuration for downloads, as pip itself reads it: files, then environment."""
    text = run([sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check"])
    found: dict[str, str] = {}
    for section in ("global", "download", "install", ":env:"):
        for line in text.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(section + ".") and value:
                found[name.removeprefix(section + ".")] = str(ast.literal_eval(value))
    return found


def indexes() -> list[str]:
    """The package indexes of this machine, the default one first; empty means the public index.

    Folders and files are left out: a build in a container can't see them.
    """
    return [url for url in Settings.read().indexes if url.startswith(("http://", "https://"))]


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
