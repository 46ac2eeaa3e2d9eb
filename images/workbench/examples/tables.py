"""Data of the user's own: titles in a CSV file, text in text files. Each fault is reported with its line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from examples.errors import ExampleError

Titles = tuple[list[tuple[str, int]], tuple[str, ...]]
"""Titles with the number of their class, and the classes' names."""
HEADER = ["label", "title"]
TEXT = "text files in UTF-8, a sentence a line"
EXPECTED = (
    "a file titles.csv whose first line is label,title and then one title a line, such as sport,Late goal wins it"
)


def read_titles(file: Path) -> Titles:
    """The titles of a CSV file; its labels, sorted, are the classes."""
    rows = [(label, title) for label, title in _rows(file)]
    classes = tuple(sorted({label for label, _ in rows}))
    if len(classes) < 2:
        raise ExampleError(
            f"{file} has {len(classes)} label(s) in {len(rows)} rows: at least two are needed to tell apart"
        )
    numbers = {label: number for number, label in enumerate(classes)}
    return [(title, numbers[label]) for label, title in rows], classes


def _rows(file: Path) -> Iterator[tuple[str, str]]:
    lines = enumerate(read_lines(file), 1)
    first = next(lines, (0, ""))[1]
    if next(csv.reader([first]), []) != HEADER:
        raise ExampleError(f"{file} line 1: found {first[:60]!r}; expected {','.join(HEADER)}")
    for number, line in lines:
        if not line.strip():
            continue
        fields = _fields(file, number, line)
        if len(fields) != len(HEADER) or not all(field.strip() for field in fields):
            raise ExampleError(
                f"{file} line {number}: found {len(fields)} field(s) in {line[:60]!r}; expected label,title, "
                'with a title that has a comma in "quotes"'
            )
        yield fields[0].strip(), fields[1].strip()


def _fields(file: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise ExampleError(f"{file} line {number}: {error} in {line[:60]!r}") from None


def read_lines(file: Path) -> list[str]:
    """The lines of a UTF-8 file."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ExampleError(f"can't read {file}: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ExampleError(
            f"{file} line {line}: not UTF-8; write it again with: iconv -t UTF-8 (see iconv -l)"
        ) from None


def read_texts(folder: Path) -> list[str]:
    """The lines of all text files of a folder, by name, without empty ones."""
    lines = [line for file in sorted(folder.glob("*.txt")) for line in read_lines(file) if line.strip()]
    if not lines:
        raise ExampleError(f"the text files of {folder} are empty")
    return lines
