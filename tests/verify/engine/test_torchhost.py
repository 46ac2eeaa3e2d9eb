"""Torch is imported once, in a process that answers for every probe."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.verify.suite import CLAIMS, fake, gone
from verify.engine import torchhost
from verify.engine.run import INTERRUPTED, run_checks
from verify.model import Check, Facts, Isolation, Status


def torch_fake(check_id: str, probe: object, **changes: object) -> Check:
    return fake(check_id, probe, isolation=Isolation.TORCH, **changes)


def see() -> Facts:
    return {"ok": "torch" in sys.modules, "parent": os.getppid(), "pid": os.getpid()}


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the unit tests fast: the host imports nothing."""
    monkeypatch.setattr(torchhost, "_import_torch", lambda: None)


def test_probes_share_one_import() -> None:
    """Two probes find torch in memory and have one parent, which is not this process."""
    pytest.importorskip("torch")
    before = "torch" in sys.modules
    found = run_checks([torch_fake("a", see), torch_fake("b", see)], set(), CLAIMS)
    assert [f.verdict.status for f in found] == [Status.PASS, Status.PASS]
    parents = {f.verdict.observed.split("'parent': ")[1].split(",")[0] for f in found}
    assert len(parents) == 1
    assert str(os.getpid()) not in parents
    assert ("torch" in sys.modules) is before


@pytest.mark.usefixtures("no_torch")
def test_a_crashed_probe_leaves_the_host_alive() -> None:
    """The probe after a crash still gets its answer."""
    die = torch_fake("a", lambda: os.kill(os.getpid(), signal.SIGSEGV))
    found = run_checks([die, torch_fake("b", lambda: {"ok": True})], set(), CLAIMS)
    assert found[0].verdict.observed == "the probe was killed by SIGSEGV"
    assert found[1].verdict.status is Status.PASS


@pytest.mark.usefixtures("no_torch")
def test_a_hanging_probe_is_killed_by_the_host() -> None:
    """The timeout counts inside the host, too."""
    hang = torch_fake("a", lambda: time.sleep(60), timeout=0.3)
    found = run_checks([hang, torch_fake("b", lambda: {"ok": True})], set(), CLAIMS)
    assert found[0].verdict.observed == "timed out after 0.3 s"
    assert found[1].verdict.status is Status.PASS


def test_what_is_imported_is_no_work_for_the_collector_which_goes_on_afterwards() -> None:
    """Off meanwhile, then on, and blind to what was there; also where the import fails."""
    try:
        with pytest.raises(ImportError), torchhost.uncollected():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_an_import_that_kills_the_host_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every probe below the dead host is told by which signal it died."""
    monkeypatch.setattr(torchhost, "_import_torch", lambda: os.kill(os.getpid(), signal.SIGILL))
    found = run_checks([torch_fake("torch-import", see), torch_fake("b", see)], set(), CLAIMS)
    assert found[0].verdict.observed == "the probe was killed by SIGILL"
    assert found[1].verdict.observed == "blocked by torch-import"


def test_an_import_that_hangs_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import has its own limit."""
    monkeypatch.setattr(torchhost, "_import_torch", lambda: time.sleep(60))
    monkeypatch.setattr(torchhost, "IMPORT_TIMEOUT", 0.3)
    found = run_checks([torch_fake("torch-import", see)], set(), CLAIMS)
    assert found[0].verdict.status is Status.UNKNOWN
    assert "timed out" in found[0].verdict.observed


@pytest.mark.usefixtures("no_torch")
def test_an_interrupt_ends_what_a_probe_started(tmp_path: Path) -> None:
    """A process that a torch probe started is gone with the run, not only the probe."""
    note = tmp_path / "pid"

    def start() -> Facts:
        note.write_text(str(subprocess.Popen(["sleep", "60"]).pid))
        time.sleep(60)
        return {}

    def interrupt(_number: int, _frame: object) -> None:
        if note.exists() and note.read_text():
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        found = run_checks([torch_fake("torch-import", start)], set(), CLAIMS)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert found[0].verdict.observed == INTERRUPTED
    assert gone(int(note.read_text()))
