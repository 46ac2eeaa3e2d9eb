"""Converts a service's log to JSON: objects stay, every other line becomes one."""

from __future__ import annotations

import json
import os
import re
import sys
import time

from ..log import render

# A line for each health check, and for each login record that only root may write.
_NOISE = re.compile(r"Connection closed by (127\.0\.0\.1|::1) |write login records by non-root")
_FAULT = re.compile(r"(error|fatal)[ :]|Traceback |Error: |.*: error: ", re.IGNORECASE)


def converted(line: str, source: str, now: float) -> str:
    """The line as one JSON object; the empty string for a line to drop."""
    text = line.rstrip("\r\n")
    if not text.strip() or _NOISE.match(text):
        return ""
    if text.startswith("{"):
        try:
            if "message" in json.loads(text):
                return text + "\n"
        except ValueError:
            pass
    return render("json", "ERROR" if _FAULT.match(text) else "INFO", source, text, now)


def main(source: str) -> None:
    """Converts standard input to standard error, line by line, until the service's pipe is closed."""
    sys.stdin.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    for line in sys.stdin:
        if out := converted(line, source, time.time()):
            os.write(2, out.encode("utf-8"))
