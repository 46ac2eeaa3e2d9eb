"""The way to a registry: layers, then evidence, then signatures, tags last. Each step looks first and can be repeated.

A tag is set only when the registry has the verified image under its digest and all evidence refers to it. Killed
anywhere, it leaves no tag but those of a whole publication, and the next run goes on from there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gpuyard.errors import UserError
from gpuyard.image.facts import Tags
from gpuyard.image.source import Source
from gpuyard.publish import evidence
from gpuyard.publish.evidence import Document, Referrer
from gpuyard.publish.registry import Repository, retried
from gpuyard.publish.signing import Signer
from gpuyard.publish.verified import Report

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Order:
    """A verified image on its way: what, with which report, where to, under which names, signed by whom."""

    source: Source
    report: Report
    repository: Repository
    tags: Tags
    signer: Signer | None = None

    def __post_init__(self) -> None:
        """Whatever way an order was made: a report about another digest verifies nothing here."""
        if self.report.content["digest"] not in self.source.identities:
            raise UserError(f"{self.report.path} is about {self.report.content['digest']}, not {self.source.digest}")


@dataclass
class Done:
    """What a publication changed on the registry; nothing of it is there if all was there before."""

    blobs: list[str] = field(default_factory=list)
    attached: list[str] = field(default_factory=list)
    signed: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.blobs or self.attached or self.signed or self.tags)


def look(order: Order) -> dict[str, str | None]:
    """What each tag stands for on the registry now. Raises UserError if the immutable one is another image's."""
    found = {tag: order.repository.resolve(tag) for tag in order.tags.in_order}
    refuse_taken(order, found.get(order.tags.immutable))
    return found


def refuse_taken(order: Order, there: str | None) -> None:
    """Raises UserError if the immutable tag stands for another digest."""
    if there not in (None, order.source.digest):
        raise UserError(
            f"the tag {order.tags.immutable} exists in {order.repository} and stands for {there}; an immutable tag is "
            f"never set anew, and this image is {order.source.digest}. Commit a change, or build what that tag holds"
        )


def publish(order: Order, tell: Tell) -> Done:
    """Publishes the image of an order. Raises UserError at the first step that fails."""
    done, there = Done(), look(order)
    send(order, done, tell)
    documents = evidence.gather(order.source, order.report)
    referrers = attach(order, documents, done, tell)
    sign(order, documents, referrers, done, tell)
    set_tags(order, there, done, tell)
    return done


def send(order: Order, done: Done, tell: Tell) -> None:
    """The image is on the registry under its digest, byte for byte the local one."""
    source, repository = order.source, order.repository
    if repository.resolve(source.digest) is None:
        tell(f"sending {source.digest[:19]} ({source.size / 1e9:.2f} GB at most) to {repository}")
        done.blobs = repository.push(source.layout, source.digest, source.size)
    if repository.manifest(source.digest) != source.manifest:
        raise UserError(f"digest mismatch: {repository.at(source.digest)} is not the image that was sent")


def attach(order: Order, documents: list[Document], done: Done, tell: Tell) -> list[Referrer]:
    """All evidence refers to the digest. Returns the registry's referrers, in which all of it was found."""
    referrers = list(order.repository.referrers(order.source.digest))
    missing = [document for document in documents if not document.attached(referrers)]
    for document in missing:
        tell(f"attaching {evidence.NAMES[document.kind]}")
        attach_one(order, document)
        done.attached.append(document.kind)
    if missing:
        referrers = list(order.repository.referrers(order.source.digest))
    if lost := [document.filename for document in documents if not document.attached(referrers)]:
        raise UserError(f"{order.repository} does not list {', '.join(lost)} after they were attached. Run it again")
    return referrers


def attach_one(order: Order, document: Document) -> None:
    """Attaches one document.

    Its time is part of the artifact, so that a second try is another artifact: oras leaves one that is there
    alone, also where the connection broke, or a kill came, before it was listed among the referrers.
    """

    def once() -> str:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        notes = {**document.annotations, evidence.CONTENT: document.digest, evidence.CREATED: now}
        order.repository.attach(order.source.digest, file, document.kind, notes)
        return now

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, document.filename)
        file.write_bytes(document.data)
        retried(once)


def sign(order: Order, documents: list[Document], referrers: list[Referrer], done: Done, tell: Tell) -> None:
    """The image and each piece of evidence are signed, if the order has a signer."""
    if order.signer is None:
        return
    for digest in (order.source.digest, *(document.attached(referrers) for document in documents)):
        if order.signer.ensure(order.repository, digest):
            tell(f"signed {digest[:19]}")
            done.signed += 1


def set_tags(order: Order, there: dict[str, str | None], done: Done, tell: Tell) -> None:
    """Every tag stands for the digest; the immutable one is looked at again at the last moment."""
    repository, digest = order.repository, order.source.digest
    for tag in order.tags.in_order:
        if there[tag] == digest:
            continue
        if tag == order.tags.immutable:
            refuse_taken(order, repository.resolve(tag))
        repository.tag(digest, tag)
        if repository.resolve(tag) != digest:
            raise UserError(f"{repository}:{tag} does not stand for {digest} after it was set: somebody else set it")
        tell(f"{repository}:{tag}")
        done.tags.append(tag)
