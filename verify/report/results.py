"""The report as data: the versioned JSON that every renderer and the host's CLI read."""

from __future__ import annotations

import platform
from typing import Any, Dict, Iterable, List, Sequence

from verify.checks.image.torch_files import torch_version_file
from verify.model import Claims, Finding, Status
from verify.probes import system

SCHEMA = "gpuyard.verify/1"


def build(
    findings: Sequence[Finding],
    started: str,
    seconds: float,
    command: Sequence[str],
    claims: Claims,
    profile_name: str,
    required: Iterable[str],
    exit_code: int,
    verdict: str,
) -> Dict[str, Any]:
    """The report of one run. ``digest`` stays empty: only the host knows it."""
    return {
        "schema": SCHEMA,
        "started": started,
        "seconds": round(seconds, 3),
        "command": list(command),
        "image": dict(claims.image) or None,
        "digest": None,
        "host": host(findings),
        "profile": {"name": profile_name, "required": sorted(required)},
        "result": {"exit_code": exit_code, "verdict": verdict},
        "counts": {s.value: sum(f.verdict.status is s for f in findings) for s in Status},
        "findings": [finding_dict(finding) for finding in findings],
        "training": training(findings),
    }


def finding_dict(finding: Finding) -> Dict[str, Any]:
    """One finding as the report holds it."""
    verdict = finding.verdict
    return {
        "check": finding.check,
        "group": finding.group,
        "level": finding.level.value,
        "where": finding.where,
        "title": finding.title,
        "status": verdict.status.value,
        "required": finding.required,
        "observed": verdict.observed,
        "expected": verdict.expected,
        "remedy": verdict.remedy,
        "owner": verdict.owner.value if verdict.owner else None,
        "seconds": finding.seconds,
        "data": {key: value for key, value in verdict.data.items() if key != "training"},
        "error": finding.error,
    }


def training(findings: Sequence[Finding]) -> List[Any]:
    """The traces of all training checks; a check may hand over one trace or a list of them."""
    traces: List[Any] = []
    for finding in findings:
        trace = finding.verdict.data.get("training")
        traces.extend(trace if isinstance(trace, list) else [trace] if trace else [])
    return traces


def host(findings: Sequence[Finding]) -> Dict[str, Any]:
    """What the run stood on."""
    gpus = [f.verdict.data["gpus"] for f in findings if f.verdict.data.get("gpus")]
    return {
        "kernel": platform.release(),
        "cpus": system.effective_cpus(),
        "memory_bytes": system.effective_memory(),
        "python": platform.python_version(),
        "torch": str(torch_version_file().get("__version__") or ""),
        "gpus": gpus[0] if gpus else [],
        "container": system.in_container(),
    }
