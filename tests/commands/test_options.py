"""Options that would change nothing are refused, and the others have an effect that is seen here."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuyard.acceptance.differences import Side
from gpuyard.cli import main
from gpuyard.commands.using import list_
from gpuyard.errors import UserError
from gpuyard.image import build as building
from gpuyard.image import sizes
from tests.acceptance.test_any_image import Engine


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
        (["lock", "2.9", "--check", "--devel"], "option-without-effect"),
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


def test_a_build_gets_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """--base, --no-cache, --builder and --offline reach the builder."""
    asked: list[tuple[object, ...]] = []

    def build(_product: object, *arguments: object) -> building.Built:
        asked.append(arguments)
        return building.Built(("t",), "sha256:1", 1, 1, 0.0)

    monkeypatch.setattr("gpuyard.image.build.build", build)
    assert call("build") == 0
    assert call("build", "--base", "bootstrap", "--no-cache", "--builder", "dockerfile", "--offline") == 0
    assert asked == [("auto", False, "layers", False), ("bootstrap", True, "dockerfile", True)]


def test_a_build_says_its_whole_time_and_what_comes_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the time of the last step; and commands that work when pasted."""

    def build(*_arguments: object) -> building.Built:
        time.sleep(1.1)
        return building.Built(("t",), "sha256:1", 1, 1, 0.0)

    monkeypatch.setattr("gpuyard.image.build.build", build)
    assert call("build", "2.9", "--image", "runtime") == 0
    said = capsys.readouterr().out
    assert re.search(r"time +1 s", said)
    assert "gpuyard verify 2.9 --image runtime" in said


def test_verify_builds_unless_it_is_told_not_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """--no-build takes the image as it is."""
    built: list[object] = []

    def prove(*_arguments: object) -> object:
        raise UserError("suite-without-report", "ended here")

    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: None)
    monkeypatch.setattr("gpuyard.engine.daemon.client", Engine)
    monkeypatch.setattr("gpuyard.image.build.ensure", built.append)
    monkeypatch.setattr("gpuyard.commands.using.verify.prove", prove)
    words = ("verify", "--gpus", "none", "--report-dir", str(tmp_path))
    assert (call(*words, "--no-build"), len(built)) == (1, 0)
    assert (call(*words), len(built)) == (1, 1)
    assert (call(*words, "--build"), len(built)) == (1, 2)


def test_verify_takes_a_reference_by_its_own_option(capsys: pytest.CaptureFixture[str]) -> None:
    """As --image does with a tag: a line beside it is refused."""
    assert call("verify", "2.9", "--image-ref", "a") == 2
    assert "error[line-beside-reference]: a " in capsys.readouterr().err


def test_a_dry_run_starts_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the line is printed; an engine that is not there is not started."""
    monkeypatch.setattr("gpuyard.engine.daemon.answers", lambda: False)
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: pytest.fail("the engine was asked"))
    assert call("run", "--dry-run", "--gpus", "none") == 0
    assert capsys.readouterr().out.startswith("docker run ")


def test_a_rehearsed_pipeline_runs_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its steps are printed."""
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: pytest.fail("the engine was asked"))
    assert call("pipeline", "--registry", "127.0.0.1:1/a", "--dry-run") == 0
    assert "gpuyard publish" in capsys.readouterr().out


def test_a_page_is_made_of_the_report_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--report, and of the image that is named."""
    asked: list[str] = []
    monkeypatch.setattr("gpuyard.engine.daemon.ensure", lambda: None)
    monkeypatch.setattr("gpuyard.image.build.find", lambda product: asked.append(product.image))
    monkeypatch.setattr(
        "gpuyard.commands.publishing.page.side", lambda _table, name: Side(name, {"packages": {}}, "sha256:1")
    )
    assert call("page", "2.9", "--image", "runtime", "--report", "/none.json") == 1
    assert (asked, "/none.json" in capsys.readouterr().err) == (["runtime"], True)


def test_a_check_of_the_catalogue_fails_where_the_index_has_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --check the difference is only shown."""
    place = "gpuyard.commands.building.update."
    for name, value in (
        ("offered", lambda _package: ()),
        ("proposals", lambda *_offers: [SimpleNamespace(line="9.9")]),
        ("apply", lambda text, _found: text),
    ):
        monkeypatch.setattr(place + name, value)
    assert (call("update"), call("update", "--check")) == (0, 1)
