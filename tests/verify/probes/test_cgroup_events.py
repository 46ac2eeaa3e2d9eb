"""What a cgroup tells: processes killed for memory, and devices it does not allow; both versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.verify.checks.test_image import is_failure
from tests.verify.probes.test_system import write
from tests.verify.suite import CLAIMS
from verify.checks.container.limits import evaluate_memory_kills
from verify.checks.driver.devices import evaluate_nodes
from verify.model import Owner, Status
from verify.probes.cgroup_events import allowed, device_rules, memory_events, refusal

OWN = "0::/a\n4:memory:/docker/x\n5:devices:/docker/x\n"


@pytest.fixture
def own(tmp_path: Path) -> str:
    """The file that names this process's own cgroups."""
    write(tmp_path / "self", OWN)
    return str(tmp_path / "self")


def test_kills_are_read_under_v2_from_the_own_group_first(tmp_path: Path, own: str) -> None:
    """A parent's kills are other people's."""
    write(tmp_path / "fs/memory.events", "low 0\nmax 99\noom 9\noom_kill 9\n")
    assert memory_events(tmp_path / "fs", own) == {"kills": 9, "hits": 99}
    assert memory_events(tmp_path / "fs", own, whole=False)["kills"] is None
    write(tmp_path / "fs/a/memory.events", "low 0\nmax 7\noom 2\noom_kill 2\noom_group_kill 0\n")
    assert memory_events(tmp_path / "fs", own) == {"kills": 2, "hits": 7}


def test_kills_are_read_under_v1_from_a_containers_root(tmp_path: Path, own: str) -> None:
    """The own path does not exist inside the container; old kernels count no kills."""
    write(tmp_path / "fs/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    write(tmp_path / "fs/memory/memory.failcnt", "41\n")
    assert memory_events(tmp_path / "fs", own) == {"kills": 3, "hits": 41}
    write(tmp_path / "fs/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n")
    assert memory_events(tmp_path / "fs", own)["kills"] is None
    assert memory_events(tmp_path / "none", own) == {"kills": None, "hits": None}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"kills": 0, "hits": 0, "limit": None}, "no process was killed"),
        ({"kills": 0, "hits": 5, "limit": 1 << 30}, "(limit 1 GB); the limit was hit 5 times"),
        ({"kills": None, "hits": None, "limit": None}, "no cgroup counts"),
    ],
)
def test_a_group_without_kills_passes(facts: dict[str, Any], words: str) -> None:
    """Reaching the limit is not a fault: the page cache reaches it too."""
    verdict = evaluate_memory_kills(facts, CLAIMS)
    assert verdict.status is Status.PASS
    assert words in verdict.observed


def test_a_kill_fails_with_the_limit_and_the_flag() -> None:
    """Whoever started the container gave too little."""
    verdict = evaluate_memory_kills({"kills": 2, "hits": 9, "limit": 1 << 30}, CLAIMS)
    assert is_failure(verdict, "killed 2 processes", "limit 1 GB", "--memory")
    assert verdict.owner is Owner.START


RULES = "c *:* m\nb *:* m\nc 1:3 rwm\nc 195:* rw\nc 136:* rwm\n"


def test_rules_of_v1_are_read_and_matched(tmp_path: Path, own: str) -> None:
    """By kind, number and star; v2 has no such file."""
    write(tmp_path / "fs/devices/devices.list", RULES)
    rules = device_rules(tmp_path / "fs", own)
    assert rules is not None
    assert [allowed(rules, number) for number in ("c 195:7", "c 511:0", "b 8:0")] == ["rwm", "m", "m"]
    assert allowed(["a *:* rwm"], "c 195:0") == "rwm"
    assert device_rules(tmp_path / "none", own) is None


NODE = {"nodes": ["/dev/nvidia0"], "libraries": [], "numbers": {"/dev/nvidia0": "c 195:0"}}


@pytest.mark.parametrize(
    ("rules", "words"),
    [(["c 1:3 rwm"], "devices.list allows for c 195:0 (nothing)"), (None, "no file shows the rules under cgroup v2")],
)
def test_a_refused_node_is_explained_by_the_rules(rules: list[str] | None, words: str) -> None:
    """EPERM, with the rule that lacks where there is a list."""
    verdict = evaluate_nodes({**NODE, "opened": {"/dev/nvidia0": "EPERM"}, "rules": rules}, CLAIMS)
    assert is_failure(verdict, "EPERM", words, "recreate the container")
    assert verdict.owner is Owner.HOST


def test_nodes_that_open_need_no_rule_explained() -> None:
    """The good case: rules are looked at only where a node is refused."""
    nodes = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    facts = {"nodes": nodes, "libraries": [], "opened": dict.fromkeys(nodes, "ok"), "numbers": {}, "rules": None}
    assert evaluate_nodes(facts, CLAIMS).status is Status.PASS
    assert "rw is needed" in refusal(["c 1:3 rwm"], {"/dev/nvidia0": "c 195:0"})
