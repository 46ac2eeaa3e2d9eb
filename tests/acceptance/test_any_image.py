"""`gpuyard verify --image`: ours by name, any other by its tag; what cannot be meant is refused before the engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuyard.acceptance import reports
from gpuyard.acceptance.any_image import diagnose, is_reference
from gpuyard.cli import main
from gpuyard.commands.tree import application
from gpuyard.engine.start import Gpus
from gpuyard.errors import UserError
from tests.refusals import refused
from verify.model import Claims, Finding, Level, Status, Verdict
from verify.report.results import build


@pytest.mark.parametrize(
    ("word", "is_one"),
    [
        ("workbench", False),
        ("runtime", False),
        ("pytorch-cuda:v1", True),
        ("registry.example/team/image", True),
        ("a@sha256:" + "0" * 64, True),
    ],
)
def test_an_image_of_somebody_else_is_known_by_its_form(word: str, is_one: bool) -> None:
    """A tag, a digest or a registry."""
    assert is_reference(word) is is_one


@pytest.mark.parametrize(
    ("words", "id", "named"),
    [
        (["--image", "workbnech"], "image-unknown", "'workbench'"),
        (["--image", "ubuntu"], "image-unknown", "ubuntu:TAG"),
        (["--image", "a:1", "--only", "shm-sise"], "check-unknown", "nearest: shm-size"),
        (["--image", "a:1", "--gpus", "many"], "gpus-invalid", "many"),
        (["--image", "a:1", "--shm-size", "big"], "size-invalid", "big"),
        (["9.9", "--image", "a:1"], "line-beside-reference", "9.9"),
        (["--build", "--image", "a:1"], "option-without-effect", "--build"),
        (["--image", "a:1", "--report-dir", "/proc/none"], "report-not-writable", "/proc/none"),
        (["--report-dir", "/proc/none"], "report-not-writable", "/proc/none"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    words: list[str], id: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before an engine is looked for."""
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: pytest.fail("the engine was asked"))
    ended = CliRunner().invoke(application(), ["verify", *words])
    assert isinstance(ended.exception, UserError)
    assert (ended.exception.id, ended.exception.exit_code) == (id, 2)
    assert named in str(ended.exception)
    assert "\n" not in str(ended.exception)


def answering(monkeypatch: pytest.MonkeyPatch, code: int, out: str = "") -> None:
    """docker run ends with that code and output."""
    monkeypatch.setattr("subprocess.run", lambda words, **_: subprocess.CompletedProcess(words, code, out))


@pytest.mark.parametrize("code", [125, 126, 127])
def test_an_image_that_is_absent_or_has_no_shell_is_refused(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what docker run ends with."""
    answering(monkeypatch, code)
    with refused("image-not-runnable", "a:1"):
        diagnose("a:1", Gpus(), "1g", [])


@pytest.mark.parametrize(("code", "ends"), [(2, 2), (0, 3)])
def test_an_image_without_python_has_no_report(code: int, ends: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own exit code is kept; no report is never a pass."""
    answering(monkeypatch, code, "not JSON")
    with refused("suite-without-report", "a:1", code=ends):
        diagnose("a:1", Gpus(), "1g", [])


class Engine:
    """A client that knows one image."""

    api = type("Api", (), {"base_url": "http+docker://x"})
    images = type("Images", (), {"get": lambda _name: type("Image", (), {"id": "sha256:" + "cd" * 32})})

    def info(self) -> dict[str, str]:
        """Nothing about GPUs."""
        return {}


def test_the_report_about_another_image_is_kept_and_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the folder of --report-dir, under the image's name and digest; its exit code is the command's."""
    finding = Finding("a-check", "g", Level.IMAGE, "A title", Verdict(Status.PASS, "well"), True, 0.1)
    made = build([finding], "2026-01-01T00:00:00Z", 1.0, ["verify"], Claims({}, {}), "only", ["a-check"], 3, "Well.")
    answering(monkeypatch, 3, json.dumps(made.to_dict()))
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: None)
    monkeypatch.setattr("gpuyard.engine.daemon.client", Engine)
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--image", "team/a:1", "--gpus", "none", "--report-dir", str(tmp_path)])
    assert ended.value.code == 3
    written = sorted(file.name for file in tmp_path.iterdir())
    assert written == [f"team-a-1-cdcdcdcdcdcd.{ending}" for ending in ("html", "json", "xml")]
    assert "a-check" in capsys.readouterr().out
    assert reports.load(tmp_path / written[1]).digest == "sha256:" + "cd" * 32
