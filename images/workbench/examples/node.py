"""Starts one node of several: looks at what would go wrong first, then runs torchrun.

python -m examples.node --nodes 2 --meet node0:29400 -- examples.classify --epochs 5
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from examples.errors import ExampleError, script
from examples.options import natural, positive, whole
from examples.reach import addresses, own_addresses, require_reachable
from examples.stopping import ASKING


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    made = argparse.ArgumentParser(
        "python -m examples.node",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--nodes", type=_nodes, default=(1, 1), help="how many; 1:2 continues with one while the other is gone"
    )
    made.add_argument("--processes", type=whole, default=1, help="on this node; as many as it has GPUs (1)")
    made.add_argument(
        "--meet", required=True, metavar="HOST:PORT", help="where the nodes meet: the first node, a free port"
    )
    made.add_argument("--job", default="gpuyard", help="the same on every node, another for every job (gpuyard)")
    made.add_argument("--restarts", type=natural, default=10, help="how often workers that died are started again (10)")
    made.add_argument("--wait", type=positive, default=120.0, help="seconds to wait for the meeting place (120)")
    made.add_argument("command", nargs="+", metavar="MODULE", help="what each process runs, with its options, after --")
    return made.parse_args(arguments)


def _nodes(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= least <= most:
        raise argparse.ArgumentTypeError(f"{text} is not a number of nodes: expected 2, or 1:2 for one to two")
    return least, most


def place(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ExampleError(f"--meet {text}: expected HOST:PORT, such as node0:29400")
    return host, int(port)


def check(chosen: argparse.Namespace) -> None:
    """Reports what torchrun would end with a traceback, or wait for without a message."""
    host, port = place(chosen.meet)
    if chosen.nodes[1] > 1:
        require_reachable(socket.gethostname())
    if resolved(host, chosen.wait) & own_addresses():
        require_free(host, port)
    else:
        wait_for(host, port, chosen.wait)


def resolved(host: str, seconds: float) -> set[str]:
    """The addresses of a host, which may be still starting."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return set(addresses(host))
        except OSError as error:
            if time.monotonic() > deadline:
                raise ExampleError(
                    f"--meet: {host} can't be resolved ({error.strerror}) after {seconds:g} s: is that node started, "
                    "in the same network, under this name?"
                ) from None
            time.sleep(0.5)


def require_free(host: str, port: int) -> None:
    """The port must be this node's to open."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError as error:
            reason = (
                "is taken by another program"
                if error.errno == errno.EADDRINUSE
                else f"can't be opened: {error.strerror}"
            )
            raise ExampleError(
                f"--meet: port {port} of {host}, this node, {reason}; choose another on all nodes"
            ) from None


def wait_for(host: str, port: int, seconds: float) -> None:
    """Until the first node listens there."""
    deadline = time.monotonic() + seconds
    said = False
    while True:
        try:
            socket.create_connection((host, port), timeout=5).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise ExampleError(
                    f"--meet: nobody listens at {host}:{port} after {seconds:g} s ({error.strerror or error}): "
                    "start the first node, open the port between the nodes, or give all nodes the same --meet"
                ) from None
            if not said:
                sys.stderr.write(f"node: waiting for {host}:{port}\n")
            said = True
            time.sleep(0.5)
        else:
            return


def torchrun(chosen: argparse.Namespace) -> list[str]:
    """The command line that this node runs."""
    least, most = chosen.nodes
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint={chosen.meet}", f"--rdzv-id={chosen.job}"]
    # Whether this node keeps the meeting place is decided here: a name alone does not always show it.
    keeps = bool(resolved(place(chosen.meet)[0], 1) & own_addresses())
    # Short, so that the remaining nodes continue soon after one is gone.
    rendezvous.append(f"--rdzv-conf=is_host={int(keeps)},last_call_timeout=5,join_timeout=600")
    count = [
        f"--nnodes={least}:{most}" if least < most else f"--nnodes={least}",
        f"--nproc-per-node={chosen.processes}",
    ]
    return ["torchrun", *count, *rendezvous, f"--max-restarts={chosen.restarts}", "-m", *chosen.command]


def environment(chosen: argparse.Namespace) -> dict[str, str]:
    """What the processes need beside torchrun's own variables."""
    # Torchrun's shared table outlives the node that kept it in the memory of those that are left, and a
    # node that comes back then waits for it in vain.
    added = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    if chosen.nodes[0] == chosen.nodes[1]:
        added["GPUYARD_NODES"] = str(chosen.nodes[0])
    return {**os.environ, **added}


def attended(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Runs torchrun to its end and returns its exit code: 0 also for a training that was asked to end and saved."""
    # In a session of its own, so that a signal to this process group does not reach it directly.
    with subprocess.Popen(command, env=variables, start_new_session=True) as launched:
        relay = Relay(launched.pid)
        for number in ASKING:
            signal.signal(number, relay.pass_on)
        code = launched.wait()
    return code if code >= 0 else 128 - code


class Relay:
    """Passes requests to end on: the first to the workers, because torchrun calls any stop a failure; later ones to it.

    A request is recorded before anybody is signalled: a second one may arrive at any moment after that.
    """

    def __init__(self, launcher: int) -> None:
        self.launcher = launcher
        self.requests = 0

    def pass_on(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of each signal that asks to end."""
        self.requests += 1
        for pid in (children(self.launcher) if self.requests == 1 else []) or [self.launcher]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    try:
        return [int(word) for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()]
    except OSError:
        return []


def main(arguments: Sequence[str] | None = None) -> None:
    """The command: runs torchrun."""
    chosen = options(arguments)
    check(chosen)
    command = torchrun(chosen)
    program = shutil.which(command[0])
    if not program:
        raise ExampleError("torchrun is not in PATH: run this in the image")
    sys.stderr.write(f"node: {' '.join(command)}\n")
    sys.stderr.flush()
    raise SystemExit(attended([program, *command[1:]], environment(chosen)))


if __name__ == "__main__":
    raise SystemExit(script("node", main))
