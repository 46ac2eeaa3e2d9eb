"""The way to a registry: layers, then evidence, then signatures, tags last. Each step looks first and can be repeated.

A tag is set only when the registry has the verified image under its digest and all evidence refers to it. Killed
at any point, it leaves only tags of whole publications, and the next run continues from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gpuyard.errors import UserError
from gpuyard.image import oci
from gpuyard.image.facts import Tags
from gpuyard.image.source import Source
from gpuyard.publish import evidence
from gpuyard.publish.evidence import Document, Referrer
from gpuyard.publish.registry import Repository, retried
from gpuyard.publish.signing import Signer
from gpuyard.publish.verified import Report

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Publication:
    """A verified image with its report, where it goes, under which tags, and who signs it."""

    source: Source
    report: Report
    repository: Repository
    tags: Tags
    signer: Signer | None = None

    def __post_init__(self) -> None:
        """A publication cannot be made with a report about another digest."""
        if (about := self.report.content.digest) not in self.source.identities:
            raise UserError("report-other-image", f"{self.report.path} is about {about}, not {self.source.digest}")


@dataclass
class Done:
    """What a publication changed on the registry; empty if all was there before."""

    blobs: list[str] = field(default_factory=list)
    attached: list[str] = field(default_factory=list)
    signed: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.blobs or self.attached or self.signed or self.tags)


def look(publication: Publication) -> dict[str, str | None]:
    """What each tag stands for on the registry now. Raises UserError if the immutable one is another image's."""
    found = {tag: publication.repository.resolve(tag) for tag in publication.tags.in_order}
    refuse_taken(publication, found.get(publication.tags.immutable))
    return found


def refuse_taken(publication: Publication, there: str | None) -> None:
    """Raises UserError if the immutable tag stands for another digest."""
    if there not in (None, publication.source.digest):
        raise UserError(
            "tag-taken",
            f"the tag {publication.tags.immutable} exists in {publication.repository} and stands for {there}; "
            f"it never moves, and this image is {publication.source.digest}. Commit a change first",
        )


def publish(publication: Publication, tell: Tell) -> Done:
    """Publishes an image. Raises UserError at the first step that fails."""
    done, there = Done(), look(publication)
    send(publication, done, tell)
    documents = evidence.gather(publication.source, publication.report)
    referrers = attach(publication, documents, done, tell)
    sign(publication, documents, referrers, done, tell)
    set_tags(publication, there, done, tell)
    return done


def send(publication: Publication, done: Done, tell: Tell) -> None:
    """Sends the image unless it is there. Raises UserError unless the registry then has the same manifest."""
    source, repository = publication.source, publication.repository
    if repository.resolve(source.digest) is None:
        tell(f"sending {oci.short(source.digest)} ({source.size / 1e9:.2f} GB at most) to {repository}")
        done.blobs = repository.push(source.layout, source.digest, source.size)
    if repository.manifest(source.digest) != source.manifest:
        raise UserError(
            "registry-content-differs", f"{repository.at(source.digest)} does not hold the image that was sent"
        )


def attach(publication: Publication, documents: list[Document], done: Done, tell: Tell) -> list[Referrer]:
    """Attaches what is missing. Returns the registry's referrers, in which all evidence was found."""
    referrers = list(publication.repository.referrers(publication.source.digest))
    missing = [document for document in documents if not document.attached(referrers)]
    for document in missing:
        tell(f"attaching {evidence.NAMES[document.kind]}")
        attach_one(publication, document)
        done.attached.append(document.kind)
    if missing:
        referrers = list(publication.repository.referrers(publication.source.digest))
    if lost := [document.filename for document in documents if not document.attached(referrers)]:
        raise UserError(
            "evidence-missing",
            f"{publication.repository} does not list {', '.join(lost)}, just attached. Run it again",
        )
    return referrers


def attach_one(publication: Publication, document: Document) -> None:
    """Attaches one document.

    The time is part of the artifact, so that a second try makes another artifact: oras skips one that exists, even
    if the connection broke or the process was killed before it was listed among the referrers.
    """

    def once() -> str:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        notes = {**document.annotations, evidence.CONTENT: document.digest, evidence.CREATED: now}
        publication.repository.attach(publication.source.digest, file, document.kind, notes)
        return now

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, document.filename)
        file.write_bytes(document.data)
        retried(once)


def sign(
    publication: Publication, documents: list[Document], referrers: list[Referrer], done: Done, tell: Tell
) -> None:
    """Signs the image and each piece of evidence, if the publication has a signer."""
    if publication.signer is None:
        return
    for digest in (publication.source.digest, *(document.attached(referrers) for document in documents)):
        if publication.signer.ensure(publication.repository, digest):
            tell(f"signed {oci.short(digest)}")
            done.signed += 1


def set_tags(publication: Publication, there: dict[str, str | None], done: Done, tell: Tell) -> None:
    """Sets every tag; the immutable one is looked up again just before."""
    repository, digest = publication.repository, publication.source.digest
    for tag in publication.tags.in_order:
        if there[tag] == digest:
            continue
        if tag == publication.tags.immutable:
            refuse_taken(publication, repository.resolve(tag))
        repository.tag(digest, tag)
        if repository.resolve(tag) != digest:
            raise UserError("tag-moved", f"{repository}:{tag} does not stand for {digest} just after it was set to it")
        tell(f"{repository}:{tag}")
        done.tags.append(tag)
