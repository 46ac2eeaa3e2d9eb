"""The pure function: wheels to a layer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from gpuyard import paths
from gpuyard.layers.container import Filter
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.tarball import LayerWriter
from gpuyard.layers.wheel import add_wheel
from gpuyard.packages.fetcher import Wheel

ANNOTATION = "io.gpuyard"
COMPILE = paths.DOCKER / "compile-layer.sh"


def wheels_layer(wheels: Sequence[Wheel], target: Target, compiler: str | None, out: Path) -> Layer:
    """Writes the layer in which these wheels are installed. ``compiler`` is an image, or None for no byte code.

    The bytes follow from the wheels and the target (and from the Python of ``compiler``) alone.
    """
    ordered = sorted(wheels, key=lambda wheel: wheel.name)
    with contextlib.ExitStack() as stack:
        bytecode = stack.enter_context(Filter(compiler, COMPILE, target.site)) if compiler else None
        writer = stack.enter_context(LayerWriter(stack.enter_context(out.open("wb")), target))
        for wheel in ordered:
            add_wheel(writer, wheel, bytecode)
        for member, content in bytecode.results() if bytecode else ():
            assert content is not None
            writer.add_derived(member.name, member.size, content)
    return writer.layer(bill_of_materials(ordered))


def bill_of_materials(wheels: Sequence[Wheel]) -> dict[str, str]:
    """A layer's annotations: packages with versions, and the hashes of their wheels."""
    return {
        f"{ANNOTATION}.packages": " ".join(f"{wheel.name}=={wheel.version}" for wheel in wheels),
        f"{ANNOTATION}.wheels": " ".join(f"sha256:{wheel.sha}" for wheel in wheels),
    }
