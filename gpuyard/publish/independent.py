"""What was published, read by a client that took no part in publishing it: skopeo."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpuyard.errors import UserError
from gpuyard.publish import evidence
from gpuyard.publish.oras_errors import failure
from gpuyard.publish.registry import SLOWEST, Repository, execute

PATIENCE = 60.0


def refuse_different(repository: Repository, tag: str, room: Path, tell: Callable[[str], None]) -> str:
    """Resolves a tag once, pulls every blob of that digest into ``room``, looks for evidence. Returns the digest.

    Raises UserError if what arrives has another digest, or evidence is missing.
    """
    digest = skopeo(repository, "inspect", "--format", "{{.Digest}}", at=f":{tag}").strip()
    manifest = json.loads(skopeo(repository, "inspect", "--raw", at=f"@{digest}"))
    size = sum(int(layer["size"]) for layer in manifest["layers"])
    tell(f"skopeo pulls {repository.at(digest)} ({size / 1e9:.2f} GB) and compares every digest")
    with tempfile.TemporaryDirectory(dir=room) as folder:
        skopeo(repository, "copy", "--quiet", at=f"@{digest}", to=f"oci:{folder}/pulled:it", limit=patience(size))
        entry = json.loads(Path(folder, "pulled", "index.json").read_text())["manifests"][0]
    if entry["digest"] != digest:
        raise UserError(
            "registry-content-differs", f"{repository}:{tag} is {digest}, but what was pulled is {entry['digest']}"
        )
    kinds = referrers(repository, digest)
    if lost := [name for kind, name in evidence.NAMES.items() if kind not in kinds]:
        raise UserError(
            "evidence-missing", f"{repository}:{tag}: skopeo finds no {', '.join(lost)} among the referrers of {digest}"
        )
    tell(f"{len(kinds)} referrers: {', '.join(name for kind, name in evidence.NAMES.items() if kind in kinds)}")
    return digest


def referrers(repository: Repository, digest: str) -> list[str]:
    """The types of the artifacts that refer to a digest, by the tag schema or (newer registries) the referrers API."""
    try:
        listed = json.loads(skopeo(repository, "inspect", "--raw", at=":" + digest.replace(":", "-")))["manifests"]
    except UserError:
        listed = repository.referrers(digest)
    return [str(entry.get("artifactType", "")) for entry in listed]


def patience(size: int) -> float:
    """Seconds that a pull of so many bytes may take."""
    return PATIENCE + size / SLOWEST


def skopeo(repository: Repository, *words: str, at: str, to: str = "", limit: float = PATIENCE) -> str:
    """What skopeo answers about ``:TAG`` or ``@DIGEST``; ``to`` is where it copies. Raises UserError."""
    source = "src-" if to else ""
    trust = [f"--{source}tls-verify=false"] if repository.plain_http else []
    with tempfile.TemporaryDirectory() as folder:
        if repository.ca_file:
            # skopeo takes a folder of certificates.
            Path(folder, "ca.crt").write_bytes(repository.ca_file.read_bytes())
            trust = [f"--{source}cert-dir", folder]
        command = ["skopeo", words[0], *trust, *words[1:], f"docker://{repository}{at}", *([to] if to else [])]
        code, out, err = execute(command, limit)
    if code:
        raise failure(str(repository), err, limit)
    return out
