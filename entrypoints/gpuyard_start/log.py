"""Our own log lines. They go to standard error only: standard output belongs to the user's command."""

from __future__ import annotations

import json
import os
import time

from .errors import Refusal

STYLES = ("text", "json", "quiet")
_LEVELS_WHEN_QUIET = ("ERROR",)


def style(env: dict[str, str]) -> str:
    """The style that ``GPUYARD_LOG`` asks for; ``text`` when it says nothing."""
    chosen = env.get("GPUYARD_LOG") or "text"
    if chosen not in STYLES:
        raise Refusal(f"GPUYARD_LOG is '{chosen}': expected one of {', '.join(STYLES)}")
    return chosen


def render(chosen: str, level: str, source: str, message: str, now: float) -> str:
    """One log line with time and level, or the empty string where the style leaves it out."""
    if chosen == "quiet" and level not in _LEVELS_WHEN_QUIET:
        return ""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    if chosen == "json":
        return json.dumps({"time": stamp, "level": level, "source": source, "message": message}) + "\n"
    return f"{stamp} {level} {source}: {message}\n"


class Log:
    """Writes whole lines to standard error, each in one system call, and never fails because of it."""

    def __init__(self, chosen: str = "text", source: str = "start") -> None:
        self.style = chosen
        self.source = source

    def write(self, level: str, message: str, always: bool = False) -> None:
        """One line at the given level."""
        chosen = "text" if always and self.style == "quiet" else self.style
        line = render(chosen, level, self.source, message, time.time())
        try:
            os.write(2, line.encode("utf-8", "backslashreplace"))
        except OSError:
            # A closed or full standard error must not keep a training run from starting.
            return

    def info(self, message: str, always: bool = False) -> None:
        """Something the user may want to know; ``always`` is for what nobody can do without."""
        self.write("INFO", message, always)

    def warning(self, message: str) -> None:
        """Something that could not be done; the start goes on."""
        self.write("WARNING", message)

    def error(self, message: str) -> None:
        """Why the start ends; written in every style."""
        self.write("ERROR", message)
