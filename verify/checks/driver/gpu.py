"""The GPUs as torch sees them: CUDA starts, devices, memory, and code for their generation."""

from __future__ import annotations

import os
import re
import warnings
from functools import partial
from typing import Any, Dict, List

from verify import remedies
from verify.codes import cuda_meaning
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import arch, system
from verify.probes.allocation import allocated, asked_for, open_nodes
from verify.probes.gpu_signs import any_sign, gpu_nodes, gpu_signs, no_gpu
from verify.verdicts import failed, listed, passed

FREE_SHARE = 0.2
FREE_MINIMUM = 1 << 30
TORCHS_OWN = (
    "the driver gives a context here, so look at torch and its libraries: verify --only torch,lock,decoys names them"
)
"""torch-cuda needs cuda-context: where torch alone fails, the driver is not to blame."""
NVIDIA_SMI = "nvidia-smi on the host shows which process holds it; end that process"


def probe_start() -> Facts:
    """Start CUDA in torch and keep its error, which is_available() would hide."""
    import torch

    facts = gpu_signs()
    if not any_sign(facts):
        return facts
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.init()
        return {**facts, "count": torch.cuda.device_count(), "error": ""}
    except Exception as error:
        return {**facts, "count": 0, "error": reason(error)}


def reason(error: Exception) -> str:
    """The first line of the error, from the driver's own words on where it quotes them."""
    line = (str(error) or repr(error)).splitlines()[0]
    quoted = re.search(r"Error \d+:.*", line)
    return quoted.group(0) if quoted else line


def evaluate_start(facts: Facts, _claims: Claims) -> Verdict:
    """torch's error, with the driver's code explained where torch names one."""
    if not any_sign(facts):
        return no_gpu(facts)
    expected = "torch.cuda.init() works and finds a GPU"
    if facts["error"]:
        code = re.search(r"Error (\d+)", facts["error"])
        meaning = cuda_meaning(int(code.group(1)) if code else 999)
        owner = meaning.owner if code else Owner.IMAGE
        return failed(f"torch: {facts['error']}", expected, meaning.remedy if code else TORCHS_OWN, owner)
    if not facts["count"]:
        return failed("torch finds no GPU", expected, TORCHS_OWN, Owner.IMAGE)
    return passed(f"CUDA starts, {facts['count']} GPUs", expected)


def probe_devices() -> Facts:
    """Read name, memory and compute capability of each GPU, and the error of one that does not answer."""
    facts = gpu_signs()
    if not any_sign(facts):
        return facts
    import torch

    flags = torch._C._cuda_getArchFlags() or ""
    devices = [_device(torch, index) for index in range(torch.cuda.device_count())]
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    opened = open_nodes(gpu_nodes(facts["nodes"]))
    return {**facts, "gpus": devices, "archs": flags.split(), "cuda_visible": asked, "opened": opened}


def _device(torch: Any, index: int) -> Dict[str, Any]:
    try:
        properties = torch.cuda.get_device_properties(index)
        free, total = torch.cuda.mem_get_info(index)
    except Exception as error:
        return {"index": index, "error": reason(error)}
    return {
        "index": index,
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": total,
        "free_bytes": free,
    }


def evaluate_devices(facts: Facts, _claims: Claims) -> Verdict:
    """torch must be able to use every GPU that was given and asked for."""
    if not any_sign(facts):
        return no_gpu(facts)
    expected = "every GPU given is usable"
    gpus, given = _answering(facts), _given(facts)
    silent = [f"GPU {gpu['index']}: {gpu['error']}" for gpu in facts["gpus"] if "error" in gpu]
    if silent:
        return failed(listed(silent), expected, NVIDIA_SMI, Owner.HOST, gpus=gpus)
    if not gpus:
        return failed("torch lists no GPU", expected, TORCHS_OWN, Owner.IMAGE)
    names = listed(f"{g['name']} ({g['capability']}, {system.size(g['memory_bytes'])})" for g in gpus)
    # With MIG a process sees one instance, however many nodes are here.
    if len(gpus) < given and "MIG" not in names:
        text = f"{given} GPUs were given, torch uses {len(gpus)}: {names}"
        remedy = "compare nvidia-smi -L in the container with CUDA_VISIBLE_DEVICES"
        return failed(text, expected, remedy, Owner.START, gpus=gpus)
    return passed(f"{len(gpus)}: {names}", expected, gpus=gpus)


def _answering(facts: Facts) -> List[Dict[str, Any]]:
    return [gpu for gpu in facts["gpus"] if "error" not in gpu]


def _given(facts: Facts) -> int:
    """GPUs to expect: those that CUDA_VISIBLE_DEVICES names (a scheduler sets it), else the nodes that are ours."""
    asked = asked_for(facts.get("cuda_visible"))
    return asked or len(allocated(facts.get("opened") or {}) or gpu_nodes(facts["nodes"]))


def evaluate_arch(facts: Facts, claims: Claims) -> Verdict:
    """is_available() is True for a GPU that no code in torch was compiled for."""
    if not any_sign(facts):
        return no_gpu(facts)
    archs, gpus = facts["archs"], _answering(facts)
    expected = f"code for every GPU among {' '.join(archs)}"
    without = [gpu for gpu in gpus if not arch.matching(archs, _number(gpu))]
    if without:
        text = "no code for " + listed(f"{gpu['name']} ({gpu['capability']})" for gpu in without)
        return failed(text, expected, _other_line(claims, _number(without[0])), Owner.START)
    return passed(listed(f"{g['capability']} by {' '.join(arch.matching(archs, _number(g)))}" for g in gpus), expected)


def _number(gpu: Dict[str, Any]) -> int:
    return int(str(gpu["capability"]).replace(".", ""))


def _other_line(claims: Claims, capability: int) -> str:
    """The published tags that have code for the device."""
    lines: Dict[str, Dict[str, Any]] = claims.tables.get("lines") or {}
    tags = [str(row["tag"]) for row in lines.values() if arch.matching(row["arch_list"], capability)]
    return f"use an image with code for it: {listed(tags)}" if tags else "no published line supports this GPU"


def evaluate_memory(facts: Facts, _claims: Claims) -> Verdict:
    """Memory that another process holds is missing for training."""
    if not any_sign(facts):
        return no_gpu(facts)
    expected = f"at least {system.size(FREE_MINIMUM)} free on each; better {FREE_SHARE:.0%}"
    text = listed(
        f"GPU {g['index']}: {system.size(g['free_bytes'])} of {system.size(g['memory_bytes'])} free"
        for g in _answering(facts)
    )
    if any(g["free_bytes"] < FREE_MINIMUM for g in _answering(facts)):
        return failed(text, expected, NVIDIA_SMI, Owner.HOST)
    shared = [str(g["index"]) for g in _answering(facts) if g["free_bytes"] < FREE_SHARE * g["memory_bytes"]]
    note = f"; others use most of GPU {', '.join(shared)}: {NVIDIA_SMI}" if shared else ""
    return passed(text + note, expected)


_check = partial(Check, group="gpu", level=Level.GPU, isolation=Isolation.TORCH, timeout=60.0)

CHECKS: List[Check] = [
    _check(
        id="torch-cuda",
        title="CUDA starts in torch",
        probe=probe_start,
        evaluate=evaluate_start,
        needs=("cuda-context", "cuda-level"),
        why="The last step before the first kernel. torch's own error is quoted.",
        repairs=("verify --only cuda-context finds a broken link below it", remedies.LOCKED),
    ),
    _check(
        id="gpu-devices",
        title="GPUs, their names and memory",
        probe=probe_devices,
        evaluate=evaluate_devices,
        why="torch must be able to use every GPU that was given to the container.",
        repairs=("unset CUDA_VISIBLE_DEVICES", remedies.GIVE_GPU),
    ),
    _check(
        id="gpu-arch",
        title="torch has code for these GPUs",
        probe=probe_devices,
        evaluate=evaluate_arch,
        why="is_available() is True for a GPU that no code in torch was compiled for; the first kernel dies.",
        repairs=("use a tag whose arch list has code for it: gpuyard list",),
    ),
    _check(
        id="gpu-memory",
        title="The GPUs have free memory",
        probe=probe_devices,
        evaluate=evaluate_memory,
        why="Memory that another process holds is missing for training.",
        repairs=("on the host: nvidia-smi shows which process holds memory",),
    ),
]
