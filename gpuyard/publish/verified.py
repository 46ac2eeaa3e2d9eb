"""When a digest counts as verified: a whole, passed, unedited report about exactly that image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard.acceptance import reports
from gpuyard.acceptance.merge import parse
from gpuyard.errors import UserError
from gpuyard.publish import seal
from verify.engine.verdict import exit_code
from verify.model import Finding, Level, Status

PROFILE = "default"
"""The profile of a run that left nothing out."""


@dataclass(frozen=True)
class Report:
    """A report that counts: its file, its bytes as they were sealed, and what they say."""

    path: Path
    data: bytes
    content: Mapping[str, Any]

    @property
    def gpu(self) -> bool:
        """Whether anything was proven on a GPU."""
        return on_gpu(self.content)


def on_gpu(report: Mapping[str, Any]) -> bool:
    """Whether a check of a report ran on a GPU and passed."""
    levels = {level.value for level in Level if level.on_gpu}
    return any(entry["level"] in levels and entry["status"] == "pass" for entry in report["findings"])


def find(folder: Path, digests: frozenset[str], again: str) -> Path:
    """The newest report of a folder about one of these digests. Raises UserError with ``again`` if there is none."""
    others = []
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            about = reports.load(path).get("digest")
        except UserError:
            continue
        if about in digests:
            return path
        others.append(f"{path.name} is about {str(about)[:19]}")
    near = f" ({others[0]})" if others else ""
    raise UserError(f"{min(digests)} was not verified: no report in {folder}/ is about it{near}. Run: {again}")


def require(path: Path, digests: frozenset[str], image: Mapping[str, Any], again: str) -> Report:
    """The report in a file, if it verifies the image: one of these digests, with that image.json inside.

    Raises UserError, naming the first reason why it does not.
    """
    content = reports.load(path)
    seal.refuse_broken(path)
    data = path.read_bytes()
    report = Report(path, data, json.loads(data))
    if why := refusal(content, digests, image):
        raise UserError(f"{path}: {why}. Run: {again}")
    return report


def refusal(report: Mapping[str, Any], digests: frozenset[str], image: Mapping[str, Any]) -> str:
    """Why a report does not verify an image; empty if it does."""
    if report["digest"] not in digests:
        return f"is about {report['digest']}, and the image is {min(digests)}: verification of another digest"
    if report["profile"]["name"] != PROFILE:
        return f"is of a run with profile {report['profile']['name']}, which left checks out"
    if report["image"] != image:
        return "is about an image with another /etc/gpuyard/image.json"
    try:
        findings = [parse(entry) for entry in report["findings"]]
    except (KeyError, ValueError) as error:
        return f"holds something that is no finding ({error})"
    return _judge(report, findings, image)


def _judge(report: Mapping[str, Any], findings: list[Finding], image: Mapping[str, Any]) -> str:
    code = exit_code(findings)
    if report["result"]["exit_code"] != code:
        return f"says exit code {report['result']['exit_code']}, and its findings make {code}"
    if code:
        return f"says that the image did not pass (exit code {code}): {report['result']['verdict']}"
    if absent := set(report["profile"]["required"]) - {finding.check for finding in findings}:
        return f"has no finding of required checks: {', '.join(sorted(absent))}"
    passed = [finding for finding in findings if finding.required and finding.verdict.status is Status.PASS]
    proven = {name for finding in passed for name in (finding.check, finding.group, finding.level.value)}
    if unproven := [name for name in image.get("required") or () if name not in proven]:
        return f"proves nothing of what the image requires: {', '.join(unproven)}"
    if not any(finding.where == "outside" for finding in passed):
        return "holds no check from outside the container"
    return ""
