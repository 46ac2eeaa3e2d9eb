"""CONTRIBUTING.md is a map of the tree as it is, and docs/index.md leads to every page."""

from __future__ import annotations

import re

import pytest

from gpuyard import paths
from tests.docs.pages import DOCS
from tests.test_directions import ORDER

TEXT = (paths.ROOT / "CONTRIBUTING.md").read_text()
TASKS = {
    "Add a check": "verify/checks/",
    "Add a line": "images/catalogue.toml",
    "Add a setting of the container": "entrypoints/gpuyard_start/settings.py",
    "Add a refusal": "gpuyard/messages/",
    "Add a GPU name": "images/catalogue.toml",
    "Change SSH ciphers": "entrypoints/gpuyard_start/ssh/daemon.py",
    "Support another registry": "gpuyard/publish/registry.py",
    "Support another package index": "gpuyard/indexes.py",
    "Add an example": "images/workbench/examples/NAME.py",
    "Add a docs page": "docs/index.md",
}


def test_every_path_exists() -> None:
    """Those with a folder in them; NAME and X.Y stand for what is new."""
    named = set(re.findall(r"`([\w.-]+/[\w./-]*)`", TEXT))
    own = {path for path in named if path.split("/")[0] in {"checks", "probes", "engine", "reference", "report"}}
    start = {
        path for path in named if path.count("/") == 1 and (paths.ROOT / "entrypoints/gpuyard_start" / path).is_dir()
    }
    missing = [
        path
        for path in sorted(named - start)
        if "NAME" not in path and not (paths.ROOT / ("verify" if path in own else "") / path).exists()
    ]
    assert not missing


def test_the_rooms_are_listed_in_their_order() -> None:
    """From the bottom up, as the imports go; the two at the top need no row."""
    table = TEXT[TEXT.index("| room |") : TEXT.index("`verify/`: `checks/`")]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    listed = [room for row in rows for room in re.findall(r"`(\w+)`", row)]
    assert listed == [room for room in ORDER["gpuyard"] if room not in ("cli", "__main__")]


@pytest.mark.parametrize(("task", "file"), TASKS.items())
def test_each_task_names_its_file(task: str, file: str) -> None:
    """In its own paragraph."""
    (paragraph,) = [part for part in TEXT.split("\n\n") if part.startswith(f"**{task}.**")]
    assert f"`{file}`" in paragraph


def test_every_page_is_in_the_index() -> None:
    """A page that nobody links to is not found."""
    index = (DOCS / "index.md").read_text()
    linked = set(re.findall(r"\]\(([\w.-]+\.md)", index))
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked
