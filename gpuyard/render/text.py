"""Text files from templates: a name that nobody set is an error, and shell words are quoted."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def _words(values: Iterable[str]) -> str:
    return shlex.join(values)


# Nothing here is HTML, so nothing is escaped for it; the filters quote for the shell.
_ENVIRONMENT = Environment(
    loader=PackageLoader("gpuyard.render"),
    autoescape=False,
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(word=shlex.quote, words=_words)


def text(template: str, **values: Any) -> str:
    """The template of that name with these values."""
    return _ENVIRONMENT.get_template(template).render(**values)
