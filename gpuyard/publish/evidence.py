"""What is attached to a digest: bills of materials, provenance, the verification report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from gpuyard.image.oci import digest_of
from gpuyard.image.source import Source
from gpuyard.publish import inventory as inventories
from gpuyard.publish.provenance import PREDICATE, provenance
from gpuyard.publish.verified import Report

CYCLONEDX = "application/vnd.cyclonedx+json"
SPDX = "application/spdx+json"
PROVENANCE = "application/vnd.in-toto+json"
REPORT = "application/vnd.gpuyard.verify.v1+json"
NAMES = {CYCLONEDX: "CycloneDX", SPDX: "SPDX", PROVENANCE: "SLSA provenance", REPORT: "verification report"}
CONTENT = "io.gpuyard.content"
"""The annotation that holds the digest of what is attached."""
CREATED = "org.opencontainers.image.created"

KIND = "evidence"
"""Of the store's records."""

Referrer = Mapping[str, Any]


@dataclass(frozen=True)
class Document:
    """One piece of evidence; its kind is the media type of both the file and the artifact."""

    kind: str
    filename: str
    data: bytes = field(repr=False)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    def attached(self, referrers: Iterable[Referrer]) -> str:
        """The digest of the referrer that holds exactly this; empty if there is none."""
        found = (entry for entry in referrers if entry.get("artifactType") == self.kind)
        return next((str(entry["digest"]) for entry in found if note(entry, CONTENT) == self.digest), "")


def note(entry: Referrer, name: str) -> str:
    """An annotation of a referrer, or nothing."""
    return str((entry.get("annotations") or {}).get(name, ""))


def gather(source: Source, report: Report) -> list[Document]:
    """All evidence about an image. Raises UserError if its files, locks and wheels don't agree."""
    written = papers(source)
    predicate = {"in-toto.io/predicate-type": PREDICATE}
    return [
        Document(CYCLONEDX, "sbom.cdx.json", written[CYCLONEDX].encode()),
        Document(SPDX, "sbom.spdx.json", written[SPDX].encode()),
        Document(PROVENANCE, "provenance.json", written[PROVENANCE].encode(), predicate),
        Document(REPORT, "verify.json", report.data, verdict(report)),
    ]


def papers(source: Source) -> dict[str, str]:
    """Bills of materials and provenance. They depend on image and code alone, so they are written once and cached."""
    key = hashlib.sha256(f"{source.digest} {code()}".encode()).hexdigest()
    if source.store and (record := source.store.record(KIND, key)) and record.keys() == {CYCLONEDX, SPDX, PROVENANCE}:
        return record
    # The writers of both formats take half a second to import, and as long again to write.
    from gpuyard.publish.sbom import cyclonedx
    from gpuyard.publish.spdx import spdx

    taken = inventories.take(source)
    writers = {CYCLONEDX: cyclonedx, SPDX: spdx, PROVENANCE: provenance}
    written = {kind: write(source, taken).decode() for kind, write in writers.items()}
    if source.store:
        source.store.write_record(KIND, key, written)
    return written


@cache
def code() -> str:
    """A checksum of the code and libraries that decide what is written."""
    content = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        content.update(file.read_bytes())
    for library in ("cyclonedx-python-lib", "spdx-tools"):
        content.update(metadata.version(library).encode())
    return content.hexdigest()


def verdict(report: Report) -> dict[str, str]:
    """The report in three annotations, for readers of the list of referrers."""
    return {
        "io.gpuyard.verdict": "passed",
        "io.gpuyard.gpu": "yes" if report.gpu else "not run on a GPU",
        "io.gpuyard.started": report.content.started,
    }
