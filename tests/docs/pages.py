"""The commands of the documentation, as its pages show them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from gpuyard import paths

DOCS = paths.ROOT / "docs"
OTHERS = ("bench*.md", "publish.md", "support.md", "messages.md", "commands.md", "figures.md", "index.md")
"""Pages whose commands have tests of their own, and those without blocks of commands."""

RUN = {
    "": "runs here, without an engine",
    "image": "runs in a container of the image",
    "full": "the same, slow or large",
}
NOT_RUN = {
    "gpu": "needs a GPU",
    "cluster": "needs a cluster, or programs that only one has",
    "network": "downloads gigabytes, or needs a second machine",
    "build": "builds images; the tests of the build do the same",
    "host": "stays in the foreground, or speaks to a machine of the reader's",
}
_BLOCK = re.compile(r"^```console ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\s# exit (\d+)\b")
_COMMENT = re.compile(r"\s+# .*")


@dataclass(frozen=True)
class Command:
    """A command, its exit code, and the output that the page shows."""

    text: str
    code: int
    shown: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Its words up to the first pipe, semicolon or redirection, without the comment."""
        lexer = shlex.shlex(_COMMENT.sub("", self.text), posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
        ends = [at for at, word in enumerate(words) if word[0] in "|&;<>"]
        return words[: ends[0]] if ends else words


@dataclass(frozen=True)
class Block:
    """A block of commands, and what it needs."""

    page: str
    need: str
    commands: tuple[Command, ...]


def pages() -> list[str]:
    """The pages of this test, in order."""
    return sorted(page.name for page in DOCS.glob("*.md") if not any(page.match(other) for other in OTHERS))


def blocks(page: str | Path) -> list[Block]:
    """The blocks of a page of docs/, or of another file."""
    file = DOCS / page
    return blocks_in(file.name, file.read_text())


def blocks_in(name: str, text: str) -> list[Block]:
    """The blocks of a text."""
    return [Block(name, need, _commands(body)) for need, body in _BLOCK.findall(text)]


def _commands(body: str) -> tuple[Command, ...]:
    found: list[tuple[str, list[str]]] = []
    for line in body.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return tuple(Command(text, _code(text), tuple(shown)) for text, shown in found)


def _code(text: str) -> int:
    said = _EXIT.search(text)
    return int(said[1]) if said else 0


def fits(shown: tuple[str, ...], output: str) -> bool:
    """Whether an output is what a page shows, where ``…`` stands for anything."""
    if not shown:
        return True
    lines = [".*".join(re.escape(part) for part in line.rstrip().split("…")) for line in shown]
    pattern = "\n".join(line or "[^\n]*" for line in lines)
    return (
        re.fullmatch(pattern, "\n".join(line.rstrip() for line in output.strip("\n").splitlines()), re.DOTALL)
        is not None
    )
