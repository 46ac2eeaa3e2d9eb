"""torch's libraries and the GPUs as torch sees them, judged from facts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verify.checks.test_image import is_failure
from tests.verify.suite import CLAIMS, NO_CLAIMS
from verify.checks.driver import gpu
from verify.checks.image import torch_libs
from verify.model import Owner, Status

P = Status.PASS
GB = 1 << 30
CARD = {"index": 0, "name": "Card 9000", "capability": "8.6", "memory_bytes": 24 * GB, "free_bytes": 23 * GB}
GIVEN: dict[str, Any] = {
    "nodes": ["/dev/nvidia0"],
    "libraries": ["libcuda.so.1"],
    "gpus": [CARD],
    "archs": ["sm_80", "sm_90"],
    "error": "",
    "count": 1,
}
NOTHING = {"nodes": [], "libraries": [], "host_driver": "", "visible": "all"}


@pytest.mark.parametrize("evaluate", [gpu.evaluate_start, gpu.evaluate_devices, gpu.evaluate_arch, gpu.evaluate_memory])
def test_gpus_pass_where_they_are_and_are_skipped_where_none_is(evaluate: Any) -> None:
    """One whole GPU passes every check; without a sign of one each is skipped."""
    assert evaluate(GIVEN, CLAIMS).status is P
    assert evaluate(NOTHING, CLAIMS).status is Status.SKIP


def test_torchs_own_words_are_kept_and_explained() -> None:
    """The code in torch's message has its meaning's owner and remedy."""
    error = "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
    verdict = gpu.evaluate_start({**GIVEN, "error": error}, CLAIMS)
    assert is_failure(verdict, "system not yet initialized", "fabricmanager")
    assert verdict.owner is Owner.HOST
    own = gpu.evaluate_start({**GIVEN, "error": "No CUDA GPUs are available"}, CLAIMS)
    assert is_failure(own, "verify --only torch,lock")
    assert own.owner is Owner.IMAGE
    assert is_failure(gpu.evaluate_start({**GIVEN, "count": 0}, CLAIMS), "finds no GPU")


def test_a_long_message_is_cut_to_the_drivers_words() -> None:
    """torch wraps the driver's error in advice about something else."""
    long = RuntimeError("Unexpected error. Did you run something? Error 802: system not yet initialized\nmore")
    assert gpu.reason(long) == "Error 802: system not yet initialized"
    assert gpu.reason(RuntimeError("No CUDA GPUs are available")) == "No CUDA GPUs are available"


def test_fewer_gpus_than_were_given_fail() -> None:
    """Two device nodes and one usable GPU is a hidden GPU."""
    facts = {**GIVEN, "nodes": ["/dev/nvidia0", "/dev/nvidia1"]}
    assert is_failure(gpu.evaluate_devices(facts, CLAIMS), "2 GPUs were given, torch uses 1")
    assert is_failure(gpu.evaluate_devices({**GIVEN, "gpus": []}, CLAIMS), "no GPU")


def test_a_scheduler_may_give_fewer_than_there_are() -> None:
    """CUDA_VISIBLE_DEVICES with one entry beside two nodes is a choice; MIG shows one instance."""
    two = {**GIVEN, "nodes": ["/dev/nvidia0", "/dev/nvidia1"]}
    assert gpu.evaluate_devices({**two, "cuda_visible": "1"}, CLAIMS).status is P
    assert gpu.evaluate_devices({**two, "gpus": [{**CARD, "name": "Card 9000 MIG 1g"}]}, CLAIMS).status is P


def test_a_gpu_that_does_not_answer_is_named() -> None:
    """One busy GPU does not hide the other's facts, and its error is the failure's words."""
    facts = {**GIVEN, "gpus": [CARD, {"index": 1, "error": "CUDA error: busy"}]}
    assert is_failure(gpu.evaluate_devices(facts, CLAIMS), "GPU 1: CUDA error: busy")
    assert gpu.evaluate_memory(facts, CLAIMS).status is P
    assert gpu.evaluate_arch(facts, CLAIMS).status is P


def test_names_and_memory_are_shown_on_a_pass() -> None:
    """What was measured is shown, and handed to the report's host facts."""
    verdict = gpu.evaluate_devices(GIVEN, CLAIMS)
    assert verdict.observed == "1: Card 9000 (8.6, 24 GB)"
    assert verdict.data["gpus"] == [CARD]


@pytest.mark.parametrize(("capability", "words"), [("5.2", "v-old"), ("12.0", "no published line")])
def test_a_gpu_without_code_fails_with_a_tag_that_has_it(capability: str, words: str) -> None:
    """A dropped generation gets the older tag, one too new gets an honest no."""
    facts = {**GIVEN, "gpus": [{**CARD, "capability": capability}]}
    assert is_failure(gpu.evaluate_arch(facts, CLAIMS), capability, words)


def test_memory_that_others_hold() -> None:
    """Less than a fifth free is worth a note on a shared machine; less than 1 GB is not enough for anything."""
    shared = gpu.evaluate_memory({**GIVEN, "gpus": [{**CARD, "free_bytes": 2 * GB}]}, CLAIMS)
    assert shared.status is P
    assert "2 GB of 24 GB free; others use most of GPU 0: nvidia-smi" in shared.observed
    assert is_failure(gpu.evaluate_memory({**GIVEN, "gpus": [{**CARD, "free_bytes": GB // 2}]}, CLAIMS), "nvidia-smi")


@pytest.mark.parametrize(
    ("runtime", "compiled", "fails"),
    [
        ([77, 6, 5], [77, 6, 5], False),
        ([77, 6, 5], [77, 4, 0], False),
        ([77, 6, 5], [77, 7, 0], True),
        ([77, 6, 5], [76, 6, 5], True),
        ([77, 6, 4], [77, 6, 4], True),
    ],
)
def test_cudnn_is_the_claimed_one_and_not_older_than_compiled(
    runtime: list[int], compiled: list[int], fails: bool
) -> None:
    """torch's rule is the same major and no older minor; the claim is exact."""
    verdict = torch_libs.evaluate_cudnn({"built": True, "runtime": runtime, "compiled": compiled}, CLAIMS)
    assert (verdict.status is Status.FAIL) is fails
    assert "77.6" in verdict.observed


def test_torch_without_cudnn_or_nccl_fails() -> None:
    """A build without them is not the claimed one."""
    assert is_failure(torch_libs.evaluate_cudnn({"built": False}, CLAIMS), "without cuDNN")
    assert is_failure(torch_libs.evaluate_nccl({"available": False}, CLAIMS), "without NCCL")


def test_nccl_is_compared_with_the_claim() -> None:
    """Another NCCL, found first or preloaded, fails inside an image and is shown outside."""
    assert torch_libs.evaluate_nccl({"available": True, "version": [66, 5, 4]}, CLAIMS).status is P
    assert is_failure(torch_libs.evaluate_nccl({"available": True, "version": [66, 5, 3]}, CLAIMS), "NCCL 66.5.3")
    assert torch_libs.evaluate_nccl({"available": True, "version": [1, 2, 3]}, NO_CLAIMS).status is P


def test_the_arch_list_equals_the_claim() -> None:
    """Order does not matter, an entry more or less does, and none at all is a CPU build."""
    assert torch_libs.evaluate_archs({"archs": ["sm_90", "sm_80"]}, CLAIMS).status is P
    assert is_failure(torch_libs.evaluate_archs({"archs": ["sm_90"]}, CLAIMS), "sm_90")
    assert is_failure(torch_libs.evaluate_archs({"archs": []}, NO_CLAIMS), "no CUDA code")


def test_a_missing_symbol_version_names_the_standard_library_that_was_found() -> None:
    """Which libstdc++ came first and the newest version it offers (C51); other errors are left alone."""
    facts = {"stdcxx": "/old/libstdc++.so.6", "glibcxx": "GLIBCXX_3.4.19"}
    error = "ImportError: /old/libstdc++.so.6: version `GLIBCXX_3.4.26' not found"
    told = torch_libs.evaluate_import({"error": error, **facts}, CLAIMS)
    assert is_failure(told, "(found first: /old/libstdc++.so.6, up to GLIBCXX_3.4.19)")
    assert "found first" not in torch_libs.evaluate_import({"error": "ImportError: no", **facts}, CLAIMS).observed


@pytest.mark.parametrize(
    ("facts", "owner"),
    [
        ({"error": "ImportError: undefined symbol: ncclX"}, Owner.START),
        ({"error": "ModuleNotFoundError: No module named 'torch'"}, Owner.IMAGE),
        ({"crash": "SIGILL"}, Owner.IMAGE),
    ],
)
def test_an_import_that_fails_keeps_its_text(facts: dict[str, str], owner: Owner) -> None:
    """The error's own words, or the signal's name, are what was observed."""
    verdict = torch_libs.evaluate_import(facts, CLAIMS)
    assert is_failure(verdict, next(iter(facts.values())))
    assert verdict.owner is owner
