"""What a test asserts of a refusal: its id, its exit code and the values that it names, not its sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from gpuyard.errors import UserError


@contextlib.contextmanager
def refused(id: str, *named: object, code: int = 1) -> Iterator[pytest.ExceptionInfo[UserError]]:
    """Passes if the block ends with that refusal and its message names each of these values."""
    with pytest.raises(UserError) as caught:
        yield caught
    assert (caught.value.id, caught.value.exit_code) == (id, code), str(caught.value)
    assert [value for value in named if str(value) not in str(caught.value)] == [], str(caught.value)
