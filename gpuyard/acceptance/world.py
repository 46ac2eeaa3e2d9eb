"""What the outside checks look at: the image, the container started from it, and how to get in."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import docker
import paramiko
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from docker.models.containers import Container

from gpuyard.catalogue.claims import LABEL, image_json, labels
from gpuyard.catalogue.product import Product
from gpuyard.engine.session import Session, address
from gpuyard.engine.start import Start
from gpuyard.layers.reading import Entry, read_layers
from verify.model import Check, Claims, Evaluate, Facts, Level

UNPREDICTED = ("org.opencontainers.image.revision", "org.opencontainers.image.base.", f"{LABEL}.base-origin")
"""Labels that say when and from what one build was made; the catalogue does not know them."""

ANY = "any"
"""For a check that applies as soon as there is a service at all."""


def new_key() -> paramiko.Ed25519Key:
    """A fresh key pair that never touches the disk."""
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return paramiko.Ed25519Key.from_private_key(io.StringIO(pem.decode()))


def authorized_line(key: paramiko.PKey) -> str:
    """The public part, as it stands in authorized_keys."""
    return f"{key.get_name()} {key.get_base64()} gpuyard-verify"


def expectations(product: Product) -> Claims:
    """What the catalogue says that the image is: its claims, with labels and ports beside them."""
    wanted = {name: value for name, value in labels(product, "", "").items() if not name.startswith(UNPREDICTED)}
    row = product.catalogue.image[product.image]
    return Claims({**image_json(product), "labels": wanted, "ports": list(row.ports)}, {})


@dataclass
class World:
    """The things under test. ``token`` and ``key`` open the container; they are made for this run."""

    client: docker.DockerClient
    image: str
    config: Mapping[str, Any]
    session: Session
    container: Container
    start: Start
    token: str
    key: paramiko.Ed25519Key
    services: tuple[str, ...]
    tell: Callable[[str], None]
    waited: float = 0.0
    """Seconds from the start until every service answered."""
    _entries: list[Entry] | None = field(default=None, init=False)

    def entries(self) -> list[Entry]:
        """Every file of every layer of the image, read once."""
        if self._entries is None:
            self._entries = read_layers(self.client, self.image, self.container, self.tell)
        return self._entries

    def reach(self, port: int) -> tuple[str, int]:
        """Host address and port of a port of the container. Raises LookupError if it is not published."""
        found = address(self.container, port)
        if found is None:
            raise LookupError(f"port {port} of the container is not published")
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The image's ENV."""
        return dict(item.split("=", 1) for item in self.config.get("Env") or [])

    @property
    def python(self) -> str:
        """The interpreter that every way into the container must find."""
        return self.environment.get("VIRTUAL_ENV", "") + "/bin/python"


@dataclass(frozen=True)
class Outside:
    """A check from outside, before it is known what it looks at. ``service``: only where that runs."""

    id: str
    group: str
    level: Level
    title: str
    probe: Callable[[World], Facts]
    evaluate: Evaluate
    needs: tuple[str, ...] = ()
    service: str = ""

    def fits(self, services: tuple[str, ...]) -> bool:
        """Whether it means anything for an image with these services."""
        return not self.service or self.service in services or (self.service == ANY and bool(services))

    def bind(self, world: World) -> Check:
        """The check of this world."""
        probe = partial(self.probe, world)
        return Check(self.id, self.group, self.level, self.title, probe, self.evaluate, self.needs)
