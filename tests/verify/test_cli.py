"""The command line as users meet it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuyard.waiting import until
from tests.faults.stubs import compile_stub
from tests.verify.suite import ROOT, verify
from verify import messages
from verify.claims import BadClaims
from verify.cli import main
from verify.engine.profiles import UnknownProfile
from verify.engine.registry import CHECKS, UnknownName, all_needs
from verify.explain import explain
from verify.model import Check, Level
from verify.report.output import UnwritableReport

GPU_FREE = not list(Path("/dev").glob("nvidia*"))


def test_the_list_shows_every_check_without_torch() -> None:
    """At least 25 checks, and listing them imports no torch."""
    done = verify("--list", PYTHONVERBOSE="1")
    assert done.returncode == 0
    assert len([line for line in done.stdout.splitlines() if any(f" {lv.value} " in line for lv in Level)]) >= 25
    assert "import 'torch'" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "shm-sice"], "shm-size"),
        (["--require", "gpus"], "gpu"),
        (["--profile", "cpus"], "cpu"),
        (["explain", "cuda-inti"], "cuda-init"),
        (["--level", "moon"], "there are: container, cpu, gpu"),
        (["--level", "multi-gpus"], "nearest: multi-gpu"),
        (["--level", "containr"], "nearest: container"),
        (["--jsn", "x"], "--jsn"),
        (["explain"], "verify explain ID"),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_the_nearest(arguments: list[str], words: str) -> None:
    """Wrong usage is one line on stderr and exit 2."""
    done = verify(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert re.match(r"verify: error\[verify-(usage|unknown-name)\]: ", done.stderr)
    assert done.stdout == ""


def test_explain_says_what_why_and_what_to_do() -> None:
    """One check's page holds its reason and its remedy."""
    done = verify("explain", "shm-size")
    assert done.returncode == 0
    assert "Why: " in done.stdout
    assert "--shm-size=8g" in done.stdout


def test_ids_of_the_start_and_of_verify_itself_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """With what they mean and at least one thing to do; every id that verify prints is in its table."""
    assert {"verify-usage", "setting-invalid"} <= set(messages.known())
    for id_, message in messages.known().items():
        assert main(["explain", id_]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{id_}\n")
        assert message.means in said
        assert message.repair
    printed = {UnknownName.id, UnknownProfile.id, UnwritableReport.id, BadClaims.id, "verify-usage"}
    assert printed == set(messages.OWN)


def test_the_starts_messages_may_be_missing(tmp_path: Path) -> None:
    """As in one zip file, in an image that is not ours, or on a Python without a TOML reader."""
    assert messages.start_messages(tmp_path / "none.toml") == {}
    with pytest.raises(UnknownName, match="verify-usage"):
        explain(CHECKS, "verify-usages")


def test_the_drivers_checks_explain_each_code(capsys: pytest.CaptureFixture[str]) -> None:
    """What it means, whose it is, what repairs it; for CUDA's and for NVML's."""
    for check, code, words in (("cuda-init", "802", "fabricmanager"), ("nvml", "18", "restart the host")):
        assert main(["explain", check]) == 0
        said = " ".join(capsys.readouterr().out.partition("Codes:")[2].split())
        line = said.partition(f" {code}: ")[2]
        assert "To do (host)" in line
        assert words in line
    main(["explain", "shm-size"])
    assert "Codes:" not in capsys.readouterr().out


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_can_be_explained(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    """Each says what it does, why, and what to do; a probe with its arguments filled in shows its own docstring."""
    assert main(["explain", check.id]) == 0
    page = capsys.readouterr().out
    assert "\nWhat: " in page
    # The docstring of functools.partial, in older and in newer versions of Python.
    assert "partial application" not in page
    assert "partial(func" not in page
    assert "Why: " in page
    assert "\n  - " in page


def test_ids_are_unique_and_needs_come_first() -> None:
    """A check can only be blocked by one that ran before it."""
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    for position, check in enumerate(CHECKS):
        assert set(all_needs(check)) <= set(ids[:position]), check.id


def test_json_on_stdout_is_nothing_but_json(tmp_path: Path) -> None:
    """The verdict goes to stderr; files are written beside."""
    done = verify(
        "--only", "limits", "--json", "-", "--junit", str(tmp_path / "r.xml"), "--html", str(tmp_path / "r.html")
    )
    report = json.loads(done.stdout)
    assert report["schema"] == "gpuyard.verify/1"
    assert report["command"][:3] == ["verify", "--only", "limits"]
    assert report["result"]["exit_code"] == done.returncode == 0
    assert done.stderr.strip() == report["result"]["verdict"]
    assert (tmp_path / "r.xml").read_text().startswith("<?xml")
    assert "<html" in (tmp_path / "r.html").read_text()


def test_a_reader_that_leaves_changes_no_exit_code() -> None:
    """verify | head keeps the run's own answer, here that a need is not met."""
    inner = f"{sys.executable} -m verify --only python --json - ; echo $? >&2"
    done = subprocess.run(
        ["sh", "-c", f"({inner}) | true"],
        cwd=ROOT,
        env={**os.environ, "GPUYARD_IMAGE_JSON": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == "3"
    assert "Traceback" not in done.stderr


def test_a_disk_that_fills_up_is_one_line() -> None:
    """A report that cannot be written in the end is said with the verdict, not with a traceback."""
    done = verify("--only", "limit-stack", "--json", "/dev/full")
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "the checks did run" in done.stderr
    assert "Traceback" not in done.stderr


def test_progress_goes_to_a_terminal_only() -> None:
    """On a terminal's stderr each check is named while it runs; a pipe stays clean."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "verify", "--only", "limits"]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=follower, check=True)
    os.set_blocking(leader, False)
    shown = os.read(leader, 65536).decode()
    os.close(follower)
    os.close(leader)
    assert "[2/4] limit-memlock" in shown
    assert verify("--only", "limits", "--quiet").stderr == ""


def test_nothing_of_the_progress_is_left_where_only_carriage_returns_work() -> None:
    """As in a notebook, whose output overwrites at a carriage return and knows no sequence that clears a line."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "verify", "--only", "limits", "--quiet", "--no-color"]
    loud = [word for word in command if word != "--quiet"]
    subprocess.run(loud, cwd=ROOT, stdout=follower, stderr=follower, check=True)
    os.set_blocking(leader, False)
    said = os.read(leader, 65536).decode()
    os.close(follower)
    os.close(leader)
    lines: list[str] = []
    for raw in said.replace("\r\n", "\n").split("\n"):
        seen = ""
        for part in raw.split("\r"):
            seen = part + seen[len(part) :]
        lines.append(seen.rstrip())
    verdict = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    assert lines[0] == verdict
    assert "\033[K" not in said


def test_quiet_prints_the_verdict_only() -> None:
    """One paragraph, no table."""
    assert verify("--only", "limit-stack", "--quiet").stdout == "The required check passed.\n"


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_no_colour_leaves_a_pipe(environment: dict[str, str]) -> None:
    """A pipe gets no escape sequences, with NO_COLOR or without."""
    assert "\033" not in verify("--only", "limits", **environment).stdout


@pytest.mark.skipif(not GPU_FREE, reason="this machine has a GPU")
def test_a_required_gpu_that_is_not_here_is_exit_3_in_words() -> None:
    """The verdict says that no GPU was given, how to give one, and how to do without."""
    done = verify("--only", "driver", "--quiet")
    assert done.returncode == 3
    for words in ("No GPU was given to this container", "--gpus all", "--profile cpu"):
        assert words in done.stdout


def test_a_broken_claims_file_is_one_line(tmp_path: Path) -> None:
    """A damaged image.json gives one line, not a traceback."""
    (tmp_path / "image.json").write_text("{")
    done = verify("--only", "limits", GPUYARD_IMAGE_JSON=str(tmp_path / "image.json"))
    assert done.returncode == 3
    assert "expected a JSON object" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_dockers_default_shared_memory_fails_with_the_flag() -> None:
    """64 MB at /dev/shm, as docker gives: exit 1 and the flag to add."""
    inner = f"mount -t tmpfs -o size=64m tmpfs /dev/shm && exec {sys.executable} -m verify --only shm-size --quiet"
    done = subprocess.run(["unshare", "-m", "sh", "-c", inner], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "/dev/shm has 64 MB" in done.stdout
    assert "--shm-size=8g" in done.stdout


def marked(mark: str) -> list[int]:
    """Processes whose environment holds the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("number", "check"), [(signal.SIGINT, "cuda-init"), (signal.SIGTERM, "torch-import")])
def test_an_interrupt_ends_within_a_second_and_leaves_nothing(
    number: signal.Signals, check: str, tmp_path: Path
) -> None:
    """In a driver that never answers or in torch's import: report written, exit 3, no process stays."""
    if check == "torch-import":
        pytest.importorskip("torch")
    folder = compile_stub(tmp_path).parent
    # The least of a few tries counts: what else this machine does makes one longer, never shorter.
    assert any(interrupted_after(number, check, folder) < 1 for _ in range(3))


def interrupted_after(number: signal.Signals, check: str, folder: Path) -> float:
    """Seconds from the signal to the end of a run that was in the middle of the check."""
    mark = f"MARK={os.getpid()}-{number}-{time.monotonic_ns()}"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "STUB_HANG": "1", "MARK": mark[5:]}
    command = [sys.executable, "-m", "verify", "--only", f"limit-stack,{check}", "--json", "-"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert until(lambda: len(marked(mark)) >= 2, 30)
        time.sleep(0.5)
        process.send_signal(number)
        started = time.monotonic()
        output, _ = process.communicate(timeout=10)
        taken = time.monotonic() - started
    assert process.returncode == 3
    assert "interrupted" in json.loads(output)["result"]["verdict"]
    assert until(lambda: not marked(mark), 5), marked(mark)
    return taken
