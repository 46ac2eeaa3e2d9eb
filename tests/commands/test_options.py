"""Options that would change nothing are refused, and the others have an effect that is seen here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuyard.cli import main
from gpuyard.commands.using import list_
from gpuyard.image import sizes


def call(*words: str) -> int:
    """The exit code of a call of the CLI."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("words", "id"),
    [
        (["list", "--sizes", "--github"], "option-without-effect"),
        (["report", "x.json", "--report-dir", "y"], "option-without-effect"),
        (["reproduce", "--image", "runtime", "--write"], "option-without-effect"),
        (["clean", "--line", "2.9"], "option-without-effect"),
        (["clean", "--older-than", "3"], "option-without-effect"),
        (["build", "--layout", "x", "--builder", "dockerfile"], "layout-needs-layers"),
        (["build", "--layout", "x", "--builder", "dockerfile", "--dry-run"], "layout-needs-layers"),
        (["fetch", "--export", "x", "--import", "y"], "export-and-import"),
        (["fetch", "--import", "/no/such"], "export-missing"),
    ],
)
def test_what_would_be_dropped_is_refused(
    words: list[str], id: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the engine is looked for."""
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: pytest.fail("the engine was asked"))
    code = call(*words)
    assert f"error[{id}]" in capsys.readouterr().err
    assert code == (1 if id == "export-missing" else 2)


def test_a_plan_of_a_layout_names_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """--dry-run says what would be built, and where to."""
    assert call("build", "--dry-run", "--layout", "out") == 0
    assert capsys.readouterr().out.endswith(", to out\n")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["2.7"], "v2.7"),
        (["--image", "runtime"], "-runtime"),
        (["--os", "debian-13"], "on debian-13"),
        (["--builder", "dockerfile"], "BuildKit"),
    ],
)
def test_a_plan_shows_the_choice(words: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Line, image, operating system and builder."""
    assert call("build", "--dry-run", *words) == 0
    assert shown in capsys.readouterr().out


def test_sizes_fit_eighty_columns_and_are_json_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many images there are; --json is not dropped."""
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"pytorch-cuda:v2.{number}-runtime" for number in range(5)]
    images: dict[str, sizes.Blobs] = {name: {"all": 2_000_000_000, name: 500_000_000} for name in names}
    list_.show_sizes(images)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert all(name in shown for name in images)
    list_.show_sizes(images, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["pytorch-cuda:v2.0-runtime"]["download"]["pytorch-cuda:v2.1-runtime"] == 500_000_000
    assert sizes.download(images["pytorch-cuda:v2.1-runtime"], images["pytorch-cuda:v2.0-runtime"]) == 500_000_000


def test_pick_without_a_host_is_json_where_that_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """The table in Markdown would not be."""
    assert call("pick", "--json") == 0
    assert {"tag", "lines"} == set(json.loads(capsys.readouterr().out))


def test_list_is_json_and_a_workflows_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    """--json and --github are the same rows in two forms."""
    assert call("list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert call("list", "--json", "--github") == 0
    lines = capsys.readouterr().out.splitlines()[0]
    assert json.loads(lines.partition("=")[2]) == [row["line"] for row in rows]


def test_tables_are_written_on_demand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """--write-tables is the one option of list that writes."""
    written: list[object] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpuyard.catalogue.claims.write_tables", written.append)
    assert call("list") == 0
    assert not written
    assert call("list", "--write-tables") == 0
    assert len(written) == 1
