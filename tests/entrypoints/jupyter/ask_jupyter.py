"""Runs in the container: a Jupyter client that types into a terminal and runs a cell, as the browser does.

Arguments: base URL, token, what to type, what to run, and 'go' to leave a cell running. Ends when both are done.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
import uuid
from typing import Any

from tornado.websocket import websocket_connect  # type: ignore[import-not-found, unused-ignore]


def post(base: str, token: str, path: str) -> dict[str, Any]:
    """Makes a terminal or a kernel."""
    request = urllib.request.Request(f"{base}{path}", b"{}", {"Authorization": f"token {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


async def type_in_terminal(base: str, token: str, text: str) -> None:
    """Opens a terminal, types, and waits for its end."""
    name = post(base, token, "api/terminals")["name"]
    address = base.replace("http", "ws", 1)
    socket = await websocket_connect(f"{address}terminals/websocket/{name}?token={token}")
    await socket.write_message(json.dumps(["stdin", f"{text}\r"]))
    while (message := await socket.read_message()) is not None:
        if json.loads(message)[0] == "disconnect":
            return


async def run_cell(base: str, token: str, code: str, wait: bool) -> str:
    """Runs a cell in a new kernel; what it printed, or the error, or that the kernel died of it."""
    kernel = post(base, token, "api/kernels")["id"]
    address = base.replace("http", "ws", 1)
    socket = await websocket_connect(f"{address}api/kernels/{kernel}/channels?token={token}")
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "s", "version": "5"}
    content = {"code": code, "silent": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    await socket.write_message(json.dumps(message))
    said = ""
    while (answer := await socket.read_message()) is not None:
        found = json.loads(answer)
        if found["msg_type"] in ("stream", "error"):
            said += found["content"].get("text") or "\n".join(found["content"]["traceback"])
        state = found["content"].get("execution_state")
        if found["msg_type"] == "execute_reply" or state in ("restarting", "dead"):
            return said + ("the kernel died" if state else "")
        if not wait and found["msg_type"] == "execute_input":
            break
    return said


async def main(base: str, token: str, text: str, code: str, how: str) -> None:
    """Both, one after the other."""
    if text:
        await asyncio.wait_for(type_in_terminal(base, token, text), 60)
    if code:
        sys.stdout.write(await asyncio.wait_for(run_cell(base, token, code, how != "go"), 90))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
