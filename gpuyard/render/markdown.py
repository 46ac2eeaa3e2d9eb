"""Markdown tables, generated into the README and docs between markers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuyard.catalogue.table import Catalogue, runs_on
from gpuyard.errors import UserError


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def drivers_and_gpus(catalogue: Catalogue) -> str:
    """Which line runs on which GPU, and the driver it needs there: the oldest, and the one for every feature."""
    names = list(catalogue.line)
    rows = []
    for capability, gpu in catalogue.gpu.items():
        boards = gpu.names or gpu.arm64
        cells = [f"{gpu.generation} ({capability}): {', '.join(boards[:4])}{' …' if len(boards) > 4 else ''}"]
        for name in names:
            line = catalogue.line[name]
            if not gpu.names:
                cells.append("arm64")
                continue
            runs = any(runs_on(arch, capability) for arch in line.arch_list)
            floor = catalogue.driver_on(line, capability)
            cells.append(f"{floor} ({catalogue.driver_full(line)})" if runs else "no")
        cells.append(f"{gpu.last_branch}" if gpu.last_branch else "")
        rows.append(cells)
    return markdown(["GPU", *(f"`v{name}`" for name in names), "last driver branch"], rows)


def put(file: Path, name: str, text: str) -> bool:
    """Puts generated text between the markers of that name in a file; whether that changed it.

    Raises UserError for a file without them.
    """
    before = file.read_text()
    after = between(before, name, text)
    if after is None:
        raise UserError("markers-missing", f"{file}: no markers {begin(name)} … {end(name)}")
    if after != before:
        file.write_text(after)
    return after != before


def between(page: str, name: str, text: str) -> str | None:
    """The page with that text between its markers; None without markers."""
    pattern = re.compile(rf"({re.escape(begin(name))}\n).*?({re.escape(end(name))})", flags=re.DOTALL)
    if not pattern.search(page):
        return None
    return pattern.sub(lambda found: found[1] + text.rstrip("\n") + "\n" + found[2], page)


def begin(name: str) -> str:
    """The marker above generated text."""
    return f"<!-- begin generated: {name} (gpuyard page) -->"


def end(name: str) -> str:
    """The marker below it."""
    return f"<!-- end generated: {name} -->"
