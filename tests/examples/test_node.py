"""One node of several looks before it becomes torchrun; none of it needs torch."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from examples import node, reach
from examples.errors import ExampleError

from tests.examples.scripts import ENVIRONMENT


def chosen(*words: str) -> list[str]:
    """A whole command line."""
    return [*words, "--", "examples.classify", "--epochs", "2"]


def test_a_node_becomes_torchrun_with_a_c10d_rendezvous() -> None:
    """The module's own options stay the module's."""
    made = node.options(chosen("--nodes", "2", "--processes", "4", "--meet", "localhost:29400", "--job", "x"))
    command = node.torchrun(made)
    assert command[:3] == ["torchrun", "--nnodes=2", "--nproc-per-node=4"]
    assert {"--rdzv-endpoint=localhost:29400", "--rdzv-id=x", "--rdzv-backend=c10d"} < set(command)
    assert any("is_host=1" in word for word in command)
    assert command[-4:] == ["-m", "examples.classify", "--epochs", "2"]
    assert node.environment(made)["GPUYARD_NODES"] == "2"


def test_an_elastic_job_expects_no_fixed_number() -> None:
    """One to two nodes."""
    made = node.options(chosen("--nodes", "1:2", "--meet", "a:1"))
    assert made.nodes == (1, 2)
    assert "GPUYARD_NODES" not in node.environment(made)


@pytest.mark.parametrize("nodes", ["0", "x", "2:1", "-1"])
def test_numbers_of_nodes_that_make_no_sense_end_with_2(nodes: str) -> None:
    """With an example of what does."""
    with pytest.raises(SystemExit) as raised:
        node.options(chosen(f"--nodes={nodes}", "--meet", "a:1"))
    assert raised.value.code == 2


@pytest.mark.parametrize("text", ["node0", ":29400", "node0:x", "node0:99999"])
def test_a_meeting_place_needs_host_and_port(text: str) -> None:
    """As HOST:PORT."""
    with pytest.raises(ExampleError, match="expected HOST:PORT"):
        node.place(text)


def test_a_taken_port_is_said_on_the_node_that_wants_it() -> None:
    """Before torchrun takes the other program for the meeting place and waits."""
    with socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen()
        port = listening.getsockname()[1]
        made = node.options(chosen("--meet", f"localhost:{port}"))
        with pytest.raises(ExampleError, match=f"port {port} of localhost, this node, is taken by another program"):
            node.check(made)
    node.check(made)


def test_a_host_that_has_no_address_is_named() -> None:
    """After the time to wait for it."""
    with pytest.raises(ExampleError, match=r"no-such-node\.invalid can't be resolved"):
        node.resolved("no-such-node.invalid", 0.1)


def test_a_first_node_that_does_not_listen_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Once it is said that this one waits, and at the end what to do."""
    with pytest.raises(ExampleError, match=r"nobody listens at 127\.0\.0\.1:1 after"):
        node.wait_for("127.0.0.1", 1, 0.6)
    assert capsys.readouterr().err == "node: waiting for 127.0.0.1:1\n"


def test_a_first_node_that_comes_later_is_waited_for() -> None:
    """No order of starting is needed."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        threading.Timer(0.7, listening.listen).start()
        started = time.monotonic()
        node.wait_for("127.0.0.1", listening.getsockname()[1], 10)
        assert time.monotonic() - started > 0.5


def test_a_name_that_stands_for_the_loopback_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other nodes would connect to themselves; a named network card settles it."""
    with pytest.raises(ExampleError, match=r"localhost stands for .*127\.0\.0\.1.* can't reach: .*/etc/hosts"):
        reach.require_reachable("localhost")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth0")
    reach.require_reachable("localhost")


def test_a_name_without_an_address_is_refused() -> None:
    """With what would help."""
    with pytest.raises(ExampleError, match="can't be resolved, so other nodes can't be told"):
        reach.require_reachable("no-such-node.invalid")


# Like torchrun, which calls being asked to end a failure; its worker takes that for no reason, or for one.
LAUNCHER = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
"""
WORKER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("asked", flush=True), {then}))
print("up", flush=True)
time.sleep(60)
time.sleep(60)
"""


@pytest.mark.parametrize(("then", "signals", "code"), [("sys.exit(0)", 1, 0), ("None", 2, 1)])
def test_a_stop_reaches_the_workers_and_is_no_failure(then: str, signals: int, code: int) -> None:
    """The launcher ends as they do; asked once more, it is asked itself."""
    command = [sys.executable, "-c", LAUNCHER, WORKER.format(then=then)]
    program = f"import os, sys; from examples import node; sys.exit(node.attended({command!r}, os.environ))"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
    ) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == "up\n"
            os.killpg(process.pid, signal.SIGTERM)
            assert process.stdout.readline() == "asked\n"
            if signals == 2:
                os.killpg(process.pid, signal.SIGTERM)
            assert process.wait(timeout=10) == code
        finally:
            process.kill()


def test_a_second_request_during_the_first_goes_to_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that arrives while the workers are being asked counts as the second, whatever the timing."""
    relay = node.Relay(launcher=1)
    asked: list[int] = []

    def kill(pid: int, _number: int) -> None:
        asked.append(pid)
        if len(asked) == 1:
            relay.pass_on(signal.SIGTERM, None)

    monkeypatch.setattr(node, "children", lambda _pid: [11, 12])
    monkeypatch.setattr(os, "kill", kill)
    relay.pass_on(signal.SIGTERM, None)
    assert asked == [11, 1, 12]
