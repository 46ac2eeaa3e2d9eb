"""docs/messages.md is what the tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard import messages
from gpuyard.render import messages_page


def test_the_page_is_fresh() -> None:
    """An id that was added or reworded without `gpuyard page` fails here."""
    assert messages_page.PAGE.read_text() == messages_page.text(), "stale: run  gpuyard page"


def test_every_id_has_its_heading_once() -> None:
    """So that a link to #ID works."""
    headings = [line[4:] for line in messages_page.text().splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(messages.load())


def test_a_stale_page_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call writes, the second finds nothing to do."""
    monkeypatch.setattr(messages_page, "PAGE", tmp_path / "messages.md")
    assert messages_page.write()
    assert not messages_page.write()
