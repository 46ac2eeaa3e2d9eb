"""No check can only pass: each has facts that it passes on and facts that it fails on, by its own evaluation."""

from __future__ import annotations

import pytest

from tests.verify.checks import test_compute, test_container, test_driver, test_gpu
from tests.verify.checks.test_data_parallel import GOOD as SPLIT
from tests.verify.checks.test_distributed import RANK, gpus, ranks
from tests.verify.checks.test_gpu_health import SIGNS, WELL
from tests.verify.checks.test_image import GOOD as INSTALLED
from tests.verify.checks.test_image import GOOD_TORCH
from tests.verify.checks.test_native import NVCC
from tests.verify.checks.test_train import TRACE
from tests.verify.reference.test_generators import SPEED
from tests.verify.suite import CLAIMS
from verify.engine.registry import CHECKS
from verify.model import Check, Claims, Facts, Status

LOCK = Claims({**CLAIMS.image, "packages": {"torch": "9.9.9"}}, CLAIMS.tables)
PACKAGES = {"installed": {"torch": "9.9.9"}, "version_file": GOOD_TORCH}
DRIVER, CARD, GIVEN = test_driver.GIVEN, test_gpu.CARD, test_gpu.GIVEN
CONTEXT = {**DRIVER, "trouble": None, "devices": [{"index": 0, "call": "", "code": 0, "held": True}]}
NO_BAND = {"nodes": [], "error": "", "usable": 0}
SHM, LIMITS = test_container.SHM, test_container.LIMITS
USER = {"enabled": True, "on_path": False, "folder": "/home/u", "pythonpath": "", "shadows": []}
NAMES = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility", "PYTORCH_VERSION": "9.9.9", "missing": []}
CPUS = {"cpus": 1, "affinity": 1, "quota": None, "memory": 8 << 30, "limit": None, "threads": ""}
COMPILERS = {"c": "gcc", "c_error": "", "cxx": "g++", "cxx_error": ""}
LIBRARIES = {"home": "/site", "cuda": ["/site/nvidia/libnccl.so.2"], "stdcxx": "", "glibcxx": ""}
DDP = {"gradients": [1.0], "difference": 0.0}
DDP_RANKS = {**ranks(), "ranks": [{**RANK, "facts": DDP}, {**RANK, "facts": DDP}]}
RUN = {"runs": [{"asked": "bf16", "repeatable": True, "trace": TRACE}]}
STRAYED = {"runs": [{"asked": "bf16", "repeatable": False, "trace": TRACE}]}
ROOM = {"folder": "/h", "error": "", "free": 1 << 40, "total": 1 << 41, "inodes_free": 9, "inodes": 9}

EXAMPLES: dict[str, tuple[Facts, Facts]] = {
    "python": ({"version": "3.99.1", "prefix": "/v", "on_path": "/v"}, {"version": "3.1", "prefix": "", "on_path": ""}),
    "one-torch": ({"folders": ["/t"], "version_file": GOOD_TORCH}, {"folders": [], "version_file": {}}),
    "user-site": (USER, {**USER, "on_path": True}),
    "driver-files": ({"files": {}}, {"files": {"/usr/bin/nvidia-smi": ""}}),
    "loader-path": (
        {"variable": "", "folders": [], "cached": []},
        {"variable": "/cuda/stubs", "folders": [], "cached": []},
    ),
    "image-env": (NAMES, {**NAMES, "PYTORCH_VERSION": "1"}),
    "tuning-env": ({"set": {}}, {"set": {"NCCL_ALGO": "Ring"}}),
    "torch-versions": (
        {"installed": INSTALLED, "version_file": GOOD_TORCH},
        {"installed": {}, "version_file": {}},
    ),
    "lock": (PACKAGES, {"installed": {}}),
    "lock-strays": (PACKAGES, {"installed": {"torch": "9.9.9", "stray": "1"}, "times": {"torch": 7, "stray": 7}}),
    "pip-check": (
        {"parser": True, "broken": [], "count": 1},
        {"parser": True, "broken": ["a needs b, which is missing"], "count": 1},
    ),
    "cuda-majors": (
        {"installed": {"nvidia-cublas-cu99": "99.1"}},
        {"installed": {"nvidia-cublas-cu99": "99.1", "nvidia-cudnn-cu98": "9"}},
    ),
    "needed-libraries": ({"count": 1, "unmet": {}}, {"count": 1, "unmet": {"/site/_C.so": ["libx.so.1"]}}),
    "cuda-copies": ({"copies": {}}, {"copies": {"libnccl.so.2": ["/a (x)", "/b (y)"]}}),
    "resources": (CPUS, {**CPUS, "memory": 1 << 20}),
    "caches": ({"folders": {"HOME /h": ROOM}}, {"folders": {"HOME /h": {**ROOM, "error": "EROFS"}}}),
    "workspace": ({"exists": True, "uid": 1, **ROOM}, {"exists": True, "uid": 1, **ROOM, "error": "EACCES"}),
    "volumes": ({"folders": {"/mnt/data": ROOM}}, {"folders": {"/mnt/data": {**ROOM, "error": "EDQUOT"}}}),
    "compiler": (COMPILERS, {**COMPILERS, "cxx_error": "not found"}),
    "shm-type": ({"exists": True, "type": "tmpfs"}, {"exists": True, "type": "ext4"}),
    "shm-size": (SHM, {**SHM, "total": 64 << 20}),
    "limit-nofile": (LIMITS, {**LIMITS, "nofile": 64}),
    "limit-memlock": (LIMITS, {**LIMITS, "infiniband": True}),
    "limit-stack": (LIMITS, {**LIMITS, "stack": 4096}),
    "memory-kills": ({"kills": 0, "hits": 0, "limit": None}, {"kills": 1, "hits": 1, "limit": 1 << 30}),
    "threads": ({"code": "", "pids": ""}, {"code": "EPERM", "pids": ""}),
    "nvcc": (NVCC, {**NVCC, "release": "98.1"}),
    "decoys": ({"decoys": [], "preloaded": []}, {"decoys": ["/tmp/libcudnn.so.9"], "preloaded": []}),
    "hostname": (
        {"name": "n", "addresses": ["172.17.0.2"], "error": ""},
        {"name": "n", "addresses": ["127.0.0.1"], "error": ""},
    ),
    "interface": (
        {"interfaces": ["lo", "eth0"], "variables": {}},
        {"interfaces": ["lo"], "variables": {"NCCL_SOCKET_IFNAME": "ib0"}},
    ),
    "infiniband": (NO_BAND, {**NO_BAND, "nodes": ["/dev/infiniband/uverbs0"]}),
    "imports": (
        {"imported": {"pandas": {"error": "", "warnings": []}}},
        {"imported": {"pandas": {"error": "ImportError: no", "warnings": []}}},
    ),
    "torch-import": ({"version": "9.9.9", "cuda": "99.8", "file": "/t"}, {"error": "ImportError: no"}),
    "arch-list": ({"archs": ["sm_80", "sm_90"]}, {"archs": ["sm_80"]}),
    "cudnn": ({"built": True, "runtime": [77, 6, 5], "compiled": [77, 6, 5]}, {"built": False}),
    "nccl-version": ({"available": True, "version": [66, 5, 4]}, {"available": True, "version": [1, 2, 3]}),
    "loaded-libraries": (LIBRARIES, {**LIBRARIES, "cuda": ["/old/libcudnn.so.7"]}),
    "visible-devices": (DRIVER, {**DRIVER, "cuda_visible": ""}),
    "device-nodes": (DRIVER, {**DRIVER, "opened": {}}),
    "libcuda": (DRIVER, {**DRIVER, "loaded": False}),
    "nvml": (DRIVER, {**DRIVER, "code": 18}),
    "cuda-init": (DRIVER, {**DRIVER, "code": 802}),
    "cuda-level": (DRIVER, {**DRIVER, "level": 12040}),
    "cuda-context": (CONTEXT, {**CONTEXT, "devices": []}),
    "gpu-health": ({**SIGNS, "devices": [WELL]}, {**SIGNS, "devices": [{**WELL, "ecc": 1}]}),
    "torch-cuda": (GIVEN, {**GIVEN, "error": "Error 802: system not yet initialized"}),
    "gpu-devices": (GIVEN, {**GIVEN, "gpus": []}),
    "gpu-arch": (GIVEN, {**GIVEN, "gpus": [{**CARD, "capability": "5.2"}]}),
    "gpu-memory": (GIVEN, {**GIVEN, "gpus": [{**CARD, "free_bytes": 1}]}),
    "gloo-two-ranks": (ranks(), ranks(timed_out=True)),
    "torchrun-two-ranks": (ranks(), ranks(facts={"wrong": ["all-reduce"]})),
    "ddp-gradients": (DDP_RANKS, {**DDP_RANKS, "ranks": [{**RANK, "facts": {**DDP, "difference": 1.0}}]}),
    "nccl-all-gpus": (gpus(), gpus(wrong=["broadcast"])),
    "data-parallel": (SPLIT, {**SPLIT, "output": 1.0}),
    "amp-speed": (SPEED, {**SPEED, "amp_rate": 1.0}),
    **{check.id: (RUN, STRAYED) for check in CHECKS if check.id.startswith("train-")},
    **{name: (good, dict(test_compute.BAD).get(name, {"error": "boom"})) for name, good in test_compute.GOOD.items()},
}


def test_no_check_is_without_examples() -> None:
    """A new check needs facts of both kinds."""
    assert set(EXAMPLES) == {check.id for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_passes_on_good_facts_and_fails_on_bad_ones(check: Check) -> None:
    """The pass says what was seen; the failure what was expected, whose it is and what to do."""
    good, bad = EXAMPLES[check.id]
    claims = LOCK if check.id.startswith("lock") else CLAIMS
    passed, failed = check.evaluate(good, claims), check.evaluate(bad, claims)
    assert passed.status is Status.PASS, passed
    assert passed.observed
    assert failed.status is Status.FAIL, failed
    assert failed.expected
    assert failed.remedy
    assert failed.owner
