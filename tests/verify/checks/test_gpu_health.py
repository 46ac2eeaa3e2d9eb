"""What a GPU says of its own health is asked of NVML and judged; each fault alone fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.stubs import compile_stub
from tests.verify.checks.test_driver import ask
from tests.verify.checks.test_image import is_failure
from tests.verify.suite import CLAIMS
from verify.checks.driver.gpu_health import evaluate
from verify.model import Owner, Status
from verify.probes import libraries

WELL: dict[str, Any] = {"index": 0, "ecc": 0, "remapped": {"pending": 0, "failed": 0}, "slow": 0x1}
SIGNS = {"nodes": ["/dev/nvidia0"], "libraries": []}


def judge(**changes: Any) -> Any:
    """The verdict on two GPUs, of which the second is different."""
    return evaluate({**SIGNS, "devices": [WELL, {**WELL, "index": 1, **changes}]}, CLAIMS)


@pytest.mark.parametrize("changes", [{}, {"ecc": None, "remapped": None, "slow": None}, {"slow": 0x4}])
def test_a_gpu_without_a_fault_passes(changes: dict[str, Any]) -> None:
    """Also one that counts nothing, and one under a power cap."""
    assert judge(**changes).status is Status.PASS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ecc": 3}, "GPU 1: 3 uncorrected memory errors"),
        ({"remapped": {"pending": 1, "failed": 0}}, "waits to be remapped"),
        ({"remapped": {"pending": 0, "failed": 1}}, "remapping a bad memory row failed"),
        ({"slow": 0x40 | 0x8}, "a hardware slowdown, heat"),
        ({"slow": 0x80}, "power brake"),
    ],
)
def test_each_fault_is_named_with_its_gpu(changes: dict[str, Any], words: str) -> None:
    """Whoever runs the host has to act."""
    verdict = judge(**changes)
    assert is_failure(verdict, "GPU 1", words)
    assert verdict.owner is Owner.HOST


def test_a_momentary_slowdown_is_a_note() -> None:
    """A laptop on battery sets such a bit now and then; a node is not drained for it."""
    verdict = judge(slow=0, slow_once=0x8)
    assert verdict.status is Status.PASS
    assert "held down for a moment (GPU 1: a hardware slowdown)" in verdict.observed


def test_a_clock_is_looked_at_again_until_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what lasts over all looks counts; a healthy GPU is looked at once."""
    answers = {"well": [0], "brief": [0x8, 0x8, 0], "hot": [0x40]}
    looks: list[str] = []

    def reasons(_library: Any, handle: str) -> int:
        looks.append(handle)
        return answers[handle].pop(0) if len(answers[handle]) > 1 else answers[handle][0]

    monkeypatch.setattr(libraries, "_reasons", reasons)
    monkeypatch.setattr(libraries, "SLOW_PAUSE", 0)
    assert libraries._slow(None, ["well", "brief"]) == [{"slow": 0, "slow_once": 0}, {"slow": 0, "slow_once": 8}]
    assert looks.count("well") == 3
    assert libraries._slow(None, ["hot"]) == [{"slow": 0x40, "slow_once": 0x40}]
    looks.clear()
    libraries._slow(None, ["well"])
    assert looks == ["well"]


def test_nobody_to_ask_is_no_pass() -> None:
    """A sign of a GPU and an NVML without one is unknown, no sign at all a skip."""
    assert evaluate({**SIGNS, "devices": []}, CLAIMS).status is Status.UNKNOWN
    assert evaluate({"nodes": [], "libraries": []}, CLAIMS).status is Status.SKIP


@pytest.mark.parametrize(
    ("variable", "words"), [("STUB_ECC", "7 uncorrected"), ("STUB_REMAP", "waits"), ("STUB_SLOW", "clock")]
)
def test_the_counters_are_read_through_the_library(tmp_path: Path, variable: str, words: str) -> None:
    """By ctypes, from a stand-in; without a fault it passes."""
    folder = compile_stub(tmp_path, "libnvidia-ml.so.1").parent
    assert ask(folder, "gpu-health")["observed"] == "1 GPUs without a fault, 1 of them count memory errors"
    found = ask(folder, "gpu-health", **{variable: "72" if variable == "STUB_SLOW" else "7"})
    assert found["exit_code"] == 1
    assert words in found["observed"]
