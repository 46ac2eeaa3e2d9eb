"""This project's own files as a layer: docker/finish-image.sh, run in a container of the base image."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gpuyard import paths
from gpuyard.errors import UserError
from gpuyard.layers.container import Filter
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.tarball import LayerWriter

ROOMS = ("verify", "entrypoints", "examples", "claims")
"""The staged folders that finish-image.sh takes; images without examples have no such folder."""
SCRIPTS = tuple(paths.DOCKER / name for name in ("finish-layer.sh", "finish-image.sh", "finish_image.py"))


def files_layer(stage: Path, target: Target, base: str, out: Path) -> Layer:
    """Writes the last layer of a published image: the suite, the start scripts, and the claims.

    It holds what finish-image.sh changes on this base; times are the target's.
    """
    with Filter(base, SCRIPTS[0]) as container, out.open("wb") as file, LayerWriter(file, target) as writer:
        for path, data, executable in contents(stage):
            container.give(path, data, executable)
        for member, content in container.results():
            writer.add_member(member, content)
    if not writer.members:
        raise UserError("layer-script-failed", "docker/finish-image.sh changed nothing in the image: it did not run")
    return writer.layer({"io.gpuyard.files": "/opt/gpuyard /etc/gpuyard"})


def contents(stage: Path) -> Iterator[tuple[str, bytes, bool]]:
    """Path, content and execute bit of every file that goes into the container, sorted."""
    for script in SCRIPTS[1:]:
        yield script.name, script.read_bytes(), True
    for room in ROOMS:
        for file in sorted((stage / room).rglob("*")):
            if file.is_file():
                yield file.relative_to(stage).as_posix(), file.read_bytes(), bool(file.stat().st_mode & 0o100)
