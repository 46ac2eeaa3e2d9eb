"""The computing checks accept right values only; each of them is seen to fail once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.verify.suite import CLAIMS, NO_CLAIMS
from verify.checks.compute import compile, dataloader, gpu, libraries, matmul, operators
from verify.model import Check, Facts, Isolation, Owner, Status, Verdict

MIB = 2**20
MODULES = (libraries, matmul, operators, dataloader, compile, gpu)
CHECKS: dict[str, Check] = {check.id: check for module in MODULES for check in module.CHECKS}
BLOCK = {"device": "cuda:0", "free": 900 * MIB, "total": 999 * MIB, "wrong": 0, "held": 256 * MIB, "kept": 0}
PRODUCT: dict[str, Any] = {"device": "cuda:0", "name": "Fake", "errors": {"fp32": 1e-7, "bf16": 2e-3, "fp16": 2e-4}}

KEPT: dict[str, Any] = {"device": "cpu", "bytes": 99, "loaded": True, "again": True}

GOOD: dict[str, Facts] = {
    "numpy-bridge": {"version": "9", "shared": True, "back": [[0.0, 2.0, 4.0], [6.0, 8.0, 84.0]]},
    "torchvision-nms": {"version": "9", "kept": [0, 2]},
    "torchaudio-resample": {"version": "9", "worst": 3e-4},
    "torchaudio-wav": {"codec": True, "rate": 16000, "worst": 3e-5},
    "matmul-cpu": {"devices": [PRODUCT]},
    "matmul-gpu": {"devices": [PRODUCT, {**PRODUCT, "errors": {**PRODUCT["errors"], "bf16": None, "tf32": 4e-4}}]},
    "shm-dataloader": {"shm_mib": 1024, "mib": 128, "wrong": 0, "shared": True},
    "torch-compile": {"device": "cpu", "difference": 1e-7, "files": 6},
    "torch-compile-gpu": {"device": "cuda:0", "difference": 0.0, "files": 6},
    "cuda-memory": {"devices": [BLOCK]},
    "nccl-one-rank": {"version": "9.9", "equal": True},
    "operators-cpu": {"devices": {"cpu": {"lstm": {"fp32": 1e-7, "bf16": 5e-3}}}},
    "operators-gpu": {"devices": {"cuda:0": {"lstm": {"fp32": 1e-7, "tf32": 1e-3}}}},
    "checkpoint-cpu": KEPT,
    "checkpoint-gpu": {**KEPT, "device": "cuda:0"},
    "cuda-errors": {"raised": "CUDA error 710: device-side assert triggered"},
}
BAD: list[tuple[str, Facts]] = [
    ("numpy-bridge", {**GOOD["numpy-bridge"], "shared": False}),
    ("numpy-bridge", {**GOOD["numpy-bridge"], "back": [[0.0]]}),
    ("torchvision-nms", {"version": "9", "kept": [0, 1, 2]}),
    ("torchaudio-resample", {"version": "9", "worst": 0.5}),
    ("torchaudio-resample", {"version": "9", "worst": float("nan")}),
    ("torchaudio-wav", {"codec": True, "rate": 16000, "worst": float("nan")}),
    ("torchaudio-wav", {"codec": True, "rate": 8000, "worst": 0.0}),
    ("torchaudio-wav", {"codec": True, "error": "RuntimeError: Could not load libtorchcodec"}),
    ("matmul-cpu", {"devices": [{**PRODUCT, "errors": {"fp32": 1e-3}}]}),
    ("matmul-cpu", {"devices": [{**PRODUCT, "errors": {"fp32": float("nan")}}]}),
    ("matmul-gpu", {"devices": [PRODUCT, {**PRODUCT, "device": "cuda:1", "errors": {"fp16": 0.1}}]}),
    ("matmul-gpu", {"devices": [{**PRODUCT, "errors": {"fp32": None}}]}),
    ("matmul-gpu", {"devices": [{**PRODUCT, "errors": {**PRODUCT["errors"], "tf32": 0.1}}]}),
    ("matmul-gpu", {"devices": []}),
    ("torch-compile", {"device": "cpu", "difference": 0.1, "files": 6}),
    ("torch-compile", {"device": "cpu", "difference": 0.0, "files": 0}),
    ("cuda-memory", {"devices": [{**BLOCK, "wrong": 1}]}),
    ("cuda-memory", {"devices": [BLOCK, {**BLOCK, "kept": MIB}]}),
    ("cuda-memory", {"devices": [{**BLOCK, "held": MIB}]}),
    ("cuda-memory", {"devices": []}),
    ("nccl-one-rank", {"version": "9.9", "equal": False}),
    ("operators-cpu", {"devices": {"cpu": {"lstm": {"fp32": float("nan")}}}}),
    ("operators-gpu", {"devices": {"cuda:0": {"lstm": {"fp32": 1e-7, "tf32": 0.1}}}}),
    ("checkpoint-cpu", {**KEPT, "loaded": False}),
    ("checkpoint-gpu", {**KEPT, "again": False}),
    ("cuda-errors", {"raised": ""}),
]
GPU = [check for check in CHECKS.values() if check.level.value == "gpu"]


def judge(check_id: str, facts: Facts) -> Verdict:
    return CHECKS[check_id].evaluate(facts, NO_CLAIMS)


def test_every_check_has_its_example() -> None:
    """And runs with torch in a child of its own."""
    assert set(GOOD) == set(CHECKS)
    assert {check.isolation for check in CHECKS.values()} == {Isolation.TORCH}


@pytest.mark.parametrize("check_id", GOOD)
def test_right_values_pass_and_are_shown(check_id: str) -> None:
    """A pass says what was measured and what was expected."""
    verdict = judge(check_id, GOOD[check_id])
    assert verdict.status is Status.PASS
    assert any(letter.isdigit() for letter in verdict.observed)
    assert verdict.expected


@pytest.mark.parametrize(("check_id", "facts"), BAD)
def test_wrong_values_fail_with_a_remedy_and_an_owner(check_id: str, facts: Facts) -> None:
    """No wrong value is let through."""
    verdict = judge(check_id, facts)
    assert verdict.status is Status.FAIL
    assert verdict.remedy
    assert verdict.owner


@pytest.mark.parametrize("check_id", CHECKS)
def test_an_error_is_a_failure_with_its_text(check_id: str) -> None:
    """What broke is the thing that was checked."""
    verdict = judge(check_id, {"error": "RuntimeError: it broke"})
    assert verdict.status is Status.FAIL
    assert "it broke" in verdict.observed
    assert verdict.remedy
    assert verdict.owner


@pytest.mark.parametrize("check_id", ["numpy-bridge", "torchvision-nms", "torchaudio-resample"])
def test_a_package_that_nobody_claims_may_be_absent(check_id: str) -> None:
    """In an image of somebody else it is skipped; where the image claims it, its absence is a failure."""
    facts = {"absent": "torch"}
    assert judge(check_id, facts).status is Status.SKIP
    verdict = CHECKS[check_id].evaluate(facts, CLAIMS)
    assert (verdict.status, verdict.observed) == (Status.FAIL, "torch is not installed")


def test_audio_files_are_only_asked_of_an_image_that_has_a_codec() -> None:
    """Without torchcodec it is skipped with another way to read them; one that fails is whoever installed it."""
    error = {"error": "ImportError: TorchCodec is required for save_with_torchcodec"}
    bare = judge("torchaudio-wav", {"codec": False, **error})
    assert bare.status is Status.SKIP
    assert "scipy.io.wavfile" in bare.remedy
    broken = judge("torchaudio-wav", {"codec": True, **error})
    assert (broken.status, broken.owner) == (Status.FAIL, Owner.START)
    assert "ffmpeg" in broken.remedy


def test_a_wrong_device_is_named() -> None:
    """Among several the bad one."""
    facts = next(facts for check_id, facts in BAD if check_id == "matmul-gpu")
    assert judge("matmul-gpu", facts).observed.startswith("wrong on cuda:1:")


@pytest.mark.parametrize(
    ("error", "owner"),
    [
        ("ModuleNotFoundError: No module named 'torchvision'", Owner.IMAGE),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", Owner.IMAGE),
        ("OutOfMemoryError: CUDA out of memory", Owner.HOST),
    ],
)
def test_known_error_texts_have_their_own_owner(error: str, owner: Owner) -> None:
    """Whatever the check."""
    assert judge("matmul-gpu", {"error": error}).owner is owner


@pytest.mark.parametrize("check", GPU, ids=lambda check: str(check.id))
def test_gpu_checks_are_skipped_without_a_sign_of_a_gpu(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe looks for a sign before torch is touched, and never measures the CPU instead."""
    monkeypatch.setattr("verify.checks.compute.common.gpu_signs", lambda: {"nodes": [], "libraries": []})
    verdict = check.evaluate(check.probe(), NO_CLAIMS)
    assert verdict.status is Status.SKIP
    assert "no GPU" in verdict.observed


@pytest.mark.parametrize("check", GPU, ids=lambda check: str(check.id))
def test_gpu_checks_fail_on_a_sign_without_a_working_gpu(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device node alone is no GPU: torch's own error is the answer."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    signs = {"nodes": ["/dev/nvidia0"], "libraries": []}
    monkeypatch.setattr("verify.checks.compute.common.gpu_signs", lambda: signs)
    assert check.evaluate(check.probe(), NO_CLAIMS).status is Status.FAIL


PROBES: list[tuple[str, Callable[[], Facts]]] = [
    ("numpy-bridge", libraries.probe_numpy),
    ("torchvision-nms", libraries.probe_torchvision),
    ("torchaudio-resample", libraries.probe_torchaudio),
    ("matmul-cpu", matmul.probe_cpu),
]


@pytest.mark.parametrize(("check_id", "probe"), PROBES)
def test_the_real_probe_passes_here(check_id: str, probe: Callable[[], Facts]) -> None:
    """With the torch of this environment."""
    pytest.importorskip("torchaudio")
    assert judge(check_id, probe()).status is Status.PASS


def test_a_disturbed_product_is_outside_the_bound() -> None:
    """One changed element of 65536 is enough in fp32, and so is one NaN."""
    torch = pytest.importorskip("torch")
    true = torch.randn(256, 256, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for disturbance in (0.1, float("nan"), float("inf")):
        found = true.clone()
        found[3, 4] += disturbance
        assert matmul.relative_error(found, true) > matmul.TOLERANCES["fp32"]


def test_a_gpu_that_triton_does_not_support_is_skipped() -> None:
    """Pascal and Maxwell: neither the image's fault nor a pass."""
    verdict = judge("torch-compile-gpu", {"capability": [6, 1]})
    assert verdict.status is Status.SKIP
    assert "compute capability 6.1, triton needs 7.0" in verdict.observed
    assert judge("torch-compile-gpu", {**GOOD["torch-compile-gpu"], "capability": [7, 0]}).status is Status.PASS


@pytest.mark.parametrize("text", compile.NO_COMPILER)
def test_a_missing_compiler_is_named(text: str) -> None:
    """Whatever of its messages torch gives."""
    verdict = judge("torch-compile", {"error": f"InductorError: {text}: (None, 'g++')\n\nlong advice"})
    assert "compiler is missing" in verdict.remedy
    assert "\n" not in verdict.observed


def test_a_codec_that_is_not_installed_fails_no_group() -> None:
    """verify --only libraries passes without torchcodec; only its own id asks for it."""
    verdict = judge("torchaudio-wav", {"codec": False, "error": "ImportError: TorchCodec is required"})
    assert verdict.status is Status.SKIP
    assert verdict.data == {"inapplicable": True}
