"""A small evaluator of workflow expressions, and a walk through a workflow's jobs as the forge would take it.

Only what our workflows use: contexts, ``== != ! && ||``, parentheses, and a few functions. Anything else is an error,
so that a new construct is noticed here first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|&&|\|\||[!(),]))")
STATUS = ("always", "cancelled", "failure", "success")


@dataclass
class Contexts:
    """What an expression can see. ``results`` are those of the jobs that are needed."""

    values: Mapping[str, Any]
    results: tuple[str, ...] = ()
    cancelled: bool = False

    def call(self, name: str, args: list[Any]) -> Any:
        """A function's value."""
        functions: dict[str, Callable[..., Any]] = {
            "always": lambda: True,
            "cancelled": lambda: self.cancelled,
            "success": lambda: not self.cancelled and all(result == "success" for result in self.results),
            "failure": lambda: "failure" in self.results,
            "fromJSON": json.loads,
        }
        return functions[name](*args)

    def look_up(self, path: str) -> Any:
        """The value at ``a.b.c``; nothing where there is none."""
        found: Any = self.values
        for part in path.split("."):
            if found is self.values and part not in found:
                raise ValueError(f"unknown context {part!r}")
            found = found.get(part) if isinstance(found, Mapping) else None
        return found


@dataclass
class Parser:
    """Recursive descent, from ``||`` down to names."""

    text: str
    contexts: Contexts
    tokens: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        at = 0
        while self.text[at:].strip():
            found = TOKEN.match(self.text, at)
            if not found:
                raise ValueError(f"cannot read {self.text[at:]!r}")
            self.tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()

    def value(self) -> Any:
        """The whole expression's value."""
        found = self.either()
        if self.tokens:
            raise ValueError(f"left over: {self.tokens}")
        return found

    def take(self, *signs: str) -> str:
        """The next sign, if it is one of these."""
        return self.tokens.pop(0)[1] if self.tokens and self.tokens[0][1] in signs else ""

    def either(self) -> Any:
        found = self.both()
        while self.take("||"):
            other = self.both()
            found = found or other
        return found

    def both(self) -> Any:
        found = self.compared()
        while self.take("&&"):
            other = self.compared()
            found = found and other
        return found

    def compared(self) -> Any:
        found = self.single()
        if sign := self.take("==", "!="):
            # A string that is not set equals the empty one; letters' case does not count.
            same = str(found or "").lower() == str(self.single() or "").lower()
            return same if sign == "==" else not same
        return found

    def single(self) -> Any:
        if self.take("!"):
            return not self.single()
        if self.take("("):
            found = self.either()
            assert self.take(")"), "a parenthesis stays open"
            return found
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind != "name":
            raise ValueError(f"unexpected {text!r}")
        return self.called(text) if self.take("(") else self.contexts.look_up(text)

    def called(self, name: str) -> Any:
        args = []
        while not self.take(")"):
            args.append(self.either())
            self.take(",")
        return self.contexts.call(name, args)


def value(text: str, contexts: Contexts) -> Any:
    """The value of what stands in YAML: one expression, or text with expressions in it."""
    whole = re.fullmatch(r"\s*\$\{\{(.*?)\}\}\s*", text, flags=re.DOTALL)
    if whole and "${{" not in whole[1]:
        return Parser(whole[1], contexts).value()
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(Parser(found[1], contexts).value() or ""), text)


def condition(text: str | None, contexts: Contexts) -> bool:
    """Whether a job or step with this ``if`` runs; without a status function, only after success."""
    if text is None:
        return bool(contexts.call("success", []))
    bare = re.sub(r"^\s*\$\{\{(.*)\}\}\s*$", r"\1", str(text), flags=re.DOTALL)
    asked = bool(Parser(bare, contexts).value())
    stated = any(re.search(rf"\b{name}\(", bare) for name in STATUS)
    return asked and (stated or bool(contexts.call("success", [])))


Outcome = Callable[[str], str]


def needs(job: Mapping[str, Any]) -> list[str]:
    """The jobs that a job waits for."""
    given = job.get("needs", [])
    return [given] if isinstance(given, str) else list(given)


def walk(
    workflow: Mapping[str, Any], values: Mapping[str, Any], outcome: Outcome, outputs: Mapping[str, Any]
) -> dict[str, str]:
    """The result of each job: skipped by its condition, or what ``outcome`` says of it when it runs."""
    results: dict[str, str] = {}
    for name, job in workflow["jobs"].items():
        needed = {one: {"result": results[one], "outputs": outputs.get(one, {})} for one in needs(job)}
        contexts = Contexts({**values, "needs": needed}, tuple(results[one] for one in needs(job)))
        results[name] = outcome(name) if condition(job.get("if"), contexts) else "skipped"
    return results


def expressions(part: Any) -> Iterator[str]:
    """Every expression in a part of a workflow."""
    if isinstance(part, Mapping):
        for key, inner in part.items():
            if key == "if" and isinstance(inner, str) and "${{" not in inner:
                yield inner
            yield from expressions(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from expressions(inner)
    elif isinstance(part, str):
        yield from re.findall(r"\$\{\{(.*?)\}\}", part, flags=re.DOTALL)
