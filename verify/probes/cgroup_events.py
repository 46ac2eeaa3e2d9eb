"""What a container's cgroup says happened, and which devices it may open; both versions of cgroups."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

from verify.probes.system import CGROUP, folders_of, read

OWN = "/proc/self/cgroup"


def memory_events(root: Path = CGROUP, own: str = OWN, whole: bool = True) -> Dict[str, Optional[int]]:
    """Processes killed for memory (``kills``) and how often the limit was hit (``hits``); None where no file says.

    v2 has both in memory.events; v1 has the kills in memory.oom_control and the hits in memory.failcnt.
    ``whole`` is whether the topmost group counts: it is the container's own, but on a bare machine everybody's.
    """
    for folder in _nearest_first(root, own, "", whole):
        events = _numbers(read(folder / "memory.events"))
        if events:
            return {"kills": events.get("oom_kill"), "hits": events.get("max")}
    for folder in _nearest_first(root, own, "memory", whole):
        control = _numbers(read(folder / "memory.oom_control"))
        if control:
            hits = read(folder / "memory.failcnt")
            return {"kills": control.get("oom_kill"), "hits": int(hits) if hits.isdigit() else None}
    return {"kills": None, "hits": None}


def _nearest_first(root: Path, own: str, controller: str, whole: bool) -> List[Path]:
    """This process's own cgroup before those above it: their events belong to other containers."""
    found = sorted(folders_of(root, own, controller), key=lambda folder: -len(folder.parts))
    return found if whole else [folder for folder in found if folder not in (root, root / controller)]


def _numbers(text: str) -> Dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}


def device_rules(root: Path = CGROUP, own: str = OWN) -> Optional[List[str]]:
    """The lines of v1's devices.list; None under v2, where a BPF program decides and no file shows it."""
    for folder in _nearest_first(root, own, "devices", whole=True):
        text = read(folder / "devices.list")
        if text:
            return text.splitlines()
    return None


def allowed(rules: List[str], number: str) -> str:
    """What v1's rules allow for a device such as ``c 195:0``: letters of r, w, m, or nothing."""
    kind, _, place = number.partition(" ")
    major, _, minor = place.partition(":")
    letters: Set[str] = set()
    for rule in rules:
        parts = re.fullmatch(r"([abc]) (\d+|\*):(\d+|\*) ([rwm]+)", rule.strip())
        if parts and parts[1] in (kind, "a") and parts[2] in (major, "*") and parts[3] in (minor, "*"):
            letters.update(parts[4])
    return "".join(letter for letter in "rwm" if letter in letters)


def refusal(rules: Optional[List[str]], numbers: Dict[str, Any]) -> str:
    """Why nodes that are here (node to number) cannot be opened, as this version of cgroups shows it."""
    if rules is None:
        return "no file shows the rules under cgroup v2; EPERM on a node that is here is their sign"
    lacks = [f"{number} ({allowed(rules, number) or 'nothing'})" for number in sorted(set(numbers.values()))]
    return f"devices.list allows for {', '.join(lacks)}, and rw is needed"
