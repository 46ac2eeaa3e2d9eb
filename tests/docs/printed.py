"""Every command that gpuyard prints: in pages, message tables, remedies of checks and texts of the sources."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gpuyard import messages, paths
from gpuyard.render import messages_page
from tests.docs.pages import blocks, blocks_in
from tests.docs.programs import PARSERS, UNPARSED

PAGES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs")
SOURCES = ("gpuyard", "verify", "entrypoints/gpuyard_start")
MAKE = re.findall(r"^([a-z][\w.-]*):", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
DOCKER = (
    "ps|logs|pull|push|save|load|images|inspect|info|system|compose|context|restart|rm|stop|buildx|start|kill|volume"
    "|login"
)
NEXT = {
    "gpuyard": r"[a-z]|--[a-z]",
    "verify": r"--[a-z]|(?:explain|env)\b",
    "docker": rf"(?:run|exec|create) (?:-|[A-Z]+\b|\S+:\S+)|(?:{DOCKER})(?![\w-])",
    "pip": r"(?:install|config|download|uninstall|check|list|show|freeze|index)\b",
    "uv": r"(?:pip|lock|sync)\b",
    "make": rf"(?:{'|'.join(MAKE)})(?![\w-])",
    "git": r"(?:checkout|diff|commit|apply|add|clone|status)\b",
    "oras": r"(?:login|repo|discover)\b",
    "cosign": r"(?:verify|generate-key-pair|sign)\b",
    "python": "-m",
    "python3": "-m",
    "openssl": r"(?:x509|rsa|rand)\b",
    "ssh-keygen": "-",
    "kubectl": r"(?:apply|logs|get|describe|delete)\b",
}
"""In prose these names are a command where this follows; elsewhere they are words."""
PROSE = re.compile(
    r"(?:made|gives|is|has|does|writes|will|can|cannot|needs|and|only|runs|with|publishes|keeps|gets|from|itself|or|that"
    r"|puts|renders|makes|starts|started|installs|takes|was|builds|not|prints|did|labels?|images?|layers?)(?![\w-])"
)
"""What follows gpuyard where a sentence is about it."""
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Printed:
    """A command, where it is printed, and whether it stands there to be pasted or is only named in a sentence."""

    where: str
    text: str
    pasted: bool


def simple(text: str) -> Iterator[list[str]]:
    """The simple commands of a line of shell. Raises ValueError for a line that is none."""
    text = re.sub(r"\s+# .*", "", text).replace("…", "").replace("\\;", ";")
    # What a substitution gives is one word, whatever it is.
    lexer = shlex.shlex(re.sub(r"\$\([^()]*\)", "1", text), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    skip = False
    for word in lexer:
        if word and set(word) <= set("();|&\n"):
            if words:
                yield words
            words = []
        elif word and set(word) <= set("<>&"):
            skip = True
        elif skip:
            skip = False
        else:
            words.append(word)
    if words:
        yield words


def of_pages() -> Iterator[Printed]:
    """Blocks of commands, and spans of code that begin with a program's name."""
    files = [paths.ROOT / name for name in PAGES]
    for page in [*files[:-1], *sorted(files[-1].rglob("*.md"))]:
        where = str(page.relative_to(paths.ROOT))
        for block in blocks(page):
            yield from (Printed(where, command.text, True) for command in block.commands)
        if page.name in ("messages.md", "troubleshooting.md"):
            continue  # Generated from what of_tables and of_sources find.
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for span in _SPAN.findall(prose):
            if " " in span and span.split()[0] in {*PARSERS, *UNPARSED}:
                yield Printed(where, span, False)


def of_templates() -> Iterator[Printed]:
    """Blocks of commands in the README of a new project; a value of the template stands as 1."""
    for file in sorted((paths.ROOT / "gpuyard/render/templates").rglob("*.md.j2")):
        text = re.sub(r"\{%.*?%\}", "", re.sub(r"\{\{.*?\}\}", "1", file.read_text()))
        for block in blocks_in(file.name, text):
            yield from (Printed(file.name, command.text, True) for command in block.commands)


def of_tables() -> Iterator[Printed]:
    """Steps that are commands, and commands in steps and meanings that are sentences."""
    for message in messages.load().values():
        for step in message.repair:
            if messages_page.is_command(step):
                yield Printed(message.id, step, True)
            else:
                yield from (Printed(message.id, text, False) for text in embedded(step))
        yield from (Printed(message.id, text, False) for text in embedded(message.means))


def options() -> Iterator[tuple[str, str]]:
    """Options that a step of the tables names outside a command: the message and the option."""
    for message in messages.load().values():
        for step in (re.sub(r"\$\([^()]*\)", "1", step) for step in message.repair):
            if not messages_page.is_command(step) and not list(embedded(step)):
                yield from ((message.id, option) for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*", step))


def of_sources() -> Iterator[Printed]:
    """Commands in the texts of the code: messages, remedies, help; a value in an f-string stands as 1."""
    for folder in SOURCES:
        for file in sorted((paths.ROOT / folder).rglob("*.py")):
            where = str(file.relative_to(paths.ROOT))
            for text in texts(ast.parse(file.read_text())):
                yield from (Printed(where, found, False) for found in embedded(text))


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a module that are not docstrings, each f-string as one."""
    hidden: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            hidden.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def embedded(text: str) -> Iterator[str]:
    """The commands in a sentence, each up to the punctuation that ends it, prose after it included."""
    text = re.sub(r"\$\([^()]*\)", "1", text.replace("\\\n", " "))
    for line in text.splitlines():
        for name, after in NEXT.items():
            for found in re.finditer(rf"(?<![\w/.-])(?<!uv )(?<!cosign ){name} (?={after})", line):
                if name != "gpuyard" or not PROSE.match(line, found.end()):
                    yield " ".join(_until_end(line[found.start() :]))


def _until_end(text: str) -> Iterator[str]:
    quote = ""
    for word in _WORD.findall(text):
        bare = word.rstrip(",;:.)`…")
        if not quote and bare[-1:] in ("'", '"') and bare.count(bare[-1]) == 1:
            yield bare[:-1]
            return
        if not quote and (word[0] in "(`…" or word in ("...", "&&", "|", "||", "and", "or", "to")):
            return
        for letter in word:
            if letter in "'\"":
                quote = "" if quote == letter else quote or letter
        if quote or word == bare:
            yield word
        else:
            if bare:
                yield bare
            return
