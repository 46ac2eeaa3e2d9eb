"""DataParallel's result is compared with one device's; a wrapper that loses samples or gradients is found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verify.checks.test_image import is_failure
from tests.verify.suite import CLAIMS
from verify.checks.distributed.data_parallel import CHECKS, compare, evaluate
from verify.model import Level, Status

GOOD: dict[str, Any] = {"count": 2, "devices": ["cuda:0", "cuda:1"], "output": 1e-7, "gradient": 1e-8}


def test_equal_results_on_all_gpus_pass_with_the_differences() -> None:
    """Recorded facts of two GPUs; it needs several GPUs and is told so with one."""
    verdict = evaluate(GOOD, CLAIMS)
    assert verdict.status is Status.PASS
    assert verdict.observed == "2 of 2 GPUs took part, outputs differ by 1.0e-07, gradients by 1.0e-08"
    assert evaluate({"count": 1}, CLAIMS).status is Status.SKIP
    assert CHECKS[0].level is Level.MULTI_GPU


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"output": 0.1}, "outputs differ by 1.0e-01"),
        ({"gradient": float("nan")}, "gradients by nan"),
        ({"devices": ["cuda:0"]}, "1 of 2 GPUs took part"),
        ({"error": "RuntimeError: NCCL Error 2: unhandled system error"}, "unhandled system error"),
    ],
)
def test_a_difference_an_idle_gpu_or_an_error_fails(changes: dict[str, Any], words: str) -> None:
    """Each alone."""
    assert is_failure(evaluate({**GOOD, **changes}, CLAIMS), words)


def test_the_comparison_finds_a_wrapper_that_loses_something() -> None:
    """On the CPU, where DataParallel is the module itself; half a batch, or half a gradient, is a difference."""
    torch = pytest.importorskip("torch")
    same = compare(torch.nn.DataParallel, "cpu", 2)
    assert (same["devices"], same["output"], same["gradient"]) == (["cpu"], 0.0, 0.0)

    def half_batch(module: Any) -> Any:
        return lambda data: torch.cat([module(data[:8]), torch.zeros(8, 4)])

    def no_gradient(module: Any) -> Any:
        return lambda data: torch.cat([module(data[:8]), module(data[8:]).detach()])

    assert compare(half_batch, "cpu", 2)["output"] > 1e-3
    lost = compare(no_gradient, "cpu", 2)
    assert lost["output"] <= 1e-6
    assert lost["gradient"] > 1e-3
