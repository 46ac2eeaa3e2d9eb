"""README.zh-CN.md: short, with the commands of the English pages and no others."""

from __future__ import annotations

import re

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from tests.docs.pages import DOCS, blocks

CHINESE = paths.ROOT / "README.zh-CN.md"
ENGLISH = paths.ROOT / "README.md"
_COMMENT = re.compile(r"\s+#( .*)?$")


def commands(*files: object) -> list[str]:
    """The commands of these files, without comments."""
    found = [command.text for file in files for block in blocks(str(file)) for command in block.commands]
    return [_COMMENT.sub("", text) for text in found]


def test_its_commands_are_those_of_the_english_pages() -> None:
    """Word for word: what was tried there need not be tried again."""
    known = commands(ENGLISH, *DOCS.glob("*.md"))
    assert commands(CHINESE)
    assert not [command for command in commands(CHINESE) if command not in known]


def test_it_has_what_comes_first_in_english() -> None:
    """Verifying, testing, starting: a reader of either begins the same way."""
    first = [_COMMENT.sub("", command.text) for block in blocks(ENGLISH)[:2] for command in block.commands]
    assert first
    assert set(first) <= set(commands(CHINESE))


def test_its_links_and_tags_exist(table: Catalogue) -> None:
    """Pages it leads to, and tags that the catalogue gives."""
    text = CHINESE.read_text()
    assert all((paths.ROOT / target).exists() for target in re.findall(r"\]\(([^)#:]+)\)", text))
    tags = {table.tag(line, image) for line in table.line for image in table.published}
    assert set(re.findall(rf"\b{table.repository}:v[\w.-]*\w", text)) <= tags
