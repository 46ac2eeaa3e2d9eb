"""Waiting for the services of a container that runs in the background, and what its log says about reaching them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

from docker.models.containers import Container
from rich.console import Console

from gpuyard.engine.session import execute, log_tail
from gpuyard.errors import UserError
from gpuyard.waiting import until

HEALTH = ["/opt/gpuyard/entrypoints/health"]
SECONDS = 90.0
LINE = re.compile(r"\S+Z (?P<level>[A-Z]+) start(?:\[[a-z0-9-]+\])?: (?P<message>.*)")


def wait_services(container: Container, seconds: float = SECONDS) -> None:
    """Returns when every service answers. Raises UserError with the reason if the container ends or time is up."""
    said = [""]

    def ready() -> bool:
        container.reload()
        if container.status != "running":
            return True
        result = execute(container, HEALTH)
        said[0] = (result.out + result.err).strip()
        return result.code == 0

    with Console(stderr=True).status("waiting for the services to answer"):
        answered = until(ready, seconds)
    if container.status != "running":
        raise ended(container)
    if not answered:
        raise UserError(
            "services-not-ready",
            f"after {seconds:g} s a service does not answer ({said[0] or 'no answer'}); the container still runs. "
            f"See its log: docker logs {container.name}",
        )


def ended(container: Container) -> UserError:
    """The refusal that shows why a container in the background ended at once."""
    code = container.attrs["State"]["ExitCode"]
    return UserError(
        "container-ended",
        f"container {container.name} ended with exit code {code}; the end of its log:\n{log_tail(container)}",
    )


def messages(container: Container) -> Iterator[tuple[str, str]]:
    """Level and text of each line that the container's start logged, in its text or its JSON form."""
    for line in container.logs().decode(errors="replace").splitlines():
        if found := LINE.fullmatch(line):
            yield found["level"], found["message"]
        elif line.startswith("{"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry.get("source") == "start":
                yield str(entry.get("level")), str(entry.get("message"))


def show(container: Container) -> None:
    """Repeats what matters of the log here: warnings, and how to get in."""
    for level, message in messages(container):
        if level in ("WARNING", "ERROR") or re.match(r"JupyterLab: \S*https?://|SSH: log in", message):
            print(f"gpuyard: {message}", file=sys.stderr)
