"""What a registry holds about one reference."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuyard.errors import UsageError, UserError
from gpuyard.image.oci import digest_of
from gpuyard.publish import evidence, registry, signing
from gpuyard.publish.registry import Repository
from gpuyard.publish.signing import State, Trust

REFERENCE = re.compile(r"^(?P<where>[^@]+?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?$")
SIGNATURE = "sha256-{}.sig"
ATTESTATION = "vnd.docker.reference.type"
"""The annotation of what BuildKit adds to an index beside the image."""
NAMES_SHOWN = 12


@dataclass(frozen=True)
class Evidence:
    """A piece of evidence: the digest of its artifact, its content, and whether it is signed."""

    digest: str
    content: Any
    signature: State


@dataclass(frozen=True)
class Published:
    """What the registry has about an image."""

    repository: Repository
    tag: str
    digest: str
    manifest: Mapping[str, Any]
    config: Mapping[str, Any]
    tags: tuple[str, ...]
    signature: State
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def labels(self) -> Mapping[str, str]:
        return dict(self.config.get("config", {}).get("Labels") or {})

    @property
    def size(self) -> int:
        """What a user downloads, in bytes."""
        return sum(int(layer["size"]) for layer in self.manifest["layers"])


def parse(reference: str, ca_file: Path | None, plain_http: bool | None) -> tuple[Repository, str]:
    """Repository, and tag or digest. Raises UsageError."""
    found = REFERENCE.match(reference)
    if not found or not found["where"].rpartition("/")[0] or not registry.REFERENCE.match(found["where"]):
        # What stands before an @ that no digest follows may be a password.
        shown = repr(reference) if "@" not in reference or "@sha256:" in reference else "the reference"
        raise UsageError("reference-invalid", f"{shown}: expected HOST[:PORT]/NAME:TAG or HOST[:PORT]/NAME@sha256:…")
    repository = Repository.parse(found["where"], "", ca_file, plain_http)
    return repository, found["digest"] or found["tag"] or "latest"


def read(repository: Repository, tag: str, trust: Trust | None = None) -> Published:
    """Everything about a reference. With a trusted signer, only evidence that it signed counts."""
    digest = repository.resolve(tag)
    if digest is None:
        raise UserError(
            "tag-missing",
            f"{repository} has no {tag}. It has: {', '.join(repository.tags()[:NAMES_SHOWN]) or 'nothing'}",
        )
    manifest = json.loads(repository.manifest(digest))
    image = only_image(f"{repository}:{tag}", manifest) if "layers" not in manifest else digest
    if image != digest:
        manifest = json.loads(repository.manifest(image))
    config = json.loads(repository.blob(manifest["config"]["digest"]))
    found, warnings = attached(repository, image, trust)
    if image != digest and not found:
        found, warnings = attached(repository, digest, trust)
    warnings += doubts(found, frozenset({digest, image, manifest["config"]["digest"]}))
    return Published(
        repository,
        tag,
        digest,
        manifest,
        config,
        also(repository, digest),
        state(repository, digest, trust),
        found,
        tuple(warnings),
    )


def only_image(name: str, index: Mapping[str, Any]) -> str:
    """The digest of an index's one image; what BuildKit attests about it does not count. Raises UserError."""
    entries = [entry for entry in index.get("manifests", []) if ATTESTATION not in (entry.get("annotations") or {})]
    if len(entries) == 1:
        return str(entries[0]["digest"])
    platforms = (entry.get("platform", {}) for entry in entries)
    names = [f"{one.get('os', '?')}/{one.get('architecture', '?')}" for one in platforms]
    choices = ", ".join(f"{entry['digest']} ({name})" for entry, name in zip(entries, names, strict=True))
    raise UserError(
        "image-is-index", f"{name} is a list of {len(entries)} images: give one's digest: {choices or 'none'}"
    )


def attached(repository: Repository, digest: str, trust: Trust | None) -> tuple[dict[str, Evidence], list[str]]:
    """The newest evidence of each kind, and warnings about what was ignored."""
    found: dict[str, Evidence] = {}
    warnings: list[str] = []
    referrers = repository.referrers(digest)
    for kind, name in evidence.NAMES.items():
        candidates = [entry for entry in referrers if entry.get("artifactType") == kind]
        for entry in sorted(candidates, key=lambda entry: evidence.note(entry, evidence.CREATED), reverse=True):
            signature = state(repository, entry["digest"], trust)
            if trust and signature != "good":
                warnings.append(f"a {name} without a signature of this signer was ignored ({entry['digest']})")
                continue
            found[kind] = Evidence(entry["digest"], _content(repository, entry["digest"]), signature)
            break
    return found, warnings


def _content(repository: Repository, digest: str) -> Any:
    manifest = json.loads(repository.manifest(digest))
    data = repository.blob(manifest["layers"][0]["digest"])
    if digest_of(data) != manifest["layers"][0]["digest"]:
        raise UserError("registry-content-differs", f"{repository.at(digest)}: its content has another digest")
    try:
        return json.loads(data)
    except ValueError as error:
        raise UserError(
            "evidence-unreadable", f"{repository.at(digest)} is attached as evidence but is not JSON: {error}"
        ) from error


def state(repository: Repository, digest: str, trust: Trust | None) -> State:
    """Whether a digest is signed; without a signer, whether there is any signature at all."""
    if trust:
        return signing.state(repository, digest, trust)
    return "not checked" if repository.resolve(SIGNATURE.format(digest.removeprefix("sha256:"))) else "none"


def also(repository: Repository, digest: str) -> tuple[str, ...]:
    """The tags that stand for a digest."""
    return tuple(tag for tag in repository.tags() if repository.resolve(tag) == digest)


def doubts(found: Mapping[str, Evidence], digests: frozenset[str]) -> list[str]:
    """Warnings about evidence that describes another image than the one it is attached to."""
    subjects: dict[str, Any] = {}
    if entry := found.get(evidence.REPORT):
        subjects[evidence.REPORT] = entry.content.get("digest")
    if entry := found.get(evidence.PROVENANCE):
        subject = (entry.content.get("subject") or [{}])[0]
        subjects[evidence.PROVENANCE] = "sha256:" + str(subject.get("digest", {}).get("sha256"))
    if entry := found.get(evidence.CYCLONEDX):
        subjects[evidence.CYCLONEDX] = entry.content.get("metadata", {}).get("component", {}).get("bom-ref")
    return [
        f"the {evidence.NAMES[kind]} is about {about}, another image: do not trust it"
        for kind, about in subjects.items()
        if about not in digests
    ]
