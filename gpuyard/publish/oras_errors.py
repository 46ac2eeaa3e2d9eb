"""What oras and cosign say when something fails, as one line for a person: what was wrong and what to do."""

from __future__ import annotations

import re

from gpuyard.errors import UserError

INSTALL = "On Debian: sudo bash docker/install-publish.sh; elsewhere install it yourself"
AGAIN = "Run it again: what was sent stays, no tag was set"


class Absent(UserError):
    """What was asked for is not on the registry."""


class Passing(UserError):
    """A failure that may be over in a moment."""


PERMANENT = (
    (
        r"no basic auth|credential not found|\b401\b|unauthorized|authentication required|\b403\b|denied",
        "{where} refused the credentials, or there are none. Log in (oras login {host}) as somebody who may do this",
    ),
    (
        r"x509|certificate signed by unknown|failed to verify certificate",
        "the certificate of {host} is not trusted here. Name its authority: --ca-file FILE",
    ),
    (
        r"server gave HTTP response to HTTPS client",
        "{host} speaks plain HTTP, not TLS. If it is meant to: --plain-http",
    ),
    (r"response status code 400: Bad Request", "{host} refused the request; it may want TLS (no --plain-http)"),
    (r"\b405\b|unsupported|read.?only", "{where} is read-only: it takes nothing. Ask whoever runs it"),
    (
        r"\b507\b|Err:28|no space left|quota|\b413\b",
        "{where} is full. Free some space there; then run it again: what was sent stays, no tag was set",
    ),
    (r"no such host|lookup .* on ", "{host} is not known to the name service. Check the name in --registry"),
    (
        r"digest invalid|DIGEST_INVALID|mismatch digest|mismatched digest|with Body length|tar\+\w+: not found",
        "the image here and what {where} got differ: a layer in the store is damaged. Build it again (gpuyard build "
        "--builder layers), then run this again",
    ),
    (r"manifest blob unknown|MANIFEST_BLOB_UNKNOWN|blob unknown", "{where} lost a layer that was sent. Run it again"),
)
PASSING = (
    (r"connection refused", "no registry answers at {host}. Is it running, and is the port right?"),
    (r"timed out|deadline exceeded|timeout", "{where} gave no answer within {limit:.0f} s. " + AGAIN),
    (r"\b429\b|too many requests", "{where} refuses so many requests. Wait a little. " + AGAIN),
    (r"\b5\d\d\b", "{where} has a fault of its own ({said}). " + AGAIN),
    (r"\bEOF\b|reset by peer|broken pipe|panic:|connection", "the connection to {host} broke. " + AGAIN),
)
MISSING = r"not found|name unknown|NAME_UNKNOWN|manifest unknown"


def failure(where: str, said: str, limit: float) -> UserError:
    """The error for what a client said about a repository; it never holds a credential."""
    host = where.split("/")[0]
    short = summary(said)
    known = {"where": where, "host": host, "limit": limit, "said": short}
    for pattern, text in PERMANENT:
        if re.search(pattern, _without_addresses(said), re.IGNORECASE):
            return UserError(text.format(**known))
    for pattern, text in PASSING:
        if re.search(pattern, _without_addresses(said), re.IGNORECASE):
            return Passing(text.format(**known))
    if re.search(MISSING, said):
        return Absent(f"{where}: not there ({short})")
    return UserError(f"{where}: {short or 'failed without a word'}")


def summary(said: str) -> str:
    """The last telling line of what a client said, short, without addresses' query strings."""
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith(("Error", "error", "panic"))]
    return re.sub(r"\?[^\s\"']+", "", lines[0] if lines else said.strip()[-200:])[:240]


def _without_addresses(said: str) -> str:
    """Digests and addresses hold digits that look like a status."""
    return re.sub(r"https?://\S+|[0-9a-f]{32,}|\b(?:localhost|[\w-]+(?:\.[\w-]+)+):\d+", "…", said)
