"""The words of tests that start containers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from docker.models.containers import Container

Runner = Callable[..., "contextlib.AbstractContextManager[Container]"]


@dataclass(frozen=True)
class Outcome:
    """What a container that has ended leaves behind."""

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Outcome]
