"""Downloading one file: resumed, retried where that helps, and verified."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from unearth.fetchers import PyPIClient
from unearth.link import Link

from gpuyard.errors import UserError
from gpuyard.process import log
from gpuyard.store.store import CHUNK, sha256_of

TRIES = 5
PAUSE = 1.0
"""Seconds before the second try; it doubles from try to try."""
Tell = Callable[[int], None]
"""Called with the number of bytes that came."""


class Unusable(Exception):
    """An answer that a retry would not change."""


def fetch(link: Link, sha: str, place: Path, client: PyPIClient, tell: Tell) -> None:
    """Downloads the file to ``place``, complete and with that hash, or raises UserError.

    A partial download stays beside it, and the next call resumes it.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    reason = ""
    for attempt in range(TRIES):
        time.sleep(PAUSE * (2**attempt - 1))
        try:
            _copy(link.file_path, part) if link.is_file else _receive(link, part, client, tell)
        except Unusable as error:
            reason = str(error)
            break
        except httpx2.HTTPError as error:
            reason = f"the connection broke: {str(error) or type(error).__name__}"
            log.info("%s: %s; trying again", place.name, reason)
            continue
        if sha256_of(part) == sha:
            part.replace(place)
            return
        reason = f"its SHA-256 is {sha256_of(part)}, the lock has {sha}"
        part.unlink()
    raise UserError("download-failed", f"{place.name}: can't be fetched from {link.redacted}: {reason}")


def _copy(source: Path, part: Path) -> None:
    try:
        with source.open("rb") as file, part.open("wb") as out:
            while chunk := file.read(CHUNK):
                out.write(chunk)
    except FileNotFoundError as error:
        raise Unusable("the index names it, but the file is not there") from error


def _receive(link: Link, part: Path, client: PyPIClient, tell: Tell) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with client.get_stream(link.url_without_fragment, headers=headers) as answer:
        if answer.status_code == httpx2.codes.RANGE_NOT_SATISFIABLE:
            return
        _refuse(answer)
        resumed = answer.status_code == httpx2.codes.PARTIAL_CONTENT
        if resumed:
            tell(have)
        with part.open("ab" if resumed else "wb") as out:
            # Unbuffered: data gathered into larger pieces would be lost when the connection breaks.
            for chunk in answer.iter_raw():
                out.write(chunk)
                tell(len(chunk))


def _refuse(answer: httpx2.Response) -> None:
    """Raises for an answer that is not the file: HTTPError where another try may help, else Unusable."""
    code = answer.status_code
    if code >= 500 or code == httpx2.codes.TOO_MANY_REQUESTS:
        raise httpx2.HTTPError(f"HTTP {code}")
    if code >= 400:
        raise Unusable(f"HTTP {code}")
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise Unusable("a web page came instead of a wheel (a proxy's login page, perhaps)")
