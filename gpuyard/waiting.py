"""Waiting for something to become true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PAUSE = 0.1


def until(condition: Callable[[], Value | None], seconds: float) -> Value | None:
    """The first true answer of ``condition``, or its last one when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(PAUSE)
