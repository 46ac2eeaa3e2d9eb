"""What the suite's tests share: fake checks, claims with versions that exist nowhere, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from verify.model import Check, Claims, Facts, Finding, Isolation, Level, Owner, Status, Verdict

ROOT = Path(__file__).parents[2]
CLAIMS = Claims(
    image={
        "schema": 1,
        "versions": {
            "python": "3.99",
            "torch": "9.9.9+cu998",
            "torchvision": "8.8.8",
            "torchaudio": "9.9.9",
            "cuda": "99.8",
            "cudnn": "77.6.5.4",
            "nccl": "66.5.4",
        },
        "arch_list": ["sm_80", "sm_90"],
        "driver": {"floor": "999.60.13"},
        "packages": {"torch": "9.9.9", "Some_Pkg": "1.2"},
    },
    tables={
        "lines": {"old": {"tag": "v-old", "cuda": "98.1", "arch_list": ["sm_50"]}},
        "family_floors": [{"major": 99, "driver": "999.60.13"}],
    },
)
NO_CLAIMS = Claims({}, {})


def evaluate_ok(facts: Facts, _claims: Claims) -> Verdict:
    if facts.get("ok"):
        return Verdict(Status.PASS, str(dict(facts)))
    return Verdict(Status.FAIL, "not ok", owner=Owner.HOST)


def fake(check_id: str, probe: Any = lambda: {"ok": True}, **changes: Any) -> Check:
    """A check that passes unless its probe is changed."""
    values: dict[str, Any] = {"group": "fake", "level": Level.CPU, "title": "Fake", "evaluate": evaluate_ok}
    return Check(id=check_id, probe=probe, **{**values, "isolation": Isolation.NONE, **changes})


def hang() -> Facts:
    """A probe that never answers."""
    while True:
        time.sleep(60)


def finding(check_id: str, status: Status, required: bool = True, **changes: Any) -> Finding:
    """A finding with a verdict of that status."""
    level = changes.pop("level", Level.CPU)
    verdict = Verdict(status, changes.pop("observed", f"{check_id} was seen"), **changes)
    return Finding(check_id, "fake", level, "Fake", verdict, required, 0.0)


def verify(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the suite as a user does, from the repository."""
    return subprocess.run(
        [sys.executable, "-m", "verify", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def gone(pid: int) -> bool:
    """Whether the process ends within some seconds; a dead one that nobody reaped has ended."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False
