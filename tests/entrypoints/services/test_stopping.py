"""Who is told first when the container stops: work, and neither what carries it nor what it started itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.services import stopping
from entrypoints.gpuyard_start.services.stopping import Process

# pid, parent, name
INFRASTRUCTURE = [
    (1, 0, "tini"),
    *((8, 1, "s6-keeper"), (2, 8, "s6-svscan")),
    *((3, 2, "s6-supervise"), (4, 2, "s6-supervise"), (5, 2, "s6-supervise"), (6, 2, "s6-supervise")),
    *((7, 2, "stop"), (10, 3, "jupyter-lab"), (20, 4, "sshd"), (21, 6, "s6-log"), (30, 5, "run"), (31, 30, "sleep")),
]
ENTERED = [
    *((40, 10, "python"), (41, 40, "pt_data_worker"), (42, 10, "bash"), (43, 42, "python")),
    *((50, 20, "sshd-session"), (51, 50, "sshd-session"), (52, 51, "bash"), (53, 52, "torchrun"), (54, 53, "python")),
]
OUTSIDE = [(60, 1, "tmux: server"), (61, 60, "bash"), (62, 61, "train"), (70, 0, "python"), (80, 1, "nohupped")]


def world(*rows: tuple[int, int, str]) -> dict[int, Process]:
    """A table of processes."""
    return {pid: Process(pid, parent, name, "0") for pid, parent, name in rows}


def told(others: bool, *rows: tuple[int, int, str]) -> set[int]:
    """The numbers of those that are told."""
    return {process.pid for process in stopping.workers(world(*INFRASTRUCTURE, *rows), others)}


def test_an_idle_container_has_nobody_to_tell() -> None:
    """Neither the services nor the watch over memory nor their loggers."""
    assert told(True) == set()


def test_what_the_supervisor_runs_below_is_not_waited_for() -> None:
    """An engine's own first process (--init), which ends when the supervisor has."""
    rows = [(pid, 9 if parent == 1 else parent, name) for pid, parent, name in INFRASTRUCTURE[1:]]
    below = world((1, 0, "docker-init"), (9, 1, "tini"), *rows, *ENTERED)
    assert {process.pid for process in stopping.workers(below, True)} == {40, 43, 53}


def test_kernels_and_programs_of_sessions_are_told_at_their_top() -> None:
    """Not their workers, whose sudden end would look like a crash, and no shell."""
    assert told(True, *ENTERED) == told(False, *ENTERED) == {40, 43, 53}


def test_logins_are_hung_up_on_at_their_top() -> None:
    """The session's own process, neither the server nor the shell; an older sshd names both alike."""
    assert [process.pid for process in stopping.logins(world(*INFRASTRUCTURE, *ENTERED))] == [50]
    assert [process.pid for process in stopping.logins(world(*INFRASTRUCTURE, (50, 20, "sshd"), (51, 50, "sshd")))] == [
        50
    ]
    assert stopping.logins(world(*INFRASTRUCTURE)) == []


def test_what_left_its_session_is_told_unless_a_command_runs() -> None:
    """tmux, docker exec and nohup; the signal has reached a command and its children already."""
    assert told(True, *OUTSIDE) == {62, 70, 80}
    assert told(False, *OUTSIDE, (90, 1, "python"), (91, 90, "python")) == set()


def test_a_service_that_is_down_is_no_hindrance() -> None:
    """Its supervisor has no child."""
    assert stopping.workers(world(*INFRASTRUCTURE[:5]), True) == []


def test_a_process_is_read_as_the_kernel_shows_it() -> None:
    """This one is there under its parent; a name may hold anything."""
    found = stopping.read(os.getpid())
    assert found is not None
    assert found.parent == os.getppid()
    assert stopping.processes()[os.getpid()] == found
    assert stopping.read(2**22 + 1) is None


@pytest.mark.parametrize("name", ["a b", ") R 1", "(x)"])
def test_a_name_does_not_confuse_the_reader(tmp_path: Path, name: str) -> None:
    """The kernel writes it unquoted between parentheses."""
    (tmp_path / "7").mkdir()
    rest = " ".join(["S", "3", *["0"] * 17, "99", "0"])
    (tmp_path / "7" / "stat").write_text(f"7 ({name}) {rest}\n")
    assert stopping.processes(tmp_path) == {7: Process(7, 3, name, "99")}


def test_a_zombie_is_nobody() -> None:
    """It has ended; its parent has not looked yet."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert stopping.read(child.pid) is None
    assert stopping.terminate([Process(child.pid, 1, "gone", "0")]) == []


def test_the_hosts_processes_are_nobodys_to_tell(tmp_path: Path) -> None:
    """They are seen with ``--pid host``, and those of the same user could be told to end."""
    for pid, group in (("7", "0::/"), ("8", "0::/../../user.slice"), ("self", "0::/")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(f"{pid} (python) S 1 " + "0 " * 17 + "5\n")
        (tmp_path / pid / "cgroup").write_text(group + "\n")
    assert set(stopping.processes(tmp_path)) == {7}
