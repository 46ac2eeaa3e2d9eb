"""Report files are written whole, found again, and refused if they are none."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.acceptance import reports
from gpuyard.cli import main
from tests.refusals import refused
from verify.model import Claims, Finding, Level, Status, Verdict
from verify.report.report import SCHEMA, Report
from verify.report.results import build

DIGEST = "sha256:" + "ab" * 32


@pytest.fixture
def report() -> Report:
    """A small finished report."""
    finding = Finding("a-check", "g", Level.IMAGE, "A title", Verdict(Status.PASS, "well"), True, 0.1)
    made = build([finding], "2026-01-01T00:00:00Z", 1.0, ["verify"], Claims({}, {}), "default", ["a-check"], 0, "Good.")
    return replace(made, digest=DIGEST)


def test_the_name_holds_line_image_and_the_beginning_of_the_digest() -> None:
    """One image digest, one name."""
    assert reports.stem("9.9", "workbench", DIGEST) == "9.9-workbench-abababababab"


def test_three_files_are_written_and_nothing_else(report: Report, tmp_path: Path) -> None:
    """JSON first, no temporary file left, readable by others."""
    written = reports.write(report, tmp_path / "new", "r")
    assert [path.name for path in written] == ["r.json", "r.xml", "r.html"]
    assert sorted(tmp_path.joinpath("new").iterdir()) == sorted(written)
    assert json.loads(written[0].read_text()) == report.to_dict()
    assert "a-check" in written[1].read_text()
    assert "a-check" in written[2].read_text()
    assert written[0].stat().st_mode & 0o044


def test_a_report_that_breaks_off_leaves_the_old_one(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk does not leave half a report under its name."""
    reports.write(report, tmp_path, "r")

    def full(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with refused("report-not-writable", "No space left"):
        reports.write(replace(report, digest="other"), tmp_path, "r")
    monkeypatch.undo()
    assert reports.load(tmp_path / "r.json").digest == DIGEST
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    """A file in the way is found at once; exit code 2, as for verify in the container."""
    (tmp_path / "file").touch()
    with refused("report-not-writable", tmp_path / "file", code=2):
        reports.require_writable(tmp_path / "file")


def test_the_latest_report_is_the_newest(report: Report, tmp_path: Path) -> None:
    """By time, not by name."""
    for name, when in (("b", 1000), ("a", 2000)):
        os.utime(reports.write(report, tmp_path, name)[0], (when, when))
    assert reports.latest(tmp_path).name == "a.json"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "other/9"}', f'{{"schema": "{SCHEMA}"}}'])
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    """A broken file and one of another kind are told apart from a report."""
    file = tmp_path / "r.json"
    file.write_text(text)
    with refused("report-invalid", file):
        reports.load(file)


def call(*words: str) -> int:
    """The exit code of a call of the CLI."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_report_prints_the_table_again(report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The latest one if none is named; --html prints where its page is."""
    reports.write(report, tmp_path, "r")
    assert call("report", "--report-dir", str(tmp_path)) == 0
    said = capsys.readouterr().out
    assert "a-check" in said
    assert f"report: {tmp_path / 'r.json'}" in said
    assert call("report", str(tmp_path / "r.json"), "--html") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "r.html")


def test_report_without_any_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1."""
    assert call("report", "--report-dir", str(tmp_path)) == 1
    assert "error[report-missing]" in capsys.readouterr().err
