"""What differs between two images: versions, packages, driver, size, layers, checks."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from gpuyard import paths
from gpuyard.acceptance import reports
from gpuyard.acceptance.any_image import PYTHONS
from gpuyard.catalogue.claims import LABEL, image_json
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.engine import daemon
from gpuyard.errors import UsageError, UserError

IMAGE_JSON = "/etc/gpuyard/image.json"
LIST = (
    "import json; from importlib.metadata import distributions as all; "
    "print(json.dumps({one.metadata['Name']: one.version for one in all()}))"
)
FIND = (
    f'for python in {PYTHONS}; do if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -c "$1"; fi; done; '
    "exit 2"
)


@dataclass(frozen=True)
class Side:
    """One of the two: what it claims and, where the engine has it, what it weighs and is made of."""

    name: str
    claims: Mapping[str, Any]
    digest: str = ""
    size: int | None = None
    layers: tuple[str, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)
    installed: Mapping[str, str] | None = None
    disk: int | None = None

    @property
    def packages(self) -> Mapping[str, str]:
        """What is installed; what the lock or the image's own file claims where that cannot be read."""
        return self.claims["packages"] if self.installed is None else self.installed

    @property
    def built(self) -> bool:
        """Whether the engine has it; otherwise the catalogue and the locks speak for it."""
        return bool(self.digest)


def side(catalogue: Catalogue, name: str) -> Side:
    """An image by any name of it: a tag, a digest, or a line of the catalogue, built here or not.

    Raises UsageError for a name that neither the engine nor the catalogue knows.
    """
    if daemon.answers():
        client = daemon.client()
        for reference in (f"{catalogue.repository}:{name}", f"{catalogue.repository}:v{name}", name):
            try:
                return _built(client, reference)
            except ImageNotFound:
                continue
    return _declared(catalogue, name)


def _built(client: docker.DockerClient, reference: str) -> Side:
    try:
        image = client.images.get(reference)
    except APIError as error:
        # A name that no image can have (`2.9@x`) is refused by the engine, not looked for.
        raise ImageNotFound(str(error)) from error
    if f"{LABEL}.line" not in image.labels:
        raise UserError("image-not-gpuyard", f"{reference} is not a gpuyard image: it has no label {LABEL}.line")
    digest = str(image.id)
    claims = json.loads(_file(client, digest, IMAGE_JSON))
    found = installed(client, digest)
    return Side(
        reference if found is not None else f"{reference} (packages: as it claims, no Python answers in it)",
        claims,
        digest,
        int(image.attrs["Size"]),
        tuple(image.attrs["RootFS"]["Layers"]),
        checks(digest),
        found,
        daemon.disk_sizes(client).get(digest),
    )


def installed(client: docker.DockerClient, image: str) -> dict[str, str] | None:
    """The distributions that the image's own Python finds, by normalized name; None where no Python answers."""
    line = ["-c", FIND, "sh", LIST]
    try:
        out = client.containers.run(image, line, entrypoint="sh", network_disabled=True, remove=True)
        found = json.loads(out)
    except (DockerException, ValueError):
        return None
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found.items()}


def _file(client: docker.DockerClient, image: str, path: str) -> bytes:
    """A file of an image, from a container that is never started."""
    container = client.containers.create(image, network_disabled=True)
    try:
        chunks, _ = container.get_archive(path)
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
            content = tar.extractfile(tar.getmembers()[0])
            assert content is not None
            return content.read()
    except NotFound as error:
        raise UserError("image-not-gpuyard", f"{image} has no {path}: it is not a gpuyard image") from error
    finally:
        container.remove(force=True, v=True)


def _declared(catalogue: Catalogue, name: str) -> Side:
    bare = name.removeprefix(f"{catalogue.repository}:")
    suffixes = sorted(catalogue.published.items(), key=lambda item: -len(item[1].suffix or ""))
    for image, row in suffixes:
        if bare.endswith(row.suffix or ""):
            line = bare.removesuffix(row.suffix or "")
            wanted = find_product(catalogue, line, image)
            return Side(f"{wanted.tag} (not built here: from its lock)", image_json(wanted))
    raise UsageError("image-unknown", f"unknown image {name!r}")


def checks(digest: str, folder: Path = paths.REPORTS) -> dict[str, str]:
    """The status of every check in the newest report of that digest; empty without one."""
    found = reports.about(folder, {digest})
    return {finding.check: finding.verdict.status.value for finding in found.content.findings} if found else {}


@dataclass(frozen=True)
class Change:
    """A name with its value on either side; empty where it is not there."""

    name: str
    old: str
    new: str


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """What differs between two mappings, by name."""
    names = sorted({*old, *new})
    pairs = ((name, str(old.get(name, "")), str(new.get(name, ""))) for name in names)
    return [Change(*pair) for pair in pairs if pair[1] != pair[2]]


def facts(side: Side) -> dict[str, str]:
    """The versions and the drivers: of packages as installed, of the rest as the image claims."""
    claims = side.claims
    drivers = {f"driver ({what})": version for what, version in claims["driver"].items()}
    versions = {name: side.packages.get(name, version) for name, version in claims["versions"].items()}
    return {**versions, **drivers, "arch list": " ".join(claims["arch_list"]), "os": claims["os"]}


def shared_layers(old: Side, new: Side) -> tuple[int, int, int]:
    """Layers that both have, only the old one, only the new one."""
    both = set(old.layers) & set(new.layers)
    return len(both), len(set(old.layers) - both), len(set(new.layers) - both)
