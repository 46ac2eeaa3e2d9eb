"""Quick looks, watching, the page for bug reports, and the suite as one file."""

from __future__ import annotations

import ast
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpuyard.acceptance.any_image import command, zip_suite
from gpuyard.engine.start import Gpus
from tests.verify.suite import CLAIMS, NO_CLAIMS, ROOT, fake, verify
from verify import environment
from verify.engine.profiles import find_profile, plan_profile
from verify.engine.registry import CHECKS
from verify.engine.watch import look, watch
from verify.model import Facts, Isolation


def test_the_quick_profile_needs_no_torch_and_never_starts_the_driver() -> None:
    """Nothing in it, or that it needs, imports torch or calls cuInit."""
    plan = plan_profile(find_profile("quick"), CHECKS, NO_CLAIMS, (), gpus=1)
    assert len(plan.checks) > 10
    assert not [check.id for check in plan.checks if check.isolation is Isolation.TORCH]
    assert "cuda-init" not in {check.id for check in plan.checks}
    assert {"nvml", "device-nodes"} <= plan.required


def test_a_quick_look_takes_a_moment() -> None:
    """Half a second on a quiet machine; here, where others compute, what it computes itself is counted."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = verify("--quick", "--json", "-")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["profile"]["name"] == "quick"
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 1


def test_a_gpu_that_is_lost_while_watching_is_told_once(tmp_path: Path) -> None:
    """A line at the start and at each change; the last look decides the exit code."""
    flag = tmp_path / "lost"
    check = fake("nvml", lambda: {"ok": not flag.exists()})
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        flag.touch()

    assert watch([check, fake("other")], CLAIMS, 0.01, rounds=5, tell=tell) == 1
    assert len(said) == 2
    assert "ok: {'ok': True}" in said[0]
    assert "The first broken link is nvml: not ok" in said[1]


def test_an_interrupt_in_the_middle_of_a_look_ends_the_watch() -> None:
    """The run of checks swallows it; the watch must not go on, and the look that was cut short says nothing."""
    said: list[str] = []

    def interrupt() -> Facts:
        if said:
            os.kill(os.getpid(), signal.SIGINT)
        return {"ok": True}

    assert watch([fake("nvml", interrupt)], CLAIMS, 0.01, rounds=5, tell=said.append) == 0
    assert len(said) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_machine_without_a_gpu_is_watched_as_such() -> None:
    """Nothing is claimed about what is not there."""
    code, text = look([check for check in CHECKS if check.id == "nvml"], NO_CLAIMS)
    assert (code, "no GPU was given" in text) == (3, True)


@pytest.mark.parametrize("interval", ["0", "-3", "often"])
def test_an_interval_that_is_none_is_refused(interval: str) -> None:
    """One line, exit 2."""
    ended = verify(f"--watch={interval}")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JUPYTER_TOKEN", "geheim"),
        ("AWS_SECRET_ACCESS_KEY", "geheim"),
        ("http_proxy", "http://me:geheim@proxy:3128"),
        ("NOTE", "use hf_geheimgeheim here"),
        ("DATABASE_PASSWD", "geheim"),
    ],
)
def test_secrets_are_masked_by_name_and_by_form(name: str, value: str) -> None:
    """The variable stays, its secret does not."""
    line = environment.masked({name: value, "HOME": "/home/me"})
    assert "geheim" not in line[name]
    assert line["HOME"] == "/home/me"


def test_the_page_for_a_bug_report_comes_whole_without_torch() -> None:
    """System, GPU, limits, packages, variables; on one page."""
    ended = verify("env", MY_TOKEN="geheim")
    assert ended.returncode == 0
    for part in ("system", "image", "gpu", "limits", "packages", "environment"):
        assert f"\n{part}\n" in f"\n{ended.stdout}"
    assert "geheim" not in ended.stdout
    assert "MY_TOKEN" in ended.stdout


def test_the_suite_runs_out_of_one_file(tmp_path: Path) -> None:
    """Tables and the report's page come along; the folder it runs in is not the checkout."""
    suite = zip_suite(tmp_path / "verify.pyz")
    page, report = tmp_path / "report.html", tmp_path / "report.json"
    words = [sys.executable, str(suite), "--only", "limits", "--html", str(page), "--json", str(report)]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "<style>" in page.read_text()
    assert json.loads(report.read_text())["counts"]["pass"] == 4


def test_an_image_that_is_not_ours_is_only_looked_at() -> None:
    """The suite is mounted read-only, the image's own start is left out, options are passed on."""
    words = command("any:1", Path("/tmp/verify.pyz"), Gpus(("all",)), "1g", ["--only", "driver"])
    assert words[:5] == ["docker", "run", "--rm", "--gpus", "all"]
    assert "/tmp/verify.pyz:/gpuyard-verify.pyz:ro" in words
    assert words[words.index("--entrypoint") + 1] == "sh"
    assert words[-2:] == ["--only", "driver"]


@pytest.mark.parametrize("file", sorted((ROOT / "verify").rglob("*.py")), ids=lambda file: file.name)
def test_every_file_of_the_suite_parses_on_python_3_9(file: Path) -> None:
    """The oldest Python that images still have."""
    ast.parse(file.read_text(), feature_version=(3, 9))
