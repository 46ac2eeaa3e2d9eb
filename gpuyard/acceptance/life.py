"""A container's life: what a command prints, when the services answer, and how it stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuyard.acceptance.world import ANY, Outside, World
from gpuyard.engine.session import STOP_SECONDS, execute
from verify.model import Claims, Evaluate, Facts, Level, Owner, Status, Verdict

WORD = "x"
KILLED = 137


def probe_echo(world: World) -> Facts:
    """What ``docker run IMAGE echo x`` prints on its two streams."""
    start = replace(world.start, command=("echo", WORD), ports=(), volumes=())
    container = world.session.start(start)
    try:
        code = container.wait(timeout=60)["StatusCode"]
        out = container.logs(stdout=True, stderr=False).decode(errors="replace")
        return {"code": code, "stdout": out}
    finally:
        container.remove(force=True, v=True)


def evaluate_echo(facts: Facts, _claims: Claims) -> Verdict:
    """Fails if the start prints anything on stdout, which would end up in a user's pipe."""
    expected = f"exactly {WORD!r} on stdout, exit code 0"
    if facts["code"] != 0 or facts["stdout"] != f"{WORD}\n":
        observed = f"exit code {facts['code']}, stdout {facts['stdout'][:200]!r}"
        return Verdict(Status.FAIL, observed, expected, "entrypoints/ must log to stderr only", Owner.IMAGE)
    return Verdict(Status.PASS, f"exactly {WORD!r}", expected)


def probe_ready(world: World) -> Facts:
    """The verdict of the image's own health check, run now."""
    test: Sequence[str] = (world.config.get("Healthcheck") or {}).get("Test") or []
    command = list(test[1:]) if test[:1] == ["CMD"] else ["/bin/sh", "-c", " ".join(test[1:])]
    result = execute(world.container, command)
    return {"seconds": round(world.waited, 1), "health": result.code, "said": (result.out + result.err).strip()}


def evaluate_ready(facts: Facts, _claims: Claims) -> Verdict:
    """Fails if the services answer and the health check reports a fault."""
    expected = "every service answers and the health check agrees"
    if facts["health"] != 0:
        observed = f"the health check exits {facts['health']}: {facts['said'][-300:]}"
        return Verdict(Status.FAIL, observed, expected, "entrypoints/health", Owner.IMAGE)
    data = {"seconds": facts["seconds"]}
    return Verdict(Status.PASS, f"all answer {facts['seconds']} s after the start", expected, data=data)


def probe_stop(world: World) -> Facts:
    """How long ``docker stop`` takes, and the container's exit code."""
    started = time.monotonic()
    world.container.stop(timeout=STOP_SECONDS)
    seconds = time.monotonic() - started
    return {"seconds": round(seconds, 1), "code": world.container.wait(timeout=30)["StatusCode"]}


def evaluate_stop(facts: Facts, _claims: Claims) -> Verdict:
    """Fails on a container that had to be killed: its work would be lost."""
    expected = f"gone within {STOP_SECONDS} s of SIGTERM, not killed"
    if facts["code"] == KILLED or facts["seconds"] >= STOP_SECONDS:
        observed = f"exit code {facts['code']} after {facts['seconds']} s"
        remedy = "pass SIGTERM on to every service (tini -g, services under the supervisor)"
        return Verdict(Status.FAIL, observed, expected, remedy, Owner.IMAGE)
    return Verdict(Status.PASS, f"{facts['seconds']} s, exit code {facts['code']}", expected)


def _check(name: str, title: str, probe: Callable[[World], Facts], evaluate: Evaluate, service: str = "") -> Outside:
    return Outside(name, "start", Level.CONTAINER, title, probe, evaluate, service=service)


FIRST = [
    _check("stdout-pure", "A command's stdout is its own", probe_echo, evaluate_echo),
    _check("services-ready", "The services answer, so the health check says", probe_ready, evaluate_ready, ANY),
]
LAST = [_check("stops-in-time", "The container stops when asked", probe_stop, evaluate_stop)]
