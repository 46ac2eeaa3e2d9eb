"""Locks: stamped, hashed, without addresses, and refused when stale."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue.lock import LockSet
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.building.lock import pythons
from tests.refusals import refused


@pytest.fixture
def copied(table: Catalogue, tmp_path: Path) -> LockSet:
    """The default line's locks in a folder that a test may spoil."""
    shutil.copytree(paths.LOCKS, tmp_path / "locks")
    return LockSet(table, table.default_line, table.os[table.default_os].python, tmp_path / "locks")


def test_every_committed_lock_fits_the_catalogue(table: Catalogue) -> None:
    """`gpuyard lock --check` would pass for every line."""
    for line in table.line:
        LockSet(table, line, table.os[table.default_os].python).refuse_stale()


def test_every_requirement_is_pinned_with_hashes_and_no_address() -> None:
    """A lock names versions and SHA-256 hashes, and no place to download from."""
    for path in paths.LOCKS.glob("*.txt"):
        text = path.read_text()
        assert "://" not in text
        blocks = re.findall(r"^[a-z0-9].*(?:\n[ \t]+.*)*", text, flags=re.MULTILINE)
        assert blocks
        assert all(re.match(r"^[a-z0-9._-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", b, flags=re.DOTALL) for b in blocks)


def test_layers_share_no_package(table: Catalogue) -> None:
    """A package is in one layer only, so no layer hides files of another."""
    for line in table.line:
        locks = LockSet(table, line, table.os[table.default_os].python)
        names = [name for layer in locks.layers for name in locks.packages([layer])]
        assert len(names) == len(set(names))


def test_a_changed_requirement_makes_the_lock_stale(copied: LockSet) -> None:
    """A lock made from other inputs is refused, with the command that makes it again."""
    path = copied.path("torch")
    path.write_text(path.read_text().replace(copied.stamp, "sha256:" + "0" * 64))
    with refused("lock-stale", path.name, "sha256:" + "0" * 64, f"gpuyard lock {copied.line}"):
        copied.refuse_stale()


def test_a_missing_lock_is_named(copied: LockSet) -> None:
    """A lock that is not there is named, with the command that makes it."""
    copied.path("cuda").unlink()
    with refused("lock-stale", "cuda.txt", f"gpuyard lock {copied.line}"):
        copied.refuse_stale()


def test_the_stamp_depends_on_what_is_resolved(table: Catalogue) -> None:
    """Another line or another Python has another stamp."""
    stamps = {LockSet(table, line, python).stamp for line in table.line for python in ("3.12", "3.13")}
    assert len(stamps) == 2 * len(table.line)


def test_a_lock_edited_by_hand_is_refused(copied: LockSet) -> None:
    """A package taken out of a lock is noticed, whatever its stamp says."""
    path = copied.path("torch")
    path.write_text(path.read_text().replace("numpy==", "numpie==", 1))
    with refused("lock-edited", path.name):
        copied.refuse_stale()


def test_a_compilers_lock_has_a_stamp_of_its_own(table: Catalogue) -> None:
    """What a -devel image adds can change without making the locks below it stale."""
    line = next(name for name in table.line if table.line[name].toolkit)
    locks = LockSet(table, line, table.os[table.default_os].python)
    row = table.line[line].model_copy(update={"toolkit": ("another",)})
    other = table.model_copy(update={"line": {**table.line, line: row}})
    changed = LockSet(other, line, locks.python)
    assert changed.stamp == locks.stamp
    assert changed.stamp_of("devel") != locks.stamp_of("devel")
    assert changed.stamp_of("torch") == locks.stamp_of("torch")


def test_a_compiler_is_of_its_lines_cuda(table: Catalogue) -> None:
    """nvcc, cicc and the headers are of one CUDA release: torch's."""
    for name, row in table.line.items():
        locks = LockSet(table, name, table.os[table.default_os].python)
        if "devel" in locks.layers:
            found = locks.packages(["devel"])
            assert {found[part].rsplit(".", 1)[0] for part in row.toolkit} == {row.cuda}
            assert "ninja" in found
        else:
            assert not locks.path("devel").exists()


def test_a_declared_system_is_named_in_the_command_that_locks_for_it(table: Catalogue, tmp_path: Path) -> None:
    """Its Python has no locks here; the way to them is in the refusal, and the command knows the system."""
    name, system = next((n, s) for n, s in table.os.items() if not s.built)
    locks = LockSet(table, table.default_line, system.python, tmp_path)
    with refused("lock-stale", f"gpuyard lock {table.default_line} --os {name}"):
        locks.refuse_stale()
    assert pythons(table, name) == [system.python]
    with refused("os-unknown", "alpine", code=2):
        pythons(table, "alpine")
