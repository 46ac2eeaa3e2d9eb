"""The bill of materials as SPDX, with NVIDIA's and PyTorch's licence texts. The same image gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import re

from license_expression import ExpressionError
from spdx_tools.common.spdx_licensing import spdx_licensing
from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    ExtractedLicensingInfo,
    Package,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.writer.json.json_writer import write_document_to_stream

from gpuyard.image.source import Source
from gpuyard.publish.inventory import Inventory, Python
from gpuyard.publish.sbom import created, deb, pypi, title

ROOT = "SPDXRef-image"
ABOUT = "SPDXRef-DOCUMENT"


def spdx(source: Source, inventory: Inventory) -> bytes:
    """The SPDX document of an image."""
    texts = {text: reference(text) for package in inventory.python if (text := package.text)}
    packages = [
        *(_python(package, texts) for package in inventory.python),
        *(
            _package(f"deb-{package.name}-{package.architecture}", package.name, package.version, deb(package, source))
            for package in inventory.debian
        ),
    ]
    document = Document(
        CreationInfo(
            spdx_version="SPDX-2.3",
            spdx_id=ABOUT,
            name=f"{title(source)} {source.facts.full}",
            document_namespace=f"urn:gpuyard:spdx:{source.digest}",
            creators=[Actor(ActorType.TOOL, "gpuyard")],
            created=created(source).replace(tzinfo=None),
        ),
        packages=[_image(source), *packages],
        relationships=[
            Relationship(ABOUT, RelationshipType.DESCRIBES, ROOT),
            *(Relationship(ROOT, RelationshipType.CONTAINS, package.spdx_id) for package in packages),
        ],
        extracted_licensing_info=[
            ExtractedLicensingInfo(name, text, _whose(text, inventory)) for text, name in sorted(texts.items())
        ],
    )
    out = io.StringIO()
    write_document_to_stream(document, out, validate=False)
    return (out.getvalue() + "\n").encode()


def reference(text: str) -> str:
    """What a licence text is called in the document."""
    return "LicenseRef-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def _whose(text: str, inventory: Inventory) -> str:
    first = next(package for package in inventory.python if package.text == text)
    return f"{first.license or 'Licence'} ({first.name} {first.version})"


def _image(source: Source) -> Package:
    return Package(
        ROOT,
        title(source),
        SpdxNoAssertion(),
        version=source.facts.full,
        checksums=[Checksum(ChecksumAlgorithm.SHA256, source.digest.removeprefix("sha256:"))],
        files_analyzed=False,
    )


def _python(package: Python, texts: dict[str, str]) -> Package:
    made = _package(f"pypi-{package.name}", package.name, package.version, pypi(package))
    made.checksums = [Checksum(ChecksumAlgorithm.SHA256, package.wheel.removeprefix("sha256:"))]
    made.license_comment = package.license or None
    stated = texts.get(package.text) or package.expression
    try:
        made.license_declared = spdx_licensing.parse(stated, validate=not package.text) if stated else SpdxNoAssertion()
    except ExpressionError:
        made.license_declared = SpdxNoAssertion()
    return made


def _package(name: str, title: str, version: str, address: object) -> Package:
    return Package(
        "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        title,
        SpdxNoAssertion(),
        version=version,
        files_analyzed=False,
        external_references=[ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", str(address))],
    )
