"""Our own log lines. They go to standard error only: standard output belongs to the user's command."""

from __future__ import annotations

import json
import os
import time

from . import settings
from .errors import Notice

_LEVELS_WHEN_QUIET = ("ERROR",)


def style(env: dict[str, str]) -> str:
    """The style that ``GPUYARD_LOG`` asks for; ``text`` if it is unset or empty. Raises Refusal."""
    return settings.LOG.read(env)


def render(chosen: str, level: str, source: str, message: str, now: float, id: str = "") -> str:
    """One log line with time, level and id, or the empty string where the style leaves it out."""
    if chosen == "quiet" and level not in _LEVELS_WHEN_QUIET:
        return ""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    if chosen == "json":
        fields = {"time": stamp, "level": level, "source": source, **({"id": id} if id else {}), "message": message}
        return json.dumps(fields) + "\n"
    return f"{stamp} {level} {source}{f'[{id}]' if id else ''}: {message}\n"


class Log:
    """Writes whole lines to standard error, each in one system call. A failing write is ignored."""

    def __init__(self, chosen: str = "text", source: str = "start") -> None:
        self.style = chosen
        self.source = source

    def write(self, level: str, message: str, id: str = "", always: bool = False) -> None:
        chosen = "text" if always and self.style == "quiet" else self.style
        line = render(chosen, level, self.source, message, time.time(), id)
        try:
            os.write(2, line.encode("utf-8", "backslashreplace"))
        except OSError:
            # A closed or full standard error must not keep a training run from starting.
            return

    def info(self, message: str, always: bool = False) -> None:
        """Something the user may want to know; ``always``: in every style, for what users can't do without."""
        self.write("INFO", message, always=always)

    def warning(self, id: str, message: str) -> None:
        """Something that could not be done; the start goes on."""
        self.write("WARNING", message, id)

    def say(self, found: str | Notice) -> None:
        """Information, or a warning with its id."""
        if isinstance(found, Notice):
            self.warning(*found)
        else:
            self.info(found)

    def error(self, id: str, message: str) -> None:
        """Why the start, a service or a process ended; written in every style."""
        self.write("ERROR", message, id)
