"""The pure functions: wheels to a layer, files to a layer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from gpuyard.layers.bytecode import Bytecode
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.tarball import LayerWriter
from gpuyard.layers.wheel import add_wheel
from gpuyard.wheels.fetcher import Wheel

ANNOTATION = "io.gpuyard"


def wheels_layer(wheels: Sequence[Wheel], target: Target, compiler: str | None, out: Path) -> Layer:
    """Writes the layer in which these wheels are installed. ``compiler`` is an image, or None for no byte code.

    The bytes follow from the wheels and the target (and from the Python of ``compiler``) alone.
    """
    ordered = sorted(wheels, key=lambda wheel: wheel.name)
    bytecode = Bytecode(compiler, target.site) if compiler else None
    with out.open("wb") as file, contextlib.ExitStack() as stack:
        if bytecode:
            stack.callback(bytecode.close)
        with LayerWriter(file, target) as writer:
            for wheel in ordered:
                add_wheel(writer, wheel, bytecode)
            for path, size, content in bytecode.compiled() if bytecode else ():
                writer.add_derived(path, size, content)
    return writer.layer(bill_of_materials(ordered))


def bill_of_materials(wheels: Sequence[Wheel]) -> dict[str, str]:
    """What a layer says of its content: packages with versions, and the hashes of their wheels."""
    return {
        f"{ANNOTATION}.packages": " ".join(f"{wheel.name}=={wheel.version}" for wheel in wheels),
        f"{ANNOTATION}.wheels": " ".join(f"sha256:{wheel.sha}" for wheel in wheels),
    }
