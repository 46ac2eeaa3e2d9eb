"""Layers by their inputs: what is in a key, and that another key is another layer."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuyard.layers import cached, make
from gpuyard.layers.model import Target
from gpuyard.layers.plan import Group
from gpuyard.store.store import Store
from tests.layers import wheels

TARGET = Target("3.13", 1_700_000_000)


def test_a_layer_of_other_code_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer in the store that an older checkout wrote is stale once the code that writes layers has changed."""
    store, group = Store(tmp_path / "store"), Group((wheels.make(tmp_path),))
    made = cached.ensure_wheels(store, group, TARGET, None, None)
    assert cached.known(store, cached.wheels_key(group, TARGET, None)) == made
    monkeypatch.setattr(cached, "code", lambda: "other code")
    assert cached.known(store, cached.wheels_key(group, TARGET, None)) is None


def test_the_checksum_of_the_code_follows_every_file_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed byte in a module, or in the script that compiles, is other code."""
    module, script = tmp_path / "module.py", tmp_path / "compile.sh"
    monkeypatch.setattr(cached, "CODE", (SimpleNamespace(__file__=str(module)),))
    monkeypatch.setattr(make, "COMPILE", script)
    found = set()
    for texts in (("a", "a"), ("b", "a"), ("b", "b")):
        module.write_text(texts[0])
        script.write_text(texts[1])
        found.add(cached.code.__wrapped__())
    assert len(found) == 3


def test_the_key_names_wheels_target_and_python(tmp_path: Path) -> None:
    """Each of them makes another layer."""
    group, other = Group((wheels.make(tmp_path),)), Group((wheels.make(tmp_path, "other"),))
    keys = [
        cached.wheels_key(group, TARGET, "3.13.5"),
        cached.wheels_key(other, TARGET, "3.13.5"),
        cached.wheels_key(group, dataclasses.replace(TARGET, epoch=1), "3.13.5"),
        cached.wheels_key(group, TARGET, "3.13.6"),
    ]
    assert len(set(keys)) == len(keys)
