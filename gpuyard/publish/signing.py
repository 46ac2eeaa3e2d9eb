"""Signatures on digests, through cosign: with a key, or keyless where a pipeline has an identity."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpuyard.errors import UserError
from gpuyard.publish.oras_errors import failure, summary
from gpuyard.publish.registry import Repository, execute

PATIENCE = 120.0
State = Literal["good", "none", "other key", "not checked"]
GITHUB = "https://token.actions.githubusercontent.com"
"""Who vouches for the identity of a workflow."""


@dataclass(frozen=True)
class Signer:
    """Signs with the private key of a file, or keyless when there is none; signatures by key need no log."""

    key: Path | None
    public: str = ""

    @classmethod
    def of(cls, key: Path) -> Signer:
        """A signer with a key. Raises UserError for a file that is not a key, or a wrong COSIGN_PASSWORD."""
        if not key.is_file():
            raise UserError("key-missing", f"--key {key}: no such file. Make one: cosign generate-key-pair")
        code, out, err = execute(["cosign", "public-key", "--key", str(key)], PATIENCE, environment())
        if code:
            raise UserError(
                "key-unreadable",
                f"--key {key}: cosign can't read it; its password is taken from COSIGN_PASSWORD ({summary(err)})",
            )
        return cls(key, out)

    def ensure(self, repository: Repository, digest: str) -> bool:
        """Signs the digest; False if this signer's signature was there already. Raises UserError."""
        if self.public and self.state(repository, digest) == "good":
            return False
        words = ["sign", "--yes", *(["--key", str(self.key), "--tlog-upload=false"] if self.key else [])]
        code, _, err = execute(["cosign", *words, *options(repository), repository.at(digest)], PATIENCE, environment())
        if code:
            raise failure(str(repository), err, PATIENCE)
        return True

    def state(self, repository: Repository, digest: str) -> State:
        """Whether the digest is signed by this signer's key."""
        with tempfile.NamedTemporaryFile("w", suffix=".pub") as file:
            file.write(self.public)
            file.flush()
            return state(repository, digest, Key(Path(file.name)))


@dataclass(frozen=True)
class Key:
    """Trust in the private half of a public key; its signatures are in no log."""

    public: Path

    @property
    def options(self) -> list[str]:
        return ["--key", str(self.public), "--insecure-ignore-tlog"]


@dataclass(frozen=True)
class Keyless:
    """Trust in a pipeline: an identity that fits the pattern, vouched for by that issuer, in the public log."""

    identity: str
    issuer: str

    @property
    def options(self) -> list[str]:
        return ["--certificate-identity-regexp", self.identity, "--certificate-oidc-issuer", self.issuer]


Trust = Key | Keyless


def state(repository: Repository, digest: str, trust: Trust) -> State:
    """Whether a digest is signed by somebody who is trusted."""
    words = ["verify", *trust.options, *options(repository), repository.at(digest)]
    code, _, err = execute(["cosign", *words], PATIENCE, environment())
    if code == 0:
        return "good"
    if "loading public key" in err or "unsupported pem" in err:
        raise UserError("public-key-invalid", f"{' '.join(trust.options[:2])}: not a public key ({summary(err)})")
    if "no signatures found" in err:
        return "none"
    if "no matching signatures" in err:
        return "other key"
    raise failure(str(repository), err, PATIENCE)


def options(repository: Repository) -> list[str]:
    """cosign's options for a registry."""
    return [
        *(["--allow-http-registry"] if repository.plain_http else []),
        *(["--registry-cacert", str(repository.ca_file)] if repository.ca_file else []),
    ]


def environment() -> dict[str, str]:
    """An empty password, unless there is one: without the variable, cosign would ask on the terminal."""
    return {"COSIGN_PASSWORD": "", **os.environ}
