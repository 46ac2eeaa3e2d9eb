"""A service's log as JSON, and the lines of Jupyter's that are left out."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.jupyter import log_filter
from entrypoints.gpuyard_start.services import log_lines

PROGRAM = Path(log_lines.__file__).parents[2] / "services" / "lines"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("Server listening on 0.0.0.0 port 2222.", "INFO"),
        ('say "x" \\ {', "INFO"),
        ("error: kex_exchange_identification: banner", "ERROR"),
        ("fatal: no hostkeys available", "ERROR"),
        ("Traceback (most recent call last):", "ERROR"),
        ("{no json", "INFO"),
        ("[1, 2]", "INFO"),
    ],
)
def test_every_line_becomes_one_object(line: str, level: str) -> None:
    """With the service's name; what it says is not changed."""
    found = json.loads(log_lines.converted(f"{line}\n", "ssh", 0.0))
    assert found == {"time": "1970-01-01T00:00:00Z", "level": level, "source": "ssh", "message": line}


def test_an_object_stays_as_it_is() -> None:
    """Jupyter writes its own."""
    text = '{"message": "a", "level": "INFO"}\n'
    assert log_lines.converted(text, "jupyter", 0.0) == text


@pytest.mark.parametrize("line", ["", "  \n", "Connection closed by 127.0.0.1 port 5\n"])
def test_what_says_nothing_is_left_out(line: str) -> None:
    """Empty lines, and one for each health check."""
    assert log_lines.converted(line, "ssh", 0.0) == ""


def test_the_program_reads_any_bytes_until_its_pipe_is_closed(tmp_path: Path) -> None:
    """A program's output need not be text."""
    (tmp_path / "jupyter" / "log").mkdir(parents=True)
    command = [sys.executable, "-IS", str(PROGRAM)]
    done = subprocess.run(
        command, cwd=tmp_path / "jupyter" / "log", input=b"a \xff\nb", capture_output=True, timeout=20, check=True
    )
    found = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(item["source"], item["message"]) for item in found] == [("jupyter", "a \\xff"), ("jupyter", "b")]


def kept(message: str, level: int = logging.INFO) -> bool:
    """Whether the line stays in the log."""
    return log_filter.LogFilter().filter(logging.LogRecord("ServerApp", level, "", 0, message, None, None))


def test_jupyters_chatter_is_dropped_and_its_news_kept() -> None:
    """A kernel's start and end are news; a warning always is."""
    assert not kept("jupyter_lsp | extension was successfully linked.")
    assert not kept("http://3f2a:8888/lab?token=...")
    assert not kept("WARNING: The Jupyter server is listening on all IP addresses and ...", logging.WARNING)
    assert kept("Kernel started: 0b1c")
    assert kept("jupyter_lsp | extension was successfully linked.", logging.WARNING)
