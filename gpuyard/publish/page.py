"""A published image on one page, for somebody who sees it for the first time."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from gpuyard.catalogue import table
from gpuyard.catalogue.claims import LABEL
from gpuyard.catalogue.table import runs_on
from gpuyard.publish import evidence
from gpuyard.publish.reference import Evidence, Published
from verify.reference.trace import Trace
from verify.report.report import BadReport, Report

WIDTH = 12
SIGNED = {
    "good": "signed, by the signer that was asked for",
    "none": "not signed",
    "other key": "signed, but NOT by that signer: do not trust it",
    "not checked": "signed; to check by whom: --key cosign.pub, or --identity REGEX for a pipeline's",
}
NOT_THERE = "none attached"


def page(found: Published, columns: int) -> str:
    """The page, wrapped."""
    rows = [*_head(found), *_contents(found), *_proof(found), *_paper(found)]
    lines = [name_of(found), found.labels.get("org.opencontainers.image.description", ""), ""]
    for name, text in rows:
        body = textwrap.wrap(text, max(columns - WIDTH, 40), break_on_hyphens=False, break_long_words=False) or [""]
        lines += [f"{name:{WIDTH}}{body[0]}", *(" " * WIDTH + line for line in body[1:])]
    return "\n".join(line.rstrip() for line in lines)


def name_of(found: Published) -> str:
    """The reference that was asked for."""
    return f"{found.repository}{'@' if found.tag.startswith('sha256:') else ':'}{found.tag}"


def label(found: Published, name: str) -> str:
    """One of our labels."""
    return found.labels.get(f"{LABEL}.{name}", "unknown")


def _head(found: Published) -> Iterator[tuple[str, str]]:
    yield "digest", found.digest
    yield "tags", ", ".join(found.tags)
    name = "org.opencontainers.image"
    commit = found.labels.get(f"{name}.revision", "")
    base = found.labels.get(f"{name}.base.name", "unknown")
    how = "bootstrapped from its packages" if label(found, "base-origin") == "bootstrap" else "as its registry has it"
    yield "built", f"from commit {commit or 'unknown'}, on {base} ({how})"
    yield "download", f"{found.size / 1e9:.2f} GB in {len(found.manifest['layers'])} layers"
    yield "", ""


def _contents(found: Published) -> Iterator[tuple[str, str]]:
    versions = (
        ("PyTorch", "torch"),
        ("torchvision", "torchvision"),
        ("torchaudio", "torchaudio"),
        ("CUDA", "cuda"),
        ("cuDNN", "cudnn"),
        ("NCCL", "nccl"),
        ("Python", "python"),
        ("on", "os"),
    )
    have = [f"{name} {label(found, key)}" for name, key in versions if f"{LABEL}.{key}" in found.labels]
    yield "contains", ", ".join(have)
    yield "packages", packages(found)
    floor = label(found, "driver-floor")
    yield "driver", f"NVIDIA driver {floor} or newer on the host (nvidia-smi shows yours); none is needed for the CPU"
    yield "GPUs", f"{', '.join(generations(found)) or 'unknown'} (machine code for {label(found, 'arch-list')})"
    yield "", ""


def generations(found: Published) -> list[str]:
    """The GPU generations that an image has machine code for."""
    arches = [arch for arch in label(found, "arch-list").split() if re.fullmatch(r"sm_\d+", arch)]
    known = table.load().gpu.items()
    fitting = (gpu.generation for capability, gpu in known for arch in arches if runs_on(arch, capability))
    return list(dict.fromkeys(fitting))


def packages(found: Published) -> str:
    """How many packages the bill of materials counts."""
    entry = found.evidence.get(evidence.CYCLONEDX)
    if not entry:
        return "unknown: no bill of materials is attached"
    kinds = [str(part.get("purl", "")).partition("/")[0] for part in entry.content.get("components", [])]
    return f"{kinds.count('pkg:pypi')} of Python, {kinds.count('pkg:deb')} of Debian"


def _proof(found: Published) -> Iterator[tuple[str, str]]:
    entry = found.evidence.get(evidence.REPORT)
    if not entry:
        yield "verified", "NO: no verification report is attached to this digest"
        return
    try:
        report = Report.from_dict(entry.content)
    except BadReport as error:
        yield "verified", f"NO: what is attached as the report cannot be read: {error}"
        return
    result = "passed" if report.exit_code == 0 else f"NOT PASSED (exit code {report.exit_code})"
    yield "verified", f"{result} on {report.started[:10]}: {report.counted}"
    yield "", report.verdict
    names = ", ".join(report.host.gpu_names())
    yield "on a GPU", f"yes: {names or 'its name is not in the report'}" if report.on_gpu else "not run on a GPU"
    for number, trace in enumerate(report.training):
        yield "" if number else "trained", training(trace)
    if not report.training:
        yield "trained", "no training in the report"


def training(trace: Trace) -> str:
    """One training run in a line."""
    where = f"{trace.name} on {trace.device}, {trace.precision}"
    return f"{where}: {trace.course()}, {trace.accuracy:.0%} right on data it had not seen"


def _paper(found: Published) -> Iterator[tuple[str, str]]:
    yield "", ""
    yield "signature", SIGNED[found.signature]
    for kind, name in evidence.NAMES.items():
        entry = found.evidence.get(kind)
        yield "evidence", f"{name}: {summary(kind, entry)}" if entry else f"{name}: {NOT_THERE}"
    for text in found.warnings:
        yield "WARNING", text
    yield "", ""
    yield "use it", f"docker run --rm --gpus all {name_of(found)} verify"
    if entry := next(iter(found.evidence.values()), None):
        yield "read more", f"oras pull {found.repository.at(entry.digest)}"


def summary(kind: str, entry: Evidence) -> str:
    """A piece of evidence in a few words."""
    content, signed = entry.content, f"; {SIGNED[entry.signature]}" if entry.signature != "not checked" else ""
    if kind == evidence.CYCLONEDX:
        text = f"{len(content.get('components', []))} components"
    elif kind == evidence.SPDX:
        text = f"{len(content.get('packages', [])) - 1} packages"
    elif kind == evidence.PROVENANCE:
        made = content["predicate"]["buildDefinition"]["resolvedDependencies"]
        text = f"{len(made)} materials, {sum('pkg:pypi' in part.get('uri', '') for part in made)} wheels by hash"
    else:
        text = f"{len(content['findings'])} findings"
    return f"{text}, {entry.digest}{signed}"
