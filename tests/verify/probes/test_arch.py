"""Compiled code runs on the same major and no older minor, with the known exceptions."""

from __future__ import annotations

import pytest

from verify.probes.arch import matching, runs_on


@pytest.mark.parametrize(
    ("code", "capability", "runs"),
    [
        ("sm_86", 89, True),
        ("sm_80", 90, False),
        ("sm_90", 86, False),
        ("sm_89", 86, False),
        ("sm_80", 87, False),
        ("sm_87", 87, True),
        ("sm_120", 121, True),
        ("sm_100", 101, False),
        ("sm_90a", 90, True),
        ("sm_100a", 103, False),
        ("compute_90", 120, True),
        ("compute_90", 86, False),
        ("nonsense", 90, False),
    ],
)
def test_code_runs_where_torchs_rule_says(code: str, capability: int, runs: bool) -> None:
    """Each row is a device and an entry of an arch list."""
    assert runs_on(code, capability) is runs


def test_a_device_between_entries_uses_the_older_one() -> None:
    """Capability 8.9 has no entry of its own and runs 8.6 and 8.0 code."""
    assert matching(["sm_80", "sm_86", "sm_90"], 89) == ["sm_80", "sm_86"]
