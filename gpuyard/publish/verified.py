"""When a digest counts as verified: by a whole, passed report about exactly that image.

A report is evidence by its signature: publish signs it with the image. Nothing here can tell a forged report from a
real one on the machine of whoever may sign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.acceptance import reports
from gpuyard.acceptance.reports import Found
from gpuyard.errors import UserError
from verify.engine.verdict import exit_code
from verify.model import Status
from verify.report.report import Report as Content

PROFILE = "default"
"""The profile of a run that left nothing out."""


@dataclass(frozen=True)
class Report:
    """A report that counts: its file, its bytes as they were judged, and their content."""

    path: Path
    data: bytes
    content: Content

    @property
    def gpu(self) -> bool:
        """Whether anything was proven on a GPU."""
        return self.content.on_gpu


def find(folders: Sequence[Path], digests: frozenset[str], again: str) -> Found:
    """The newest report in the first folder with one about these digests. Raises UserError with ``again``."""
    for folder in folders:
        if found := reports.about(folder, digests):
            return found
    others = [found for folder in folders for found in reports.newest(folder)]
    near = f" ({others[0].path.name} is about {others[0].content.digest})" if others else ""
    places = " or ".join(f"{folder.absolute()}/" for folder in folders)
    raise UserError(
        "image-unverified", f"{min(digests)} was not verified: no report in {places} is about it{near}. Run: {again}"
    )


def require(found: Found, digests: frozenset[str], image: Mapping[str, Any], again: str) -> Report:
    """The report, if it verifies the image: one of these digests, with that image.json inside.

    Its file is not read again: the bytes that were judged are those that are published. Raises UserError, naming
    the first reason why it does not verify the image.
    """
    if why := refusal(found.content, digests, image):
        raise UserError("report-insufficient", f"{found.path}: {why}. Run: {again}")
    return Report(found.path, found.data, found.content)


def refusal(report: Content, digests: frozenset[str], image: Mapping[str, Any]) -> str:
    """Why a report does not verify an image; empty if it does."""
    if report.digest not in digests:
        return f"is about {report.digest}, but the image is {min(digests)}"
    if report.profile != PROFILE:
        return f"is of a run with profile {report.profile}, which left checks out"
    if report.image != image:
        return "is about an image with another /etc/gpuyard/image.json"
    return _judge(report, image)


def _judge(report: Content, image: Mapping[str, Any]) -> str:
    findings = report.findings
    code = exit_code(findings)
    if report.exit_code != code:
        return f"has exit code {report.exit_code}, but its findings make {code}"
    if code:
        return f"is of an image that did not pass (exit code {code}): {report.verdict}"
    if absent := set(report.required) - {finding.check for finding in findings}:
        return f"has no finding of required checks: {', '.join(sorted(absent))}"
    passed = [finding for finding in findings if finding.required and finding.verdict.status is Status.PASS]
    proven = {name for finding in passed for name in (finding.check, finding.group, finding.level.value)}
    if unproven := [name for name in image.get("required") or () if name not in proven]:
        return f"proves nothing of what the image requires: {', '.join(unproven)}"
    if not any(finding.where == "outside" for finding in passed):
        return "holds no check from outside the container"
    return ""
