"""The report of a run that has just ended."""

from __future__ import annotations

import platform
from typing import Iterable, List, Sequence, Tuple

from verify.checks.image.torch_files import torch_version_file
from verify.model import Claims, Finding
from verify.probes import system
from verify.reference.trace import Trace
from verify.report.report import Host, Report


def build(  # noqa: PLR0913, PLR0917 - the fields of the report
    findings: Sequence[Finding],
    started: str,
    seconds: float,
    command: Sequence[str],
    claims: Claims,
    profile_name: str,
    required: Iterable[str],
    exit_code: int,
    verdict: str,
) -> Report:
    """The report of one run. ``digest`` stays empty: only the host knows it."""
    return Report(
        started=started,
        seconds=round(seconds, 3),
        command=tuple(command),
        image=dict(claims.image) or None,
        digest=None,
        host=host(findings),
        profile=profile_name,
        required=tuple(sorted(required)),
        exit_code=exit_code,
        verdict=verdict,
        findings=tuple(findings),
        training=training(findings),
    )


def training(findings: Sequence[Finding]) -> Tuple[Trace, ...]:
    """The traces of all training checks; a check may hand over one trace or a list of them."""
    traces: List[Trace] = []
    for finding in findings:
        found = finding.verdict.data.get("training")
        listed = found if isinstance(found, list) else [found] if found else []
        traces.extend(map(Trace.from_json, listed))
    return tuple(traces)


def host(findings: Sequence[Finding]) -> Host:
    """The machine, as the suite and its checks saw it."""
    gpus = [f.verdict.data["gpus"] for f in findings if f.verdict.data.get("gpus")]
    return Host(
        kernel=platform.release(),
        cpus=system.effective_cpus(),
        memory_bytes=system.effective_memory(),
        python=platform.python_version(),
        torch=str(torch_version_file().get("__version__") or ""),
        gpus=tuple(gpus[0]) if gpus else (),
        container=system.in_container(),
    )
