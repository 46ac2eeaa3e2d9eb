"""The issue's list of bad input, each on the whole command with checks that misbehave; no line may be missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.verify.suite import fake, hang
from verify import cli
from verify.engine import registry
from verify.model import Facts, Isolation


def boom() -> Facts:
    raise ValueError("no such thing")


def never() -> Facts:
    pytest.fail("a check was run")


BAD = [
    fake("raises", boom, isolation=Isolation.CHILD),
    fake("never", never),
    fake("hangs", hang, isolation=Isolation.CHILD, timeout=0.5),
    fake("well"),
]


@pytest.fixture
def bad(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command knows these checks only."""
    monkeypatch.setattr(registry, "CHECKS", BAD)


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("option", ["--json", "--html", "--junit"])
def test_an_unwritable_report_is_exit_2_before_any_check(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder that does not exist, or a folder itself; nothing is left behind. `never` would end this test."""
    for path in (tmp_path / "none" / "report", tmp_path):
        assert cli.main(["--only", "never", option, str(path)]) == 2
        said = capsys.readouterr()
        assert "cannot write the report" in said.err
        assert "nothing was run" in said.err
        assert said.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("bad")
def test_a_check_that_raises_is_unknown_with_its_traceback_in_the_json_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Required it ends with 3; table, page and JUnit name the error without the traceback."""
    files = {name: tmp_path / f"r.{name}" for name in ("json", "html", "junit")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    assert cli.main(["--only", "raises", *options]) == 3
    report = json.loads(files["json"].read_text())
    assert report["findings"][0]["status"] == "unknown"
    assert "Traceback" in report["findings"][0]["error"]
    page, _, data = files["html"].read_text().partition('<section aria-labelledby="raw">')
    for text in (capsys.readouterr().out, page, files["junit"].read_text()):
        assert "no such thing" in text
        assert "Traceback" not in text
    assert "Traceback" in data


def test_a_check_that_raises_decides_nothing_where_nobody_requires_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Advice that cannot be given is not a failure."""
    monkeypatch.setattr(registry, "CHECKS", [fake("raises", boom, group="limits"), fake("well")])
    assert cli.main(["--quiet"]) == 0


@pytest.mark.usefixtures("bad")
def test_a_check_past_its_time_is_unknown_and_the_rest_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """In the words of the contract."""
    assert cli.main(["--only", "hangs,well", "--json", "-"]) == 3
    found: dict[str, Any] = {f["check"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert (found["hangs"]["status"], found["hangs"]["observed"]) == ("unknown", "timed out after 0.5 s")
    assert found["well"]["status"] == "pass"
