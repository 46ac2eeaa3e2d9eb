"""The report as JUnit XML, one suite per level."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from verify.model import Finding, Status
from verify.report.report import Report
from verify.report.view import Section, image_name, sections

NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """Failures are failures, unknown and skipped required checks are errors, other skips skipped."""
    root = Element("testsuites", name="gpuyard verify", time=f"{report.seconds:.3f}")
    for section in sections(report):
        root.append(_suite(section, report))
    _count(root, list(root.iter("testcase")))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(section: Section, report: Report) -> Element:
    seconds = sum(row.seconds for row in section.rows)
    suite = Element("testsuite", name=section.level, time=f"{seconds:.3f}", timestamp=_text(report.started))
    properties = SubElement(suite, "properties")
    for name, value in (("image", image_name(report)), ("digest", report.digest or "")):
        SubElement(properties, "property", name=name, value=_text(value))
    for row in section.rows:
        suite.append(_case(row))
    _count(suite, suite.findall("testcase"))
    return suite


def _case(row: Finding) -> Element:
    case = Element("testcase", classname=_text(f"{row.level.value}.{row.group}"), name=_text(row.check))
    case.set("time", f"{row.seconds:.3f}")
    kind = _kind(row)
    if kind:
        answer = SubElement(case, kind, message=_text(row.verdict.observed))
        if kind != "skipped":
            answer.set("type", _text((row.verdict.owner or row.verdict.status).value))
        answer.text = _details(row)
    else:
        SubElement(case, "system-out").text = _text(row.verdict.observed)
    return case


def _kind(row: Finding) -> str:
    """A skip is not a pass: where the check was required, it must not look like one to a CI server."""
    if row.verdict.status is Status.SKIP and row.required:
        return "error"
    return {"pass": "", "fail": "failure", "unknown": "error", "skip": "skipped"}[row.verdict.status.value]


def _details(row: Finding) -> str:
    named = (
        ("Expected", row.verdict.expected),
        ("To do", row.verdict.remedy),
        ("Owner", row.verdict.owner.value if row.verdict.owner else ""),
    )
    return "\n".join(f"{name}: {_text(text)}" for name, text in named if text)


def _count(element: Element, cases: Any) -> None:
    element.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(tag) is not None for case in cases)))


def _text(text: str) -> str:
    """The text without the characters that no XML document may hold, escaped or not."""
    return NOT_IN_XML.sub("\ufffd", str(text))
