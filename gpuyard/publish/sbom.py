"""The bill of materials as CycloneDX. The same image gives the same bytes."""

from __future__ import annotations

import uuid
from datetime import datetime

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from gpuyard.image.source import Source
from gpuyard.publish.inventory import Debian, Inventory, Python


def cyclonedx(source: Source, inventory: Inventory) -> bytes:
    """The CycloneDX document of an image."""
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, source.digest))
    bom.metadata.timestamp = created(source)
    # The library names itself and its version here, which would change the bytes with it.
    bom.metadata.tools.components.clear()
    bom.metadata.component = Component(
        name=title(source),
        version=source.facts.full,
        type=ComponentType.CONTAINER,
        bom_ref=source.digest,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=source.digest.removeprefix("sha256:"))],
        properties=[Property(name="gpuyard:revision", value=source.facts.revision)],
    )
    for package in inventory.python:
        bom.components.add(_python(package))
    for debian in inventory.debian:
        bom.components.add(_debian(debian, source))
    bom.register_dependency(bom.metadata.component, bom.components)
    written = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    return (written + "\n").encode()


def created(source: Source) -> datetime:
    """The time an image carries."""
    return datetime.fromisoformat(str(source.config["created"]).replace("Z", "+00:00"))


def title(source: Source) -> str:
    """What an image is called, without its tag."""
    return source.labels.get("org.opencontainers.image.title", "image").partition(":")[0]


def pypi(package: Python) -> PackageURL:
    """The address of a Python package in any bill of materials."""
    return PackageURL("pypi", None, package.name, package.version)


def deb(package: Debian, source: Source) -> PackageURL:
    """The address of a Debian package in any bill of materials."""
    facts = source.facts
    more = {"arch": package.architecture, "distro": f"{facts.os_id}-{facts.os_version}"}
    return PackageURL("deb", facts.os_id, package.name, package.version, more)


def _python(package: Python) -> Component:
    address = pypi(package)
    licence = LicenseFactory().make_from_string(package.license, license_text=None) if package.license else None
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(address),
        purl=address,
        licenses=[licence] if licence else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package.wheel.removeprefix("sha256:"))],
    )


def _debian(package: Debian, source: Source) -> Component:
    address = deb(package, source)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(address),
        purl=address,
        licenses=[DisjunctiveLicense(name=f"see /usr/share/doc/{package.name}/copyright")],
        properties=[Property(name="gpuyard:source-package", value=package.source)],
    )
