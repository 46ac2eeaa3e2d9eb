"""The operators that training is made of, each run in one precision on one device and on the CPU in fp64."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

Build = Callable[[], Tuple[Any, Tensor]]
FORMATS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def _conv() -> Tuple[Any, Tensor]:
    return nn.Conv2d(8, 16, 3, padding=1), torch.randn(4, 8, 24, 24)


class _Lstm(nn.Module):  # type: ignore[misc,unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 32, num_layers=2)

    def forward(self, steps: Tensor) -> Tensor:
        states: Tensor = self.lstm(steps)[0]
        return states


def _lstm() -> Tuple[Any, Tensor]:
    return _Lstm(), torch.randn(12, 8, 16)


class _Attention(nn.Module):  # type: ignore[misc,unused-ignore]
    """Causal attention of 4 heads over itself, by torch's own choice of kernel."""

    def forward(self, steps: Tensor) -> Tensor:
        heads = steps.unflatten(-1, (4, 16)).transpose(1, 2)
        return functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def _attention() -> Tuple[Any, Tensor]:
    return _Attention(), torch.randn(2, 32, 64)


OPERATORS: Dict[str, Build] = {"conv2d": _conv, "lstm": _lstm, "attention": _attention}


def errors(device: str, formats: Tuple[str, ...]) -> Dict[str, Dict[str, float]]:
    """Per operator and format the larger of the relative errors of values and of input gradients."""
    return {name: {label: error(build, device, label) for label in formats} for name, build in OPERATORS.items()}


def error(build: Build, device: str, label: str) -> float:
    """How far the operator in that format on that device is from itself in fp64 on the CPU."""
    torch.manual_seed(7)
    model, inputs = build()
    # The reference gets the rounded numbers, so that only the arithmetic is compared.
    model, inputs = model.to(FORMATS[label]), inputs.to(FORMATS[label])
    with _tf32(label == "tf32"):
        found = _run(model.to(device), inputs.to(device))
    true = _run(model.to("cpu", torch.float64), inputs.to(torch.float64))
    return max(relative(one.double().cpu(), other) for one, other in zip(found, true))  # noqa: B905 - Python 3.9


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Exactly the format asked for, whatever a user's setting is; put back afterwards."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def _run(model: Any, inputs: Tensor) -> Tuple[Tensor, Tensor]:
    """Values, and the gradient that autograd brings back to the input."""
    inputs = inputs.detach().requires_grad_()
    values = model(inputs)
    # A ramp, so that no two places of the output have the same weight.
    weights = torch.linspace(0.5, 1.5, values.numel(), dtype=torch.float64).reshape(values.shape)
    (values * weights.to(values.device, values.dtype)).sum().backward()
    assert inputs.grad is not None
    return values.detach(), inputs.grad


def relative(found: Tensor, true: Tensor) -> float:
    """The norm of the difference over the norm of the truth; huge when values are not finite."""
    number = float((found - true).norm() / true.norm())
    return number if number < float("inf") else 1e300
