"""A required GPU that is not there ends the run at once: exit 3, the way out named, nothing computed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.faults.stubs import compile_stub
from tests.verify.suite import NO_CLAIMS, fake, verify
from verify.engine.early import without_required_gpu
from verify.engine.profiles import Plan, find_profile, plan_profile
from verify.engine.registry import CHECKS
from verify.model import Level

GPU_FREE = not list(Path("/dev").glob("nvidia*"))
pytestmark = pytest.mark.skipif(not GPU_FREE, reason="this machine has a GPU")


@pytest.mark.parametrize("words", [["--require", "gpu"], ["--profile", "gpu"], ["--require", "cuda-init"]])
def test_it_takes_a_moment_and_says_how_to_go_on(words: list[str]) -> None:
    """Within the five seconds in which nobody has begun to load data, on a busy machine too."""
    started = time.monotonic()
    ended = verify(*words, "--json", "-")
    assert time.monotonic() - started < 5
    report = json.loads(ended.stdout)
    assert ended.returncode == 3
    for text in ("No GPU was given to this container", "--gpus all", "verify --profile cpu"):
        assert text in report["result"]["verdict"]
    assert report["counts"] == {"pass": 0, "fail": 0, "skip": len(report["findings"]), "unknown": 0}
    waiting = next(f for f in report["findings"] if f["level"] == "cpu")
    assert waiting["observed"] == "not run: a required GPU is not here"
    assert "A required check was skipped" not in report["result"]["verdict"]


def test_a_run_that_requires_no_gpu_goes_on() -> None:
    """The default profile without a GPU, and any plan whose GPU checks are advice."""
    plan = plan_profile(find_profile("default"), CHECKS, NO_CLAIMS, (), 0)
    assert without_required_gpu(plan) == []
    checks = [fake("a"), fake("g", level=Level.GPU)]
    assert without_required_gpu(Plan("x", checks, frozenset({"a"}))) == []
    assert [f.check for f in without_required_gpu(Plan("x", checks, frozenset({"g"})))] == ["a", "g"]


def test_any_sign_of_a_gpu_lets_the_chain_speak(tmp_path: Path) -> None:
    """A broken driver is a failure with its own words, not an absence."""
    folder = compile_stub(tmp_path).parent
    ended = verify("--only", "driver", "--quiet", LD_LIBRARY_PATH=str(folder), STUB_CUINIT="802")
    assert ended.returncode == 1
    assert "not run" not in ended.stdout
