"""Training checks: the reference runs learn, with mixed precision, and repeat themselves."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any, Dict, List, Mapping, Tuple

from verify.checks.compute.common import EXPLAINED, GPU_WORKS, attempt, attempt_on_gpu, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.reference.trace import Trace
from verify.verdicts import failed, passed, skipped

SEED = 7
DISTINCT = 6
"""Different characters that a generated text must have at least."""
NEEDS = {"GPT2_CHARACTERS": "transformers"}
EXPECTED = (
    "the loss falls below its bound, gradients stay finite, autocast is used, the same seed gives the same losses"
)


def probe_cpu(recipe: str) -> Facts:
    """Train twice on the CPU, in the precision that the recipe has there."""
    return _absent(recipe) or attempt(lambda: {"runs": [_run_twice(recipe, "cpu", "")]})


def probe_gpu(recipe: str) -> Facts:
    """Train twice on the first GPU: in fp32, in fp16 with scaled losses, and in bf16 where the GPU has it."""
    return _absent(recipe) or attempt_on_gpu(
        lambda: {"runs": [_run_twice(recipe, "cuda:0", name) for name in _precisions()]}
    )


def _absent(recipe: str) -> Dict[str, Any]:
    """The package that the recipe needs and that is not installed; importing it is left to the run."""
    package = NEEDS.get(recipe, "")
    return {"absent": package} if package and importlib.util.find_spec(package) is None else {}


def _precisions() -> Tuple[str, ...]:
    import torch

    lower = ("fp16", "bf16") if torch.cuda.is_bf16_supported(including_emulation=False) else ("fp16",)
    return ("fp32", *lower)


def _run_twice(recipe: str, device: str, precision: str) -> Dict[str, Any]:
    from verify.reference import recipes
    from verify.reference.train import train

    precision = precision or getattr(recipes, recipe).on_cpu
    first = train(getattr(recipes, recipe), device, precision, SEED)
    second = train(getattr(recipes, recipe), device, precision, SEED)
    return {"asked": precision, "repeatable": first.same_course(second), "trace": first.as_json()}


def evaluate(owner: Owner, facts: Facts, _claims: Claims) -> Verdict:
    """Pass only if every run learned as it should; ``owner`` has to act on a run that did not."""
    remedy = "run it again alone: verify --only train; if it stays, the machine computes wrong values"
    if facts.get("absent"):
        return skipped(f"{facts['absent']} is not installed", f"uv pip install {facts['absent']}")
    verdict = unmeasured(facts, EXPECTED, remedy, owner)
    if verdict:
        return verdict
    runs: List[Mapping[str, Any]] = facts["runs"]
    training = [run["trace"] for run in runs]
    faults = [f"{run['asked']}: {fault}" for run in runs for fault in faults_of(run)]
    if faults or not runs:
        return failed("; ".join(faults) or "no run", EXPECTED, remedy, owner, training=training)
    return passed("; ".join([*map(_summary, training), *gains(training)]), EXPECTED, training=training)


def gains(traces: List[Mapping[str, Any]]) -> List[str]:
    """How the throughput of each lower precision compares with fp32's, where both were run."""
    full = next((trace["samples_per_second"] for trace in traces if trace["precision"] == "fp32"), 0.0)
    lower = [trace for trace in traces if trace["precision"] != "fp32"] if full else []
    return [f"{trace['precision']} at {trace['samples_per_second'] / full:.1f} times fp32's speed" for trace in lower]


def faults_of(run: Mapping[str, Any]) -> List[str]:
    """Everything that is wrong with one run."""
    trace = run["trace"]
    course = Trace.from_json(trace)
    first, last, bound = course.first_loss(), course.final_loss(), course.bound
    checks = (
        (trace["grads_finite"], "a gradient was not finite"),
        (trace["precision"] == run["asked"], f"autocast was not used: scores came in {trace['precision']}"),
        (first > bound, f"the first loss {first:.3f} already met the bound {bound:g}, so it proves nothing"),
        (last < bound, f"the loss ended at {last:.3f}, not below {bound:g}"),
        (_writes(trace), f"what it wrote repeats too few characters: {trace.get('sample')!r}"),
        (run["repeatable"], "a second run with the same seed gave other losses"),
    )
    return [fault for holds, fault in checks if not holds]


def _writes(trace: Mapping[str, Any]) -> bool:
    """Whether a generator, where the run has one, writes more than one letter over and over."""
    sample = str(trace.get("sample") or "")
    return not sample or len(set(sample)) >= DISTINCT


def _summary(trace: Mapping[str, Any]) -> str:
    return (
        f"{trace['precision']}: {Trace.from_json(trace).course()}, {trace['seconds']:.1f} s, "
        f"{trace['samples_per_second']:.0f} samples/s, {_loading(trace):.0%} waiting for data, "
        f"held-out accuracy {trace['accuracy']:.0%}, "
        "twice the same" + (f", wrote {trace['sample']!r}" if trace.get("sample") else "")
    )


def _loading(trace: Mapping[str, Any]) -> float:
    return float(trace.get("loading_seconds", 0.0)) / (trace["seconds"] or 1.0)


TRAINS = "repair the checks that fail above it first: training uses all of them"
_check = partial(Check, explained_by=EXPLAINED, isolation=Isolation.TORCH, timeout=180.0)


def _training(name: str, model: str, recipe: str, why: str, repairs: Tuple[str, ...] = ()) -> Tuple[Check, Check]:
    """The training on the CPU and the same on the GPU."""
    package = NEEDS.get(recipe, "")
    on_cpu = _check(
        id=f"train-{name}",
        group="train",
        level=Level.CPU,
        title=f"{model} learns on the CPU",
        probe=partial(probe_cpu, recipe),
        evaluate=partial(evaluate, Owner.IMAGE),
        why=why,
        repairs=(TRAINS, *repairs),
        package=package,
    )
    on_gpu = _check(
        id=f"train-{name}-gpu",
        group="gpu",
        level=Level.GPU,
        title=f"{model} learns on the GPU",
        probe=partial(probe_gpu, recipe),
        evaluate=partial(evaluate, Owner.HOST),
        needs=GPU_WORKS,
        why=f"The same as train-{name} on the GPU, in fp32 and with mixed precision.",
        repairs=(TRAINS,),
        package=package,
    )
    return on_cpu, on_gpu


TRAININGS: Tuple[Tuple[Check, Check], ...] = (
    _training(
        "rnn",
        "SimpleRNN news-title classifier",
        "RNN_TITLES",
        "A recurrent classifier must learn, with finite gradients and the same trace twice.",
    ),
    _training(
        "transformer",
        "SimpleTransformerBlock",
        "TRANSFORMER_REVERSAL",
        "An attention block must learn, with finite gradients and the same trace twice.",
    ),
    _training(
        "lstm",
        "LSTM character generator",
        "LSTM_CHARACTERS",
        "An LSTM that writes text letter by letter must learn, and must write.",
    ),
    _training(
        "gpt2",
        "A small GPT-2 of transformers",
        "GPT2_CHARACTERS",
        "Most trainings today use transformers: GPT-2 from a small configuration, without a download.",
        ("uv pip install transformers",),
    ),
)
CHECKS: List[Check] = [training[place] for place in (0, 1) for training in TRAININGS]
