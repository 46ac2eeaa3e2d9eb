"""The one training loop of the project: mixed precision, gradient clipping, seeded throughout."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from dataclasses import dataclass, field
from typing import Any, Iterator, List

import torch
from torch.nn import functional
from torch.utils.data import DataLoader

from verify.reference.characters import generate
from verify.reference.data import Batch
from verify.reference.recipes import Recipe
from verify.reference.trace import Trace

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
MAX_GRADIENT_NORM = 1.0


def train(recipe: Recipe, device: str = "cpu", precision: str = "bf16", seed: int = 7) -> Trace:
    """Train from scratch and return the trace; the same seed on one device gives the same trace.

    ``device`` is used as given: without it the run ends in torch's own error, never on the CPU.
    """
    with repeatable(device, seed):
        model, samples, held_out = recipe.task(seed)
        run = begin(recipe, model, device, precision)
        _forget_peak(device)
        started = time.perf_counter()
        loader = _loader(recipe, samples, seed)
        for _ in range(recipe.epochs):
            for _ in steps(run, loader):
                pass
        seconds = time.perf_counter() - started
        return _trace(run, seed, seconds, len(samples) * recipe.epochs, _accuracy(run, held_out))


@dataclass
class Run:
    """A training under way: the model and what has been seen so far."""

    recipe: Recipe
    model: Any
    device: str
    dtype: torch.dtype
    optimizer: Any
    scaler: Any
    losses: List[float] = field(default_factory=list)
    scores_dtype: torch.dtype = torch.float32
    grads_finite: bool = True
    tokens: int = 0
    loading: float = 0.0


@contextlib.contextmanager
def repeatable(device: str, seed: int) -> Iterator[None]:
    """Seed torch and rule out kernels that differ from run to run; puts the settings back."""
    # cuBLAS and cuDNN's recurrences repeat themselves only with a fixed workspace.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    # One thread: sums then do not depend on the machine's core count, and tensors this
    # small are faster without a thread pool.
    if device == "cpu":
        torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic)


def _loader(recipe: Recipe, samples: Any, seed: int) -> Any:
    """Batches made by two worker processes, in an order that the seed decides."""
    return DataLoader(
        samples,
        batch_size=recipe.batch_size,
        shuffle=True,
        collate_fn=recipe.collate,
        num_workers=2,
        persistent_workers=True,
        generator=torch.Generator().manual_seed(seed),
        timeout=60,
    )


def begin(recipe: Recipe, model: Any, device: str, precision: str) -> Run:
    """A run that has made no step yet, with its model on the device."""
    model, dtype = model.to(device), DTYPES[precision]
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate)
    # fp16 alone needs scaled losses; the start is low enough not to overflow in runs this short.
    scaler = torch.amp.GradScaler(device_type(device), init_scale=2.0**10, enabled=dtype is torch.float16)
    return Run(recipe, model, device, dtype, optimizer, scaler)


def device_type(device: str) -> str:
    """The kind of a device, without its number."""
    return device.split(":")[0]


def steps(run: Run, loader: Any, share: float = 1.0) -> Iterator[float]:
    """One pass over the loader: the loss of each step as it is made; batches left over make none.

    ``share`` weighs this process's batches where several processes share each step.
    """
    run.model.train()
    waiting: List[Batch] = []
    for batch in _timed(run, loader):
        waiting.append(batch.to(run.device))
        if len(waiting) == run.recipe.accumulate:
            yield _step(run, waiting, share)
            waiting = []


def _timed(run: Run, loader: Any) -> Iterator[Batch]:
    """The loader's batches, with the time spent waiting for them and their tokens counted."""
    batches = iter(loader)
    while True:
        started = time.perf_counter()
        batch = next(batches, None)
        run.loading += time.perf_counter() - started
        if batch is None:
            return
        run.tokens += batch.inputs[0].numel()
        yield batch


def _step(run: Run, batches: List[Batch], share: float) -> float:
    """One step on the mean gradient of the batches."""
    run.optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for number, batch in enumerate(batches, 1):
        with _quiet(run.model, number < len(batches)):
            loss = loss_of(run, batch) * share / len(batches)
            run.scaler.scale(loss).backward()
        total += loss.item()
    run.scaler.unscale_(run.optimizer)
    norm = torch.nn.utils.clip_grad_norm_(run.model.parameters(), MAX_GRADIENT_NORM)
    # A norm over all gradients is finite only if every one of them is.
    run.grads_finite = run.grads_finite and bool(torch.isfinite(norm))
    run.scaler.step(run.optimizer)
    run.scaler.update()
    run.losses.append(total)
    return total


def _quiet(model: Any, more: bool) -> Any:
    """Processes that share a model exchange gradients only after the last batch of a step."""
    return model.no_sync() if more and hasattr(model, "no_sync") else contextlib.nullcontext()


def scores_of(run: Run, batch: Batch) -> Any:
    """What the model says to the batch, under autocast unless the run is in fp32."""
    with torch.autocast(device_type(run.device), dtype=run.dtype, enabled=run.dtype is not torch.float32):
        scores = run.model(*batch.inputs)
    run.scores_dtype = scores.dtype
    return scores.float()


def loss_of(run: Run, batch: Batch) -> Any:
    """The mean cross entropy of the batch."""
    return functional.cross_entropy(scores_of(run, batch).flatten(0, -2), batch.targets.flatten())


def _accuracy(run: Run, held_out: Any) -> float:
    batch = run.recipe.collate([held_out[index] for index in range(len(held_out))]).to(run.device)
    run.model.eval()
    with torch.no_grad():
        guesses = scores_of(run, batch).argmax(-1)
    return float((guesses == batch.targets).float().mean())


def _forget_peak(device: str) -> None:
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: str) -> int:
    """Bytes: of the GPU what torch gave out, of the CPU what the process held."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(torch.cuda.max_memory_allocated(device))


def _sample(run: Run, seed: int) -> str:
    return generate(run.model, run.device, seed) if getattr(run.model, "generates", False) else ""


def _trace(run: Run, seed: int, seconds: float, samples: int, accuracy: float) -> Trace:
    names = {dtype: name for name, dtype in DTYPES.items()}
    return Trace(
        name=run.recipe.name,
        device=run.device,
        precision=names.get(run.scores_dtype, str(run.scores_dtype)),
        loss=tuple(run.losses),
        bound=run.recipe.bound,
        steps=len(run.losses),
        seconds=seconds,
        samples_per_second=samples / seconds,
        seed=seed,
        grads_finite=run.grads_finite,
        accuracy=round(accuracy, 4),
        tokens_per_second=run.tokens / seconds,
        loading_seconds=run.loading,
        peak_memory_bytes=peak_memory(run.device),
        sample=_sample(run, seed),
    )
