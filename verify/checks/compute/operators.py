"""Convolution, LSTM and attention with their gradients; checkpoints, repeatability, and errors that must be raised."""

from __future__ import annotations

import hashlib
import io
from functools import partial
from typing import Any, Dict, List, Mapping

from verify import remedies
from verify.checks.compute.common import EXPLAINED, GPU_WORKS, attempt, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, passed

TOLERANCES: Mapping[str, float] = {"fp32": 1e-5, "tf32": 5e-3, "bf16": 5e-2, "fp16": 1e-2}
"""Largest relative error of values and gradients against fp64: some roundings of each format in a row."""
EXPECTED = "values and gradients within " + ", ".join(f"{name} {bound:g}" for name, bound in TOLERANCES.items())
WRONG = {
    Owner.IMAGE: "rebuild the image from its lock; if it stays, test the machine's memory and CPU",
    Owner.HOST: "take the GPU out of use and test it (dcgmi diag -r 3)",
}
CHECKPOINT = "a saved checkpoint comes back bit for bit, and the same seed gives the same result"
CUDA_ERROR = "an index out of range on the GPU raises an error in Python"


def probe_cpu() -> Facts:
    """Run each operator forwards and backwards on the CPU, in fp32 and bf16."""
    return attempt(lambda: {"devices": {"cpu": _errors("cpu", ("fp32", "bf16"))}})


def probe_gpu() -> Facts:
    """Run each operator forwards and backwards on every GPU, in all formats it has."""
    return attempt_on_gpu(lambda: {"devices": _all_gpus()})


def _errors(device: str, formats: Any) -> Any:
    from verify.reference import operators

    return operators.errors(device, formats)


def _all_gpus() -> Dict[str, Any]:
    import torch

    found = {}
    for index in range(torch.cuda.device_count()):
        newer = torch.cuda.get_device_capability(index) >= (8, 0)
        formats = ("fp32", "tf32", "bf16", "fp16") if newer else ("fp32", "fp16")
        found[f"cuda:{index}"] = _errors(f"cuda:{index}", formats)
    return found


def evaluate(owner: Owner, facts: Facts, _claims: Claims) -> Verdict:
    """Pass if every operator is within the bound of every format, on every device."""
    verdict = unmeasured(facts, EXPECTED, WRONG[owner], owner)
    if verdict:
        return verdict
    rows = [
        (f"{device} {name} {label}", error, error <= TOLERANCES[label])
        for device, operators in facts["devices"].items()
        for name, formats in operators.items()
        for label, error in formats.items()
    ]
    text = "; ".join(f"{name} {error:.1e}" for name, error, _ in rows)
    wrong = [f"{name} off by {error:.1e}" for name, error, right in rows if not right]
    if wrong or not rows:
        return failed("; ".join(wrong) or "no operator ran", EXPECTED, WRONG[owner], owner, errors=text)
    return passed(text, EXPECTED)


def probe_checkpoint(device: str) -> Facts:
    """Train two steps, save, load, compare every bit; train again from the same seed and compare."""
    measure = partial(_checkpoint, device)
    return attempt(measure) if device == "cpu" else attempt_on_gpu(measure)


def _checkpoint(device: str) -> Dict[str, Any]:
    import torch

    first, second = _two_steps(device), _two_steps(device)
    file = io.BytesIO()
    torch.save(first, file)
    file.seek(0)
    loaded = torch.load(file, map_location="cpu", weights_only=True)
    marks = [_mark(state) for state in (first, loaded, second)]
    return {"device": device, "bytes": file.tell(), "loaded": marks[0] == marks[1], "again": marks[0] == marks[2]}


def _two_steps(device: str) -> Dict[str, Any]:
    """The state of a model after two steps of Adam, on a seed."""
    import torch

    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(16, 32).to(device)).square().mean().backward()
        optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()["state"]}


def _mark(state: Mapping[str, Any]) -> str:
    """A digest of every bit of every tensor."""
    tensors = [*state["model"].values(), *(t for slot in state["optimizer"].values() for t in slot.values())]
    return hashlib.sha256(b"".join(tensor.cpu().numpy().tobytes() for tensor in tensors)).hexdigest()


def evaluate_checkpoint(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if nothing changed on the way to the checkpoint and back, nor from run to run."""
    verdict = unmeasured(facts, CHECKPOINT, WRONG[Owner.IMAGE], Owner.IMAGE)
    if verdict:
        return verdict
    faults = [] if facts["loaded"] else ["the loaded checkpoint differs from what was saved"]
    faults += [] if facts["again"] else ["a second run with the same seed differs"]
    if faults:
        return failed("; ".join(faults), CHECKPOINT, WRONG[Owner.HOST], Owner.HOST)
    return passed(f"{facts['device']}: {facts['bytes']} bytes saved and loaded bit for bit, twice the same", CHECKPOINT)


def probe_cuda_error() -> Facts:
    """Ask the GPU for an index that does not exist and wait for it; the context is lost with this child."""
    return attempt_on_gpu(_provoke)


def _provoke() -> Dict[str, Any]:
    import torch

    try:
        torch.arange(4, device="cuda:0")[torch.tensor([9], device="cuda:0")].sum().item()
    except RuntimeError as error:
        return {"raised": str(error).splitlines()[0]}
    return {"raised": ""}


def evaluate_cuda_error(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if the error came, and named CUDA; without it a training would go on with garbage."""
    verdict = unmeasured(facts, CUDA_ERROR, WRONG[Owner.HOST], Owner.HOST)
    if verdict:
        return verdict
    if "CUDA" not in facts["raised"]:
        seen = facts["raised"] or "no error at all"
        return failed(f"an index out of range gave {seen}", CUDA_ERROR, "update the driver", Owner.HOST)
    return passed(facts["raised"], CUDA_ERROR)


_check = partial(Check, group="gpu", level=Level.GPU, isolation=Isolation.TORCH, timeout=120.0)

CHECKS: List[Check] = [
    _check(
        id="operators-cpu",
        explained_by=EXPLAINED,
        group="compute",
        level=Level.CPU,
        title="Convolution, LSTM and attention are right on the CPU",
        probe=probe_cpu,
        evaluate=partial(evaluate, Owner.IMAGE),
        why="Convolution, LSTM, attention and their gradients are compared with exact ones.",
        repairs=(remedies.LOCKED,),
    ),
    _check(
        id="checkpoint-cpu",
        explained_by=EXPLAINED,
        group="compute",
        level=Level.CPU,
        title="Checkpoints and seeds hold on the CPU",
        probe=partial(probe_checkpoint, "cpu"),
        evaluate=evaluate_checkpoint,
        why="A checkpoint must load bit for bit, and the same seed must give the same run.",
        repairs=(remedies.LOCKED,),
    ),
    _check(
        id="operators-gpu",
        explained_by=("gpu-health", *EXPLAINED),
        title="Convolution, LSTM and attention are right on every GPU",
        probe=probe_gpu,
        evaluate=partial(evaluate, Owner.HOST),
        needs=GPU_WORKS,
        why="cuDNN's and attention's kernels must give the CPU's values, forwards and backwards, in each precision.",
        repairs=("on the host: sudo dmesg | grep Xid; nvidia-smi -q -d ECC", "verify --only cudnn"),
    ),
    _check(
        id="checkpoint-gpu",
        explained_by=("gpu-health", *EXPLAINED),
        title="Checkpoints and seeds hold on the GPU",
        probe=partial(probe_checkpoint, "cuda:0"),
        evaluate=evaluate_checkpoint,
        needs=GPU_WORKS,
        why="The same as checkpoint-cpu, from a GPU's memory.",
        repairs=("on the host: dcgmi diag -r 3",),
    ),
    _check(
        id="cuda-errors",
        disturbs=True,
        title="CUDA errors are raised",
        probe=probe_cuda_error,
        evaluate=evaluate_cuda_error,
        needs=GPU_WORKS,
        why="If a CUDA error is not raised, training continues with garbage.",
        repairs=("update the host's driver",),
    ),
]
