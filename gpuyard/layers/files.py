"""This project's own files as a layer: what docker/finish-image.sh does in a Dockerfile build."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gpuyard.layers.bytecode import Bytecode
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.tarball import LayerWriter

HOME = "opt/gpuyard"
ROOMS = (("verify", f"{HOME}/verify"), ("entrypoints", f"{HOME}/entrypoints"), ("claims", "etc/gpuyard"))
"""The staged folders and where they lie in an image."""


def files_layer(stage: Path, target: Target, compiler: str | None, out: Path) -> Layer:
    """Writes the last layer of a published image: the suite, the start scripts, and the claims."""
    bytecode = Bytecode(compiler, HOME, f"/{HOME}") if compiler else None
    with out.open("wb") as file, contextlib.ExitStack() as stack:
        if bytecode:
            stack.callback(bytecode.close)
        writer = stack.enter_context(LayerWriter(file, target))
        for path, data, executable in contents(stage):
            writer.add_system(path, data, executable)
            if bytecode and path.startswith(HOME) and path.endswith(".py"):
                bytecode.source(path, data)
        # Where a start keeps its state: any user may, nobody reads another's.
        writer.directory("run/gpuyard", 0o1777)
        writer.add_link("usr/local/bin/verify", f"/{HOME}/entrypoints/verify")
        writer.add_system(f"{target.site}/gpuyard.pth", f"/{HOME}\n".encode())
        for path, size, content in bytecode.compiled() if bytecode else ():
            writer.add_derived(path, size, content)
    return writer.layer({"io.gpuyard.files": " ".join(f"/{place}" for _, place in ROOMS)})


def contents(stage: Path) -> Iterator[tuple[str, bytes, bool]]:
    """Path in the image, content, and whether it is a program, of every staged file, sorted."""
    for room, place in ROOMS:
        for file in sorted((stage / room).rglob("*")):
            if file.is_file():
                path = f"{place}/{file.relative_to(stage / room).as_posix()}"
                yield path, file.read_bytes(), bool(file.stat().st_mode & 0o100)
