"""The report as one web page that needs nothing but itself."""

from __future__ import annotations

import json
import pkgutil
import re
from html import escape
from string import Template
from typing import Iterable, List, Mapping, Optional, Tuple

from verify.model import Finding
from verify.reference.trace import Trace
from verify.report.chart import loss_chart
from verify.report.report import SCHEMA, STATUSES, Report
from verify.report.view import (
    Section,
    first_broken,
    image_name,
    needs_words,
    outcome,
    required_by,
    same_skip,
    sections,
)

FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*(=[^\s,;)&]*\w)?")
SIGNS = {"pass": "✓", "fail": "✗", "unknown": "?", "skip": "–"}
OUTCOME_CLASS = {"passed": "pass", "failed": "fail"}
COLUMNS = """<colgroup><col class="c-status"><col class="c-check"><col><col class="c-time"></colgroup>
<thead><tr><th scope="col">Status</th><th scope="col">Check</th><th scope="col">Observed</th>
<th scope="col" class="time">Seconds</th></tr></thead>"""


def _asset(name: str) -> str:
    """A file of this package, which may lie in a zip."""
    return (pkgutil.get_data("verify.report", name) or b"").decode()


def render(report: Report) -> str:
    """The page; everything that comes from the report is escaped."""
    return Template(_asset("page.html")).substitute(
        title=escape(f"{image_name(report)}: {outcome(report)}"),
        style=_asset("style.css"),
        outcome_class=OUTCOME_CLASS.get(outcome(report), "unknown"),
        outcome=escape(outcome(report)),
        started=escape(report.started),
        image=escape(image_name(report)),
        verdict=_prose(report.verdict),
        counts=_counts(report.counts),
        chain=_chain(report),
        training=_training(report.training),
        checks="\n".join(map(_section, sections(report))),
        environment=_environment(report),
        schema=escape(SCHEMA),
        json=escape(json.dumps(report.to_dict(), indent=2, ensure_ascii=False)),
    )


def _prose(text: str) -> str:
    """Escaped text whose command-line flags are set as code, so that no line breaks within them."""
    return FLAG.sub(lambda flag: f"<code>{flag.group()}</code>", escape(text))


def _status(status: str) -> str:
    return f'<span class="status {status}"><i aria-hidden="true">{SIGNS[status]}</i>{status}</span>'


def _counts(counts: Mapping[str, int]) -> str:
    items = "".join(f"<li>{_status(status)} <b>{int(counts[status])}</b></li>" for status in STATUSES)
    return f'<ul class="counts">{items}</ul>'


def _chain(report: Report) -> str:
    broken = first_broken(report)
    links = "\n".join(_link(section, broken) for section in sections(report))
    return f'<ol class="chain">\n{links}\n</ol>'


def _link(section: Section, broken: Optional[Finding]) -> str:
    here = broken in section.rows
    mark = ""
    if broken and here:
        name = escape(broken.check)
        mark = f'<a class="broken" href="#check-{name}">broken here: {name}</a>'
    kind = section.status() + (" cut" if here else "")
    counted = ((section.count(status), status) for status in STATUSES)
    tally = ", ".join(f"{count} {status}" for count, status in counted if count)
    return (
        f'<li class="{kind}"><span class="level">{escape(section.level)}</span>{_status(section.status())}'
        f'<span class="tally">{tally}</span>{mark}</li>'
    )


def _section(section: Section) -> str:
    rows = "\n".join(_row(section.rows, index) for index in range(len(section.rows)))
    seconds = sum(row.seconds for row in section.rows)
    return (
        f"<h3>{escape(section.level)}<span>{section.count('pass')} of {len(section.rows)} passed, "
        f"{seconds:.1f} s</span></h3>\n<table>{COLUMNS}\n<tbody>\n{rows}\n</tbody></table>"
    )


def _row(rows: Tuple[Finding, ...], index: int) -> str:
    row, status = rows[index], rows[index].verdict.status.value
    tags = [name for name, on in (("required", row.required), ("outside", row.where == "outside")) if on]
    labels = "".join(f'<span class="tag">{tag}</span>' for tag in tags)
    return (
        f'<tr class="{status}" id="check-{escape(row.check)}"><td>{_status(status)}</td>'
        f'<td class="check"><span class="title">{escape(row.title)}</span>'
        f'<span class="id">{escape(row.check)}</span>{labels}</td>'
        f'<td class="seen">{_seen(row, same_skip(rows, index))}</td>'
        f'<td class="time">{row.seconds:.2f}</td></tr>'
    )


def _seen(row: Finding, other: str) -> str:
    """What was observed; a reason that another row gives in full is not said again."""
    seen = f'<span class="again">as {escape(other)}</span>' if other else escape(row.verdict.observed)
    return seen + (_advice(row) if needs_words(row) else "")


def _advice(row: Finding) -> str:
    parts: List[str] = []
    verdict = row.verdict
    if verdict.expected:
        parts.append(f"<dt>Expected</dt><dd>{escape(verdict.expected)}</dd>")
    if verdict.remedy:
        owner = f" ({escape(verdict.owner.value)})" if verdict.owner else ""
        parts.append(f'<dt>What to do{owner}</dt><dd class="remedy">{_prose(verdict.remedy)}</dd>')
    return f'<dl class="advice">{"".join(parts)}</dl>' if parts else ""


def _training(traces: Iterable[Trace]) -> str:
    figures = "\n".join(map(_figure, traces))
    if not figures:
        return ""
    return (
        '<section aria-labelledby="training"><h2 id="training">Training</h2>\n'
        f'<div class="curves">\n{figures}\n</div></section>'
    )


def _figure(trace: Trace) -> str:
    facts = (
        f"{trace.device}, {trace.precision}, {trace.course()}, {trace.seconds:.1f} s, "
        f"{trace.samples_per_second:.0f} samples/s, seed {trace.seed}"
    )
    if trace.peak_memory_bytes:
        facts += f", {trace.tokens_per_second:.0f} tokens/s, {trace.peak_memory_bytes >> 20} MiB at most"
    return (
        f'<figure><figcaption><span class="name">{escape(trace.name)}</span>'
        f'<span class="facts">{escape(facts)}</span></figcaption>\n{loss_chart(trace)}</figure>'
    )


def _environment(report: Report) -> str:
    items = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _facts(report) if text)
    return f'<dl class="facts-list">\n{items}\n</dl>'


def _facts(report: Report) -> Iterable[Tuple[str, str]]:
    host, image = report.host, report.image or {}
    yield "Image digest", report.digest or ""
    yield "Operating system", str(image.get("os", ""))
    yield "Lock", str(image.get("lock", ""))
    yield "Versions", ", ".join(f"{name} {version}" for name, version in image.get("versions", {}).items())
    yield "Running", f"Python {host.python}, torch {host.torch or 'not installed'}"
    yield "Host", f"kernel {host.kernel}, {host.cpus} CPUs, {host.memory_bytes / 2**30:.1f} GiB memory"
    yield "In a container", "yes" if host.container else "no"
    yield "GPUs", ", ".join(host.gpu_names()) or "none"
    yield "Command", " ".join(report.command)
    yield "Required", f"by {required_by(report)}: {', '.join(report.required)}"
    yield "Exit code", str(report.exit_code)
    yield "Took", f"{report.seconds:.1f} s"
