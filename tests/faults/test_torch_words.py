"""What the genuine CUDA wheel says about each code of a stand-in driver, against what verify makes of it."""

from __future__ import annotations

import json

import pytest

from tests.containers import Run
from tests.faults.conftest import VerifyWith
from verify.checks.compute.compile import NO_COMPILER
from verify.checks.compute.dataloader import TOO_SMALL, evaluate
from verify.model import Claims, Status

pytestmark = [pytest.mark.image, pytest.mark.full]
ASK = """
import json
from verify.checks.driver.gpu import evaluate_start, probe_start
from verify.claims import load_claims
facts = probe_start()
print(json.dumps({"error": facts["error"], "verdict": evaluate_start(facts, load_claims()).observed}))
"""
WORDS = {
    "34": "Error 34: CUDA driver is a stub library",
    "46": "Error 46: CUDA-capable device(s) is/are busy or unavailable",
    "100": "No CUDA GPUs are available",
    "304": "Error 304: OS call failed or operation not supported on this OS",
    "802": "Error 802: system not yet initialized",
    "803": "Error 803: system has unsupported display driver / cuda driver combination",
    "804": "Error 804: forward compatibility was attempted on non supported HW",
    "999": "CUDA unknown error - this may be due to an incorrectly set up environment",
    "level-11040": "The NVIDIA driver on your system is too old (found version 11040)",
}


@pytest.mark.parametrize("name", WORDS)
def test_torch_says_what_verify_expects(with_fault: VerifyWith, name: str) -> None:
    """Word for word, and the suite's verdict quotes it."""
    outcome = with_fault(name, "python", "-c", ASK)
    said = json.loads(outcome.stdout)
    assert said["error"].startswith(WORDS[name])
    assert WORDS[name] in said["verdict"]


def facts_of(run: Run, module: str, probe: str, **options: object) -> dict[str, object]:
    """What a probe of the suite sees when it is run on its own."""
    code = f"import json; from verify.checks.{module} import {probe} as p; print(json.dumps(dict(p())))"
    outcome = run("/opt/venv/bin/python", "-c", code, **options)
    seen: dict[str, object] = json.loads(outcome.stdout.splitlines()[-1])
    return seen


def test_torchs_words_for_a_missing_compiler_are_known(run: Run) -> None:
    """No compiler on PATH and none by variable: one of the texts that the suite looks for."""
    said = str(facts_of(run, "compute.compile", "probe_cpu", environment={"PATH": "/opt/venv/bin"})["error"])
    assert any(text in said for text in NO_COMPILER), said


def test_a_full_shared_memory_is_blamed_whatever_torch_says(run: Run) -> None:
    """Docker's 64 MB under two workers: torch's text depends on who meets the end first, the verdict does not."""
    facts = facts_of(run, "compute.dataloader", "probe", shm_size="64m")
    assert any(text in str(facts["error"]) for text in (*TOO_SMALL, "exited unexpectedly")), facts
    verdict = evaluate(facts, Claims({}, {}))
    assert verdict.status is Status.FAIL
    assert verdict.observed.startswith("/dev/shm is too small (64 MiB)")
