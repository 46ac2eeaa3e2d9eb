"""Finding a locked wheel where pip would: indexes, mirrors, find-links, certificates and proxies.

pip reads its own configuration (`pip config list`); unearth, the library of PDM's finder, reads the indexes.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import cast

import httpx2
from packaging.utils import parse_wheel_filename
from unearth.auth import MultiDomainBasicAuth
from unearth.collector import collect_links_from_location
from unearth.fetchers import Fetcher, PyPIClient
from unearth.link import Link

from gpuyard.errors import UserError
from gpuyard.indexes import Settings, public_index
from gpuyard.packages.locked import Locked, best
from gpuyard.process import log
from gpuyard.store.store import sha256_of


def client(settings: Settings) -> PyPIClient:
    """An HTTP client with these certificates, this proxy, and the logins of netrc and keyring."""
    context = ssl.create_default_context(cafile=str(settings.ca) if settings.ca else None)
    client = PyPIClient(
        trusted_hosts=settings.trusted,
        verify=context,
        cert=settings.client_cert,
        proxy=settings.proxy,
        timeout=httpx2.Timeout(30),
        follow_redirects=True,
    )
    client.auth = MultiDomainBasicAuth(index_urls=settings.indexes)
    return client


def indexes_of(settings: Settings) -> tuple[str, ...]:
    """The indexes to ask: those that were named, or the public one, or none if pip's no-index is set."""
    if settings.no_index:
        return ()
    return settings.indexes or (public_index(),)


def find(wanted: Locked, python: str, settings: Settings, client: PyPIClient) -> tuple[Link, str]:
    """The link and hash of the wheel that fits best. Raises UserError that says where it was looked for."""
    try:
        found = [(link, sha) for link in links(wanted, settings, client) if (sha := sha_of(link, wanted))]
    except (httpx2.HTTPError, ValueError, OSError) as error:
        raise UserError("index-unreadable", f"{wanted}: the index could not be read: {_words(error)}") from error
    chosen = best((link.filename for link, _ in found), python)
    if chosen is None:
        raise UserError("wheel-not-found", _nothing(wanted, python, settings))
    # The same file may lie on several indexes; one on a disk is the nearest.
    link, sha = min((entry for entry in found if entry[0].filename == chosen), key=lambda entry: not entry[0].is_file)
    log.debug("%s: %s", wanted, link.redacted)
    return link, sha


def links(wanted: Locked, settings: Settings, client: PyPIClient) -> Iterator[Link]:
    """Every file that the indexes list for the project, and that the find-links places hold."""
    session = cast(Fetcher, client)
    for url in indexes_of(settings):
        yield from collect_links_from_location(session, Link(f"{url.rstrip('/')}/{wanted.name}/"))
    for place in settings.find_links:
        link = Link(place) if "://" in place else Link.from_path(place)
        yield from collect_links_from_location(session, link, expand=True)


def sha_of(link: Link, wanted: Locked) -> str | None:
    """The SHA-256 of a wheel if the lock has it, else None; a local file without a stated hash is read."""
    if not link.is_wheel:
        return None
    stated = (link.hash_option or {}).get("sha256")
    if stated:
        return stated[0] if stated[0] in wanted.hashes else None
    name, version = parse_wheel_filename(link.filename)[:2]
    if not link.is_file or (name, str(version)) != (wanted.name, wanted.version):
        return None
    sha = sha256_of(link.file_path)
    return sha if sha in wanted.hashes else None


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _nothing(wanted: Locked, python: str, settings: Settings) -> str:
    places = ", ".join(Link(url).redacted for url in indexes_of(settings)) or "no index (pip's no-index is set)"
    return (
        f"{wanted}: no wheel for Python {python} on x86-64 Linux with a hash of the lock was "
        f"found on {places}. Check that the index answers and still has that version, or name another in pip's settings"
    )
