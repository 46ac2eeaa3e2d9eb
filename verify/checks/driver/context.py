"""A context and a small allocation on every GPU through the driver's own API: what cuInit does not show."""

from __future__ import annotations

from typing import List

from verify import remedies
from verify.checks.driver.driver import blocked_by_libcuda
from verify.codes import cuda_meaning
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes.gpu_signs import any_sign, gpu_signs, no_gpu
from verify.probes.libraries import CONTEXT_BLOCK, ask_context
from verify.verdicts import failed, passed

MIB = CONTEXT_BLOCK >> 20
EXPECTED = f"the driver lists a GPU, and each gives a context and {MIB} MB that hold what is written"
STARTS = 120.0
"""Seconds for the contexts of a machine's GPUs, one after the other."""


def probe() -> Facts:
    """Create a context and allocate, write, read and free 16 MB on each GPU through libcuda; torch is not involved."""
    signs = gpu_signs()
    return {**signs, **(ask_context() if any_sign(signs) else {"loaded": False})}


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if the driver lists a GPU and every call succeeds on each."""
    if not any_sign(facts) and not facts["loaded"]:
        return no_gpu(facts)
    if not facts["loaded"]:
        return blocked_by_libcuda()
    trouble, devices = facts["trouble"], facts["devices"]
    if trouble:
        meaning = cuda_meaning(trouble["code"])
        text = f"{trouble['call']} answers {trouble['code']}: {meaning.text}"
        return failed(text, EXPECTED, meaning.remedy, meaning.owner, code=trouble["code"])
    if not devices:
        remedy = f"unset CUDA_VISIBLE_DEVICES; if nvidia-smi -L lists no GPU in this container: {remedies.GIVE_GPU}"
        return failed("cuInit succeeds, but the driver lists no GPU", EXPECTED, remedy, Owner.START)
    broken = next((device for device in devices if device["code"]), None)
    if broken:
        meaning = cuda_meaning(broken["code"])
        text = f"GPU {broken['index']}: {broken['call']} answers {broken['code']}: {meaning.text}"
        return failed(text, EXPECTED, meaning.remedy, meaning.owner, code=broken["code"])
    lossy = [str(device["index"]) for device in devices if not device["held"]]
    if lossy:
        text = f"GPU {', '.join(lossy)}: memory does not hold what was written"
        return failed(text, EXPECTED, "on the host: dcgmi diag -r 3; take the GPU out of use", Owner.HOST)
    return passed(f"a context and {MIB} MB on each of {len(devices)} GPUs", EXPECTED)


CHECKS: List[Check] = [
    Check(
        id="cuda-context",
        explained_by=("device-nodes", "nvml"),
        group="driver",
        level=Level.GPU,
        title="Every GPU gives a context and memory",
        probe=probe,
        evaluate=evaluate,
        needs=("cuda-init",),
        isolation=Isolation.CHILD,
        timeout=STARTS,
        why=(
            "cuInit may succeed where no program can use the GPU: the first context or the first allocation fails, "
            "or the driver lists no GPU at all."
        ),
        repairs=("the finding names the call, its code and the repair", "on the host: nvidia-smi"),
    )
]
