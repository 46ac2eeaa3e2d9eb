"""Which compiled code runs on which GPU: torch's own rule, usable without torch.

Code ``sm_XY`` runs on a device of compute capability X.Z with Z >= Y, of the same major only.
``compute_XY`` is PTX, which the driver compiles for any device from X.Y on. A suffix, as in
``sm_90a``, ties the code to that one capability. NOT_ON and ONLY_ON are the integrated GPUs'
exceptions to the rule.
"""

from __future__ import annotations

import re
from typing import Iterable, List

NOT_ON = {50: {53}, 60: {62}, 70: {72}, 80: {87}, 86: {87}, 100: {101}}
ONLY_ON = {87: {87}, 110: {101, 110}}


def runs_on(code: str, capability: int) -> bool:
    """Whether one entry of an arch list runs on a device; the capability 8.6 is 86."""
    match = re.fullmatch(r"(sm|compute)_(\d+)([a-z]?)", code.strip())
    if not match:
        return False
    kind, built, suffix = match.group(1), int(match.group(2)), match.group(3)
    if suffix:
        return built == capability
    if kind == "compute":
        return capability >= built
    if built in ONLY_ON:
        return capability in ONLY_ON[built]
    same_major = built // 10 == capability // 10
    return same_major and capability >= built and capability not in NOT_ON.get(built, set())


def matching(arch_list: Iterable[str], capability: int) -> List[str]:
    """The entries that run on the device."""
    return [code for code in arch_list if runs_on(code, capability)]


def normalised(arch_list: Iterable[str]) -> List[str]:
    """The list in one order and spelling, for comparison."""
    return sorted({code.strip().lower() for code in arch_list}, key=lambda code: (len(code), code))
