"""The store: whole or not there, also after a kill, a damage or a full disk."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gpuyard.layers import cached
from gpuyard.layers.model import Layer
from gpuyard.store.store import Store, remove_orphans
from tests.refusals import refused


def digest(data: bytes) -> str:
    """The digest of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def kept(store: Store, data: bytes) -> str:
    """Puts a blob into the store."""
    with store.part() as part:
        part.write_bytes(data)
        store.keep(part, digest(data))
    return digest(data)


def test_a_part_that_was_not_kept_leaves_nothing(tmp_path: Path) -> None:
    """An error in the middle of writing leaves no blob."""
    store = Store(tmp_path)
    with pytest.raises(ZeroDivisionError), store.part() as part:
        part.write_bytes(b"half")
        raise ZeroDivisionError
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_kept_blob_has_its_content(tmp_path: Path) -> None:
    """And the part's own name is gone."""
    store = Store(tmp_path)
    assert store.blob(kept(store, b"data")).read_bytes() == b"data"
    assert list((tmp_path / "parts").iterdir()) == []


def test_parts_of_a_killed_writer_are_removed_and_those_of_a_living_one_stay(tmp_path: Path) -> None:
    """A lock, which ends with its process, distinguishes them."""
    store = Store(tmp_path)
    with store.part() as living:
        dead = living.with_name("dead")
        for path in (living, dead):
            path.touch()
            os.utime(path, (0, 0))
        remove_orphans(living.parent)
        assert living.exists()
        assert not dead.exists()


def test_a_damaged_blob_is_removed_and_said(tmp_path: Path) -> None:
    """It is never handed on."""
    store = Store(tmp_path)
    name = kept(store, b"data")
    store.blob(name).write_bytes(b"dara")
    assert store.whole(name, 4)
    with refused("store-damaged", tmp_path):
        store.refuse_damaged([name])
    assert not store.blob(name).exists()


def test_a_damaged_layer_is_made_again(tmp_path: Path) -> None:
    """A blob whose size is not that of its record is not the layer."""
    store, calls = Store(tmp_path), []

    def write(part: Path) -> Layer:
        part.write_bytes(b"layer")
        calls.append(part)
        return Layer(digest(b"layer"), 5, "sha256:0", {}, {})

    first = cached.ensure(store, "key", write)
    assert cached.ensure(store, "key", write) == first
    assert len(calls) == 1
    store.blob(first.digest).write_bytes(b"lay")
    assert cached.ensure(store, "key", write) == first
    assert len(calls) == 2
    assert store.blob(first.digest).read_bytes() == b"layer"


def test_an_unreadable_record_counts_as_none(tmp_path: Path) -> None:
    """What it described is made again."""
    store = Store(tmp_path)
    store.write_record("picks", "key", {"a": 1})
    assert store.record("picks", "key") == {"a": 1}
    (tmp_path / "picks" / "key.json").write_text('{"a"')
    assert store.record("picks", "key") is None
