"""One line for a person from the output of oras, cosign or skopeo: what was wrong and what to do."""

from __future__ import annotations

import re

from gpuyard.errors import UserError

INSTALL = "On Debian or Ubuntu: sudo bash docker/install-publish.sh; elsewhere install it yourself"
AGAIN = "Run it again: what was sent stays, no tag was set"


class Absent(UserError):
    """The registry does not have it."""


class Passing(UserError):
    """A failure that a retry may overcome."""


PERMANENT = (
    (
        r"no basic auth|credential not found|\b401\b|unauthorized|authentication required|\b403\b|denied",
        UserError(
            "registry-credentials", "{where} refused the credentials, or there are none. Log in: oras login {host}"
        ),
    ),
    (
        r"x509|certificate signed by unknown|failed to verify certificate",
        UserError(
            "registry-certificate", "the certificate of {host} is not trusted here. Name its authority: --ca-file FILE"
        ),
    ),
    (
        r"server gave HTTP response to HTTPS client",
        UserError("registry-plain-http", "{host} speaks plain HTTP, not TLS. If it is meant to: --plain-http"),
    ),
    (
        r"response status code 400: Bad Request",
        UserError("registry-wants-tls", "{host} refused the request; it may want TLS (no --plain-http)"),
    ),
    (
        r"\b405\b|unsupported|read.?only",
        UserError("registry-read-only", "{where} is read-only. Ask whoever runs the registry"),
    ),
    (
        r"\b507\b|Err:28|no space left|quota|\b413\b",
        UserError("registry-full", "{where} is full. Free some space there. " + AGAIN),
    ),
    (
        r"no such host|lookup .* on ",
        UserError("registry-unknown-host", "{host} is not known to the name service. Check the registry's name"),
    ),
    (
        r"digest invalid|DIGEST_INVALID|mismatch digest|mismatched digest|with Body length|tar\+\w+: not found",
        UserError(
            "layer-damaged",
            "{where} received other bytes than the digest names: a layer in the store is damaged. Build it again "
            "(gpuyard build --builder layers), then run this again",
        ),
    ),
    (
        r"manifest blob unknown|MANIFEST_BLOB_UNKNOWN|blob unknown",
        UserError("registry-lost-layer", "{where} lost a layer that was sent. Run it again"),
    ),
)
PASSING = (
    (
        r"connection refused",
        Passing("registry-unreachable", "no registry answers at {host}. Is it running, and is the port right?"),
    ),
    (
        r"timed out|deadline exceeded|timeout",
        Passing("registry-timeout", "{where} gave no answer within {limit:.0f} s. " + AGAIN),
    ),
    (
        r"\b429\b|too many requests",
        Passing("registry-throttles", "{where} limits the rate of requests. Wait a little. " + AGAIN),
    ),
    (r"\b5\d\d\b", Passing("registry-fault", "{where} reports an error of its own ({said}). " + AGAIN)),
    (
        r"\bEOF\b|reset by peer|broken pipe|panic:|connection",
        Passing("registry-connection-lost", "the connection to {host} broke. " + AGAIN),
    ),
)
MISSING = r"not found|name unknown|NAME_UNKNOWN|manifest unknown"


def failure(where: str, said: str, limit: float) -> UserError:
    """The error for a client's output about a repository; it never holds a credential."""
    host = where.split("/")[0]
    short = summary(said)
    known = {"where": where, "host": host, "limit": limit, "said": short}
    for pattern, template in (*PERMANENT, *PASSING):
        if re.search(pattern, _without_addresses(said), re.IGNORECASE):
            return type(template)(template.id, str(template).format(**known))
    if re.search(MISSING, said):
        return Absent("registry-lacks", f"{where}: not there ({short})")
    return UserError("registry-failed", f"{where}: {short or 'the client failed without a message'}")


def summary(said: str) -> str:
    """The first error line of a client's output, short, without the query strings of addresses."""
    lines = [line.strip() for line in said.splitlines() if line.strip().startswith(("Error", "error", "panic"))]
    return re.sub(r"\?[^\s\"']+", "", lines[0] if lines else said.strip()[-200:])[:240]


def _without_addresses(said: str) -> str:
    """Digests and addresses hold digits that look like a status."""
    return re.sub(r"https?://\S+|[0-9a-f]{32,}|\b(?:localhost|[\w-]+(?:\.[\w-]+)+):\d+", "…", said)
