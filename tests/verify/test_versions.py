"""Versions are compared by component."""

from __future__ import annotations

import pytest

from verify import versions


def test_ten_is_newer_than_nine() -> None:
    """99.10 is newer than 99.9, which text comparison denies."""
    assert versions.at_least("99.10", "99.9")
    assert not versions.at_least("99.9", "99.10")


@pytest.mark.parametrize(
    ("found", "claimed", "equal"),
    [
        ("9.9", "9.9.0", True),
        ("9.9.9", "9.9.9+cu998", True),
        ("9.9.9+cu997", "9.9.9+cu998", False),
        ("9.9.9rc1", "9.9.9", False),
        ("", "9.9.9", False),
        ("2026.1", "2026.2", False),
    ],
)
def test_local_parts_count_where_both_have_one(found: str, claimed: str, equal: bool) -> None:
    """A build's name is compared only when both versions carry one; suffixes always are."""
    assert versions.same(found, claimed) is equal


def test_a_series_is_no_prefix_of_text() -> None:
    """3.990 does not belong to the series 3.99."""
    assert versions.starts_with("3.99.1", "3.99")
    assert not versions.starts_with("3.990", "3.99")


def test_the_drivers_number_is_a_level() -> None:
    """cuDriverGetVersion's 12040 means CUDA 12.4."""
    assert versions.cuda_level(12040) == "12.4"
