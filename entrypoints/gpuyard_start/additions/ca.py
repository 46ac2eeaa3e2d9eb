"""A company's own certificates: for networks where a proxy opens TLS and signs with an authority of its own."""

from __future__ import annotations

from pathlib import Path

from .. import settings
from ..errors import Refusal
from ..folder import make_folder

SYSTEM = Path("/etc/ssl/certs/ca-certificates.crt")
# Where the programs of the image look: OpenSSL and uv, requests, curl, git, pip, Node.
READ_BY = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "NODE_EXTRA_CA_CERTS")
_BEGIN = b"-----BEGIN CERTIFICATE-----"


def wanted(env: dict[str, str]) -> bytes | None:
    """The certificates that were given. Refuses a file without any; changes nothing."""
    file = settings.CA.read(env)
    if file is None:
        return None
    try:
        found = file.read_bytes()
    except OSError as error:
        raise Refusal(
            "certificates-unreadable", f"GPUYARD_CA={file} can't be read ({error.strerror}): expected a mounted file"
        ) from None
    import ssl

    try:
        if _BEGIN not in found:
            raise ValueError
        ssl.create_default_context(cadata=found.decode("ascii", "ignore"))
    except (ValueError, ssl.SSLError):
        raise Refusal(
            "certificates-invalid",
            f"GPUYARD_CA={file} has no certificate in PEM form: expected lines from BEGIN CERTIFICATE on"
            " (a .der or .cer file: openssl x509 -inform der -in FILE -out ca.pem)",
        ) from None
    return found


def trusted(env: dict[str, str], given: bytes) -> dict[str, str]:
    """The environment in which they are trusted beside the system's own; a value of the user's stays."""
    bundle = make_folder() / "certificates.pem"
    bundle.write_bytes(SYSTEM.read_bytes().rstrip() + b"\n" + given)
    return {**dict.fromkeys(READ_BY, str(bundle)), **env}
