"""Ranks that lie, die or hang are named; a hang ends with a diagnosis."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from tests.verify.suite import CLAIMS, verify
from verify.checks.container import network
from verify.checks.distributed import nccl
from verify.checks.distributed import ranks as distributed
from verify.engine.ranks import run_ranks, troubles
from verify.model import Owner, Status

RANK = {"timed_out": False, "crash": "", "error": "", "output": "", "facts": {"wrong": []}}
SHM = {"total": 64 << 20, "free": 64 << 20}
AROUND: dict[str, Any] = {"variables": {}, "interfaces": ["lo", "eth0"], "shm": SHM, "mapped": [], "numa_refused": True}
GPU = {"wrong": [], "device": "Fake 1", "gb_per_second": 100.0, "gradients": [1.0], "difference": 0.0}


def ranks(**changes: Any) -> dict[str, Any]:
    """Two ranks, of which the second is different."""
    return {"ranks": [RANK, {**RANK, **changes}], **AROUND}


def gpus(**changes: Any) -> dict[str, Any]:
    """Two ranks with a GPU each."""
    both = [{**RANK, "facts": GPU}, {**RANK, "facts": {**GPU, **changes}}]
    return {"ranks": both, "count": 2, "pairs": 2, "direct": 0, "without_p2p": None, **AROUND}


def work(rank: int, world: int, port: int) -> dict[str, Any]:
    """Rank 1 hangs unless direct access is off."""
    del world, port
    if rank == 1 and not os.environ.get("NCCL_P2P_DISABLE"):
        time.sleep(60)
    return {"rank": rank}


def die(rank: int, world: int, port: int) -> dict[str, Any]:
    """Rank 1 dies, rank 0 raises."""
    del world, port
    if rank:
        os.abort()
    raise RuntimeError("no peer")


def test_ranks_that_hang_die_or_raise_are_told_apart() -> None:
    """Each has an outcome of its own, and none is left."""
    said, hung = troubles(run_ranks(die, 2, 5))
    assert said == ["rank 0: RuntimeError: no peer", "rank 1 was killed by SIGABRT"]
    assert hung == []
    started = time.monotonic()
    assert troubles(run_ranks(work, 2, 3)) == (["rank 1 hung"], [1])
    assert time.monotonic() - started < 30


def test_a_hang_that_ends_without_p2p_is_the_hosts() -> None:
    """The second try with the variable decides; the remedy names it."""
    facts = {**nccl.measure_gpus(work, 2, 0.5), "count": 2}
    assert facts["without_p2p"] is True
    assert "NCCL_P2P_DISABLE" not in os.environ
    verdict = nccl.evaluate_gpus(facts, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.HOST)
    assert "NCCL_P2P_DISABLE=1" in verdict.remedy


def abort(rank: int, world: int, port: int) -> dict[str, Any]:
    """Rank 1 is aborted by a watchdog, as NCCL's does it, unless direct access is off."""
    del world, port
    if rank == 1 and not os.environ.get("NCCL_P2P_DISABLE"):
        os.write(2, b"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL ran for 60000 milliseconds\n")
        os.abort()
    return {"rank": rank}


def give_up(rank: int, world: int, port: int) -> dict[str, Any]:
    """Rank 0's own limit runs out, unless direct access is off."""
    del world, port
    if rank == 0 and not os.environ.get("NCCL_P2P_DISABLE"):
        raise RuntimeError("Timed out waiting 60000ms for recv operation to complete")
    return {"rank": rank}


@pytest.mark.parametrize(("work", "rank"), [(abort, 1), (give_up, 0)])
def test_a_limit_inside_the_ranks_is_a_hang_too(work: Any, rank: int) -> None:
    """NCCL's watchdog may end a hang before we do: it is tried again without direct access all the same."""
    facts = {**nccl.measure_gpus(work, 2, 5), "count": 2}
    assert troubles(facts["ranks"])[1] == [rank]
    assert facts["without_p2p"] is True
    assert nccl.evaluate_gpus(facts, CLAIMS).owner is Owner.HOST


def test_the_checks_limit_leaves_room_for_the_second_try() -> None:
    """Counting, two tries, and time to answer."""
    check = next(check for check in nccl.CHECKS)
    assert check.timeout > nccl.COUNT_TIMEOUT + 2 * nccl.NCCL_TIMEOUT


def test_a_crash_while_counting_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not a machine without GPUs."""
    monkeypatch.setattr(nccl, "gpu_signs", lambda: {"nodes": ["/dev/nvidia0"], "libraries": []})
    monkeypatch.setattr(nccl, "_count", os.abort)
    verdict = nccl.evaluate_gpus(nccl.probe_gpus(), CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.HOST)
    assert "could not be counted: the process was killed by SIGABRT" in verdict.observed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"timed_out": True}, "rank 1 hung for"),
        ({"crash": "SIGBUS"}, "rank 1 was killed by SIGBUS"),
        ({"error": "x\nRuntimeError: Unable to find address for: nope"}, "Unable to find address"),
        ({"facts": {"wrong": ["all-reduce"]}}, "wrong values: rank 1: all-reduce"),
    ],
)
def test_a_rank_in_trouble_fails_with_its_number(changes: dict[str, Any], words: str) -> None:
    """Nothing but right values on both passes."""
    verdict = distributed.evaluate_values(ranks(**changes), CLAIMS)
    assert verdict.status is Status.FAIL
    assert words in verdict.observed
    assert verdict.remedy


def test_ipv6_noise_is_called_noise() -> None:
    """Messages with errno 97 mean nothing where the ranks met."""
    verdict = distributed.evaluate_values(ranks(output="[c10d] socket (errno: 97 - Address family)"), CLAIMS)
    assert verdict.status is Status.PASS
    assert "harmless" in verdict.observed
    assert distributed.evaluate_values(ranks(), CLAIMS).observed == "2 ranks met, all values right"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.PASS),
        ({"wrong": ["reduce-scatter"]}, Status.FAIL),
        ({"gradients": [2.0]}, Status.FAIL),
        ({"difference": 1.0}, Status.FAIL),
        ({"gb_per_second": 0.9}, Status.FAIL),
    ],
)
def test_every_gpu_has_to_agree(changes: dict[str, Any], status: Status) -> None:
    """Values, gradients, and the bandwidth is shown on a pass."""
    verdict = nccl.evaluate_gpus(gpus(**changes), CLAIMS)
    assert verdict.status is status
    assert status is Status.FAIL or "100 GB/s (floor 1)" in verdict.observed
    assert status is Status.FAIL or "direct access between 0 of 2 pairs" in verdict.observed


def test_a_rank_without_its_gpu_is_named() -> None:
    """The error of that rank stands in the verdict, with SYS_NICE and shared memory among the remedies."""
    facts = gpus()
    facts["ranks"][1] = {**RANK, "error": "RuntimeError: invalid device ordinal"}
    verdict = nccl.evaluate_gpus(facts, CLAIMS)
    assert "rank 1: RuntimeError: invalid device ordinal" in verdict.observed
    assert "SYS_NICE" in verdict.remedy
    assert "SYS_NICE" not in nccl.evaluate_gpus({**facts, "numa_refused": False}, CLAIMS).remedy
    assert nccl.evaluate_gpus({"count": 1}, CLAIMS).status is Status.SKIP


def test_real_ranks_meet_reduce_and_average() -> None:
    """By fork and by torchrun's agent, with torch's own gloo."""
    pytest.importorskip("torch")
    ended = verify("--only", "distributed", "--json", "-")
    report = json.loads(ended.stdout)
    assert ended.returncode == 0, report["result"]
    seen = {f["check"]: f["observed"] for f in report["findings"]}
    assert seen["torchrun-two-ranks"] == seen["gloo-two-ranks"] == "2 ranks met, all values right"
    assert "gradients equal on 2 ranks" in seen["ddp-gradients"]


def test_an_interface_that_does_not_exist_is_named() -> None:
    """gloo's own error, explained; the interface check says it without torch."""
    pytest.importorskip("torch")
    ended = verify("--only", "gloo-two-ranks,interface", "--json", "-", GLOO_SOCKET_IFNAME="nope7")
    found = {f["check"]: f for f in json.loads(ended.stdout)["findings"]}
    assert ended.returncode == 1
    assert "matches none of" in found["interface"]["observed"]
    assert found["gloo-two-ranks"]["data"]["caused_by"] == "interface"
    assert found["gloo-two-ranks"]["remedy"] == found["interface"]["remedy"]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("", ["eth0", "ib0"]),
        ("eth", ["eth0"]),
        ("=eth", []),
        ("=ib0", ["ib0"]),
        ("^docker0", ["lo", "eth0", "ib0"]),
        ("^=lo,docker0", ["eth0", "ib0"]),
    ],
)
def test_ncclis_choice_of_interface_is_followed(value: str, names: list[str]) -> None:
    """Prefixes, exclusion, exact names; ^docker0 alone brings lo back."""
    assert network.chosen(["lo", "eth0", "docker0", "ib0"], value) == names


@pytest.mark.parametrize(
    ("addresses", "error", "status"),
    [
        (["127.0.1.1", "::1"], "", Status.FAIL),
        ([], "Name or service not known", Status.FAIL),
        (["172.17.0.2"], "", Status.PASS),
        (["fe80::1%eth0"], "", Status.PASS),
    ],
)
def test_a_hostname_on_the_loopback_fails(addresses: list[str], error: str, status: Status) -> None:
    """torch would warn and go on with the loopback."""
    facts = {"name": "node0", "addresses": addresses, "error": error}
    assert network.evaluate_hostname(facts, CLAIMS).status is status


@pytest.mark.parametrize(
    ("nodes", "error", "usable", "status"),
    [
        ([], "libibverbs.so.1: cannot open", 0, Status.PASS),
        (["/dev/infiniband/uverbs0"], "", 1, Status.PASS),
        (["/dev/infiniband/uverbs0"], "", 0, Status.FAIL),
        (["/dev/infiniband/uverbs0"], "libibverbs.so.1: cannot open", 0, Status.FAIL),
    ],
)
def test_infiniband_needs_its_library_and_a_provider(nodes: list[str], error: str, usable: int, status: Status) -> None:
    """Without InfiniBand nobody needs them; with it NCCL would go over TCP and not say so."""
    facts = {"nodes": nodes, "error": error, "usable": usable}
    verdict = network.evaluate_infiniband(facts, CLAIMS)
    assert verdict.status is status
    assert status is Status.PASS or "ibverbs-providers" in verdict.remedy
