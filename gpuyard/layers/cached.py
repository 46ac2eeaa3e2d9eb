"""Layers by their inputs: made once, kept in the store, reused only when intact."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import zstandard

from gpuyard.layers import container, files, make, model, tarball, wheel
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.plan import Group
from gpuyard.store.store import Store

CODE = (container, make, model, tarball, wheel)


@cache
def code() -> str:
    """A checksum of the code that decides a layer's bytes."""
    content = hashlib.sha256()
    for file in [*(str(module.__file__) for module in CODE), str(make.COMPILE)]:
        content.update(Path(file).read_bytes())
    content.update(f"{zstandard.__version__} {zstandard.ZSTD_VERSION}".encode())
    return content.hexdigest()


def key(content: Any, target: Target, python: str | None) -> str:
    """The key of a layer: a checksum of its inputs. ``python`` is the exact Python that compiles, or None."""
    inputs = [content, asdict(target), python, code()]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def wheels_key(group: Group, target: Target, python: str | None) -> str:
    """The key of a layer of wheels."""
    return key([[wheel.path.name, wheel.sha] for wheel in group.wheels], target, python)


def files_key(stage: Path, target: Target, base: str) -> str:
    """The key of the layer of this project's own files."""
    content = [[path, hashlib.sha256(data).hexdigest(), executable] for path, data, executable in files.contents(stage)]
    scripts = [Path(file).read_text() for file in (files.__file__, files.SCRIPTS[0])]
    return key([content, scripts], target, base)


def known(store: Store, key: str) -> Layer | None:
    """The layer of that key if the store has it. Its content is checked where it is sent on."""
    record = store.record("layers", key)
    if record is None:
        return None
    layer = Layer.from_json(record)
    return layer if store.whole(layer.digest, layer.size) else None


def ensure(store: Store, key: str, write: Callable[[Path], Layer]) -> Layer:
    """The layer of that key, from the store or written to it. Two processes don't make it twice."""
    with store.locked(f"layer-{key}"):
        if layer := known(store, key):
            return layer
        with store.part() as part:
            layer = write(part)
            adopt(store, key, layer, part)
        return layer


def adopt(store: Store, key: str, layer: Layer, file: Path) -> None:
    """Adds a layer that was written to a file on the store's disk."""
    store.keep(file, layer.digest)
    store.write_record("layers", key, layer.as_json())


def ensure_wheels(store: Store, group: Group, target: Target, compiler: str | None, python: str | None) -> Layer:
    """The layer of these wheels."""
    return ensure(
        store,
        wheels_key(group, target, python),
        lambda part: make.wheels_layer(group.wheels, target, compiler, part),
    )


def remake_wheels(store: Store, group: Group, target: Target, compiler: str | None, python: str | None) -> Layer:
    """The layer of these wheels, made again even if the store has it."""
    forget(store, wheels_key(group, target, python))
    return ensure_wheels(store, group, target, compiler, python)


def forget(store: Store, key: str) -> None:
    """Removes the record of a layer; its blob stays for other users of it."""
    store.forget("layers", key)


def ensure_files(store: Store, key: str, stage: Path, target: Target, base: str) -> Layer:
    """The layer of this project's own files, by their key, on that base (an image in the engine, named by digest)."""
    return ensure(store, key, lambda part: files.files_layer(stage, target, base, part))
