"""JupyterLab from a browser's view: closed without the token, and a kernel that computes with it."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
import websocket

from gpuyard.acceptance.local import HTTP
from gpuyard.acceptance.world import Outside, World
from verify.model import Claims, Evaluate, Facts, Level, Owner, Status, Verdict

PORT = 8888
SECONDS = 10.0
KERNEL_SECONDS = 90.0
CLOSED = ("/api/contents", "/api/kernels", "/api/terminals")
CODE = "import sys, torch; print(sys.executable); print(torch.ones(2).sum().item())"
ANSWER = "2.0"
REMEDY = "look at the container's log; the settings are in entrypoints/gpuyard_start/jupyter/server.py"


def _url(world: World, path: str) -> str:
    host, port = world.reach(PORT)
    return f"http://{host}:{port}{path}"


def _authorization(world: World) -> dict[str, str]:
    return {"Authorization": f"token {world.token}"}


def probe_closed(world: World) -> Facts:
    """Status codes without a token and with a wrong one."""
    wrong = {"Authorization": "token wrong"}
    codes = {path: HTTP.get(_url(world, path), timeout=SECONDS).status_code for path in CLOSED}
    codes["a wrong token"] = HTTP.get(_url(world, CLOSED[0]), headers=wrong, timeout=SECONDS).status_code
    return {"codes": codes}


def evaluate_closed(facts: Facts, _claims: Claims) -> Verdict:
    """Fails on any answer other than 403."""
    open_ = {path: code for path, code in facts["codes"].items() if code != requests.codes.forbidden}
    if open_:
        observed = ", ".join(f"{path} answers {code}" for path, code in open_.items())
        return Verdict(Status.FAIL, observed, "403", REMEDY, Owner.IMAGE)
    return Verdict(Status.PASS, f"403 on {', '.join(facts['codes'])}", "403")


def probe_token(world: World) -> Facts:
    """The status code with the token."""
    answer = HTTP.get(_url(world, "/api/status"), headers=_authorization(world), timeout=SECONDS)
    return {"code": answer.status_code}


def evaluate_token(facts: Facts, _claims: Claims) -> Verdict:
    """Fails unless the given token opens the server."""
    if facts["code"] != requests.codes.ok:
        return Verdict(Status.FAIL, f"/api/status answers {facts['code']}", "200", REMEDY, Owner.IMAGE)
    return Verdict(Status.PASS, "/api/status answers 200", "200")


@contextlib.contextmanager
def kernel(world: World) -> Iterator[str]:
    """The id of a kernel that is shut down at the end."""
    headers = _authorization(world)
    answer = HTTP.post(_url(world, "/api/kernels"), headers=headers, json={}, timeout=SECONDS)
    answer.raise_for_status()
    name = str(answer.json()["id"])
    try:
        yield name
    finally:
        HTTP.delete(_url(world, f"/api/kernels/{name}"), headers=headers, timeout=SECONDS)


def probe_kernel(world: World) -> Facts:
    """What a kernel prints for the code, and how long that took."""
    started = time.monotonic()
    with kernel(world) as name:
        address = _url(world, f"/api/kernels/{name}/channels").replace("http", "ws", 1)
        header = [f"{key}: {value}" for key, value in _authorization(world).items()]
        # A socket of our own, because the library would take the environment's proxy for this machine too.
        where = urlsplit(address)
        plain = socket.create_connection((str(where.hostname), where.port or 80), KERNEL_SECONDS)
        opened = websocket.create_connection(address, timeout=KERNEL_SECONDS, header=header, socket=plain)
        with contextlib.closing(opened) as line:
            printed, error = execute(line, CODE)
    seconds = round(time.monotonic() - started, 1)
    return {"printed": printed.split(), "error": error, "python": world.python, "seconds": seconds}


def execute(line: websocket.WebSocket, code: str) -> tuple[str, str]:
    """Runs code over a kernel's websocket; what it printed and the error it raised, if any."""
    request = _request(code)
    line.send(json.dumps(request))
    printed = error = ""
    deadline = time.monotonic() + KERNEL_SECONDS
    while time.monotonic() < deadline:
        message = json.loads(line.recv())
        if (message.get("parent_header") or {}).get("msg_id") != request["header"]["msg_id"]:
            continue
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "stream" and content["name"] == "stdout":
            printed += content["text"]
        elif kind == "error":
            error = f"{content['ename']}: {content['evalue']}"
        elif kind == "status" and content["execution_state"] == "idle":
            return printed, error
    raise TimeoutError(f"the kernel did not finish within {KERNEL_SECONDS:g} s")


def _request(code: str) -> dict[str, Any]:
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
    header |= {"username": "gpuyard", "session": uuid.uuid4().hex, "date": ""}
    return {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}


def evaluate_kernel(facts: Facts, _claims: Claims) -> Verdict:
    """Fails unless the venv's python computed the sum."""
    wanted = [facts["python"], ANSWER]
    expected = f"{facts['python']} prints {ANSWER}"
    if facts["error"] or facts["printed"] != wanted:
        observed = facts["error"] or f"printed {' '.join(facts['printed']) or 'nothing'}"
        return Verdict(Status.FAIL, observed, expected, REMEDY, Owner.IMAGE)
    observed = f"torch.ones(2).sum() is {ANSWER} after {facts['seconds']} s"
    return Verdict(Status.PASS, observed, expected, data={"seconds": facts["seconds"]})


def _check(name: str, title: str, probe: Callable[[World], Facts], evaluate: Evaluate, need: str) -> Outside:
    return Outside(name, "jupyter", Level.CONTAINER, title, probe, evaluate, (need,), "jupyter")


CHECKS = [
    _check("jupyter-closed", "Without the token nothing opens", probe_closed, evaluate_closed, "services-ready"),
    _check("jupyter-token", "The token opens the server", probe_token, evaluate_token, "services-ready"),
    _check("jupyter-kernel", "A kernel computes with torch", probe_kernel, evaluate_kernel, "jupyter-token"),
]
