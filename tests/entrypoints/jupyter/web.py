"""Jupyter as a client without a browser meets it."""

from __future__ import annotations

import urllib.error
import urllib.request

from docker.models.containers import Container

from ..conftest import wait_for

PORTS = {"8888/tcp": ("127.0.0.1", None)}
HEALTH = "/opt/gpuyard/entrypoints/health"


def get(url: str, opener: urllib.request.OpenerDirector | None = None, data: bytes | None = None) -> tuple[int, bytes]:
    """Status and body of a page."""
    client = opener or urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with client.open(url, data, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def healthy(container: Container) -> None:
    """Waits until Jupyter answers its health check."""
    wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter answer\n", 90)
