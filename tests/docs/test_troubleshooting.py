"""docs/troubleshooting.md is made from what verify says, and says all of it."""

from __future__ import annotations

import re

from gpuyard.render.troubleshooting import MESSAGES, PAGE, page
from verify.codes import CUDA
from verify.engine.registry import CHECKS


def test_the_page_is_what_is_generated() -> None:
    """`python -m gpuyard.render.troubleshooting` writes it."""
    assert PAGE.read_text() == page()


def test_every_message_leads_to_a_check_that_exists() -> None:
    """Or to `gpuyard run`, which says what the host lacks."""
    known = {f"verify --only {check.id}" for check in CHECKS} | {"gpuyard run"}
    assert {advice.ask for advice in MESSAGES.values()} <= known


def test_every_check_and_every_code_is_there() -> None:
    """Each has a row of its own."""
    text = page()
    assert set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)) == {check.id for check in CHECKS}
    assert {str(code) for code in CUDA} <= set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE))


def test_rows_have_as_many_cells_as_their_head() -> None:
    """A bar in a text would start another cell."""
    widths: set[int] = set()
    for line in page().splitlines():
        if not line.startswith("|"):
            widths = set()
            continue
        widths.add(len(re.findall(r"(?<!\\)\|", line)))
        assert len(widths) == 1, line
