"""The texts of ``verify --list`` and ``verify explain ID``."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import Collection, Dict, List, Mapping

from verify import messages
from verify.codes import CUDA, NVML, Meaning
from verify.engine.registry import UnknownName, all_needs, unknown_text
from verify.model import Check, Probe

CODES: Dict[str, Mapping[int, Meaning]] = {"cuda-init": CUDA, "cuda-context": CUDA, "nvml": NVML}


def list_checks(checks: List[Check], required: Collection[str]) -> str:
    """A table of the checks; those that this run requires are marked."""
    rows = [("check", "group", "level", "required", "title")]
    rows += [(c.id, c.group, c.level.value, "must" if c.id in required else "-", c.title) for c in checks]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join([*(row[n].ljust(widths[n]) for n in range(4)), row[4]]) for row in rows]
    return "\n".join([*lines, "", f"{len(checks)} checks; {len(set(required))} must pass in this run"])


def explain(checks: List[Check], wanted: str) -> str:
    """A check's page, or the meaning of another printed id. Raises UnknownName for an id that neither has."""
    check = next((c for c in checks if c.id == wanted), None)
    if check:
        return _page(check)
    others = messages.known()
    if wanted not in others:
        raise UnknownName(unknown_text("id", wanted, [*(c.id for c in checks), *others]))
    return messages.text(wanted)


def _page(check: Check) -> str:
    """What the check asserts, why it exists, how it looks, and what repairs it."""
    lines = [f"{check.id}: {check.title}", f"group {check.group}, level {check.level.value}", ""]
    lines += _part("What", _what(check.probe))
    lines += _part("Why", check.why)
    lines += _part("Cases", ", ".join(check.cases))
    lines += _part("Needs", ", ".join(all_needs(check)) or "nothing")
    lines += ["Remedies:", *(f"  - {remedy}" for remedy in check.repairs), ""]
    lines += _codes(CODES.get(check.id, {}))
    lines += [f"Run it: verify --only {check.id}"]
    return "\n".join(lines)


def _codes(meanings: Mapping[int, Meaning]) -> List[str]:
    """What each code that the check may meet means, whose it is, and what repairs it."""
    rows = [f"{code}: {m.text}. To do ({m.owner.value}): {m.remedy}" for code, m in sorted(meanings.items())]
    wrapped = [textwrap.wrap(row, 88, initial_indent="  ", subsequent_indent="    ") for row in rows]
    return ["Codes:", *(line for lines in wrapped for line in lines), ""] if rows else []


def _what(probe: Probe) -> str:
    """The first paragraph of the probe's docstring; a partial's own docstring says nothing about the check."""
    function = probe.func if isinstance(probe, partial) else probe
    return " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())


def _part(name: str, text: str) -> List[str]:
    return textwrap.wrap(f"{name}: {text}", 88, subsequent_indent="  ") if text else []
