"""The complete file system of an image as data."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

import docker

TYPES = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "hard link"}


@dataclass(frozen=True)
class Node:
    """A path: type, mode, owner, and the hash of its content or where it points."""

    kind: str
    mode: str
    owner: str
    content: str


@contextlib.contextmanager
def exported(client: docker.DockerClient, image: str) -> Iterator[tarfile.TarFile]:
    """The file system as a stream."""
    container = client.containers.create(image, "true")
    command = ["docker", "export", str(container.id)]
    try:
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE) as export,
            tarfile.open(fileobj=export.stdout, mode="r|") as tar,
        ):
            yield tar
    finally:
        container.remove(force=True)


def nodes(client: docker.DockerClient, image: str) -> dict[str, Node]:
    """Every path of an image, as a container of it would see it."""
    with exported(client, image) as tar:
        return {member.name.rstrip("/"): _node(tar, member) for member in tar}


def _node(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Node:
    content = tar.extractfile(member) if member.isreg() else None
    digest = hashlib.file_digest(content, "sha256").hexdigest() if content else member.linkname  # type: ignore[arg-type]
    return Node(TYPES.get(member.type, str(member.type)), oct(member.mode), f"{member.uid}:{member.gid}", digest)


def read(client: docker.DockerClient, image: str, paths: list[str]) -> dict[str, bytes]:
    """The content of some files of an image."""
    wanted = set(paths)
    with exported(client, image) as tar:
        return {m.name: c.read() for m in tar if m.name in wanted and (c := tar.extractfile(m))}
