"""`gpuyard lock`: what each way of calling it writes, asks and refuses."""

from __future__ import annotations

import pytest

from gpuyard.catalogue import lock as catalogue_lock
from gpuyard.catalogue.lock import LockSet, entries
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.building.lock import lock
from gpuyard.errors import UserError
from tests.refusals import refused


@pytest.fixture
def locks(table: Catalogue, monkeypatch: pytest.MonkeyPatch) -> LockSet:
    """The default line's committed locks, which no test may write."""
    for name in ("write", "write_devel"):
        monkeypatch.setattr(LockSet, name, lambda _: pytest.fail("a lock was written"))
    return LockSet(table, table.default_line, table.os[table.default_os].python)


def offering(locks: LockSet, monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """Indexes that resolve to what the locks have, but for these packages."""
    texts = (locks.path(layer).read_text() for layer in ("cuda", "torch", "workbench"))
    found = {name: version for text in texts for name, version, _ in entries(text)}
    text = "".join(f"{name}=={version}\n" for name, version in {**found, **changed}.items() if version)
    monkeypatch.setattr(catalogue_lock, "compile_", lambda *_: text)


def test_a_check_asks_no_index(locks: LockSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """It compares the locks with the catalogue alone, and says no more than that."""
    monkeypatch.setattr(catalogue_lock, "compile_", lambda *_: pytest.fail("an index was asked"))
    lock(locks.line, check=True)


def test_locks_of_today_are_not_outdated(
    locks: LockSet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same versions: exit 0."""
    offering(locks, monkeypatch)
    lock(locks.line, outdated=True)
    assert locks.line in capsys.readouterr().out


def test_outdated_locks_are_refused_with_every_package(locks: LockSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer release, a package that nothing needs any more, and a new one."""
    numpy = locks.packages(["torch"])["numpy"]
    offering(locks, monkeypatch, numpy="99.1", pandas="", newcomer="1.0")
    with refused("lock-outdated", f"numpy {numpy} -> 99.1", "newcomer (new) -> 1.0", "pandas", "3 packages"):
        lock(locks.line, outdated=True)


def test_without_an_index_nothing_is_called_current(locks: LockSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv's failure is the command's."""

    def silent(*_: object) -> str:
        raise UserError("program-failed", "uv pip compile failed")

    monkeypatch.setattr(catalogue_lock, "compile_", silent)
    with refused("program-failed"):
        lock(locks.line, outdated=True)
