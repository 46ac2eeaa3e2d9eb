"""The page is whole in itself, shows the broken link and lets nothing of the report act."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser
from typing import Any

from tests.verify.report.sample import FINDINGS, HOSTILE, TRACE, finding, report
from verify.model import Finding, Owner, Status, Verdict
from verify.reference.trace import Trace
from verify.report import html

VOID = {"meta", "col"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and insists that every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def page(**changes: Any) -> Page:
    return Page(html.render(dataclasses.replace(report(), **changes)))


def hostile(found: Finding) -> Finding:
    """The finding with hostile text wherever a probe or an error can put some."""
    verdict = Verdict(Status.FAIL, HOSTILE, HOSTILE, HOSTILE, Owner.HOST, {"key": HOSTILE})
    return dataclasses.replace(found, verdict=verdict, title=HOSTILE, error=HOSTILE)


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    """No script, no link, no image, no address."""
    made = page()
    assert not {"script", "link", "img", "iframe", "object"} & set(made.tags)
    assert not [value for name, value in made.attributes if name in ("src", "srcset") or "//" in value]
    assert "url(" not in "".join(made.texts["style"])


def test_hostile_text_stays_text() -> None:
    """Markup in observed text, titles, remedies, errors, verdict and traces does not become markup."""
    plain = report([hostile(finding("bad", Verdict(Status.PASS, "")))])
    changed = dataclasses.replace(
        plain,
        verdict=HOSTILE,
        training=(Trace.from_json({**TRACE, "name": HOSTILE, "device": HOSTILE}),),
        host=dataclasses.replace(plain.host, gpus=({"name": HOSTILE},)),
    )
    text = html.render(changed)
    assert "script" not in Page(text).tags
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 8


def test_the_first_broken_link_is_marked_and_leads_to_its_row() -> None:
    """The failure in the container level, though a doubt of another level stands before it in the list."""
    made = page()
    assert "broken here: shm-size" in made.texts["a"]
    assert ("href", "#check-shm-size") in made.attributes
    assert ("id", "check-shm-size") in made.attributes


def test_no_link_is_marked_when_nothing_failed() -> None:
    """A doubt is not a broken link."""
    kept = [found for found in FINDINGS if found.verdict.status is not Status.FAIL]
    assert "broken here" not in html.render(report(kept, exit_code=3))


def test_status_is_said_in_words_not_by_colour_alone() -> None:
    """Every row holds its status as text."""
    words = page().texts["span"]
    assert {"pass", "fail", "unknown", "skip"} <= set(words)


def test_the_raw_report_can_be_read_back() -> None:
    """The data at the end is the report."""
    assert json.loads("".join(page().texts["pre"])) == report().to_dict()


def test_the_loss_curve_has_axes_bound_and_a_gap_where_a_loss_was_no_number() -> None:
    """Two pieces of curve for one missing step."""
    made = page()
    assert {"loss", "step", "bound 0.3"} <= set(made.texts["text"])
    assert made.tags.count("polyline") == 2


def test_without_training_there_is_no_training_section() -> None:
    """No empty frame."""
    assert "svg" not in page(training=()).tags


def test_flags_in_the_verdict_are_set_as_code() -> None:
    """So that they are neither torn nor mistaken for prose."""
    assert "--shm-size=8g" in page().texts["code"]
