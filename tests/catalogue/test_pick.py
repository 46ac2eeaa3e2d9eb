"""`gpuyard pick`: the rules, on a table with versions that exist nowhere; and the table in docs/support.md."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gpuyard import paths
from gpuyard.catalogue.gpus import capabilities
from gpuyard.catalogue.pick import Answer, Driver, answers, best
from gpuyard.catalogue.table import Catalogue
from gpuyard.cli import main
from gpuyard.render import markdown
from tests.refusals import refused


@pytest.fixture(scope="module")
def small(table: Catalogue) -> Catalogue:
    """Two lines of two CUDA families; three GPUs: one old, one for both, one new."""
    row = table.line[table.default_line]
    old = row.model_copy(update={"cuda": "900.1", "arch_list": ("sm_10", "sm_20")})
    new = row.model_copy(update={"cuda": "901.5", "arch_list": ("sm_20", "sm_30")})
    gpu = next(iter(table.gpu.values()))
    gpus = {
        "1.0": gpu.model_copy(
            update={"generation": "Elder", "names": ("E1",), "arm64": (), "last_branch": 400, "first_driver": None}
        ),
        "2.0": gpu.model_copy(
            update={"generation": "Middle", "names": ("X1", "X1 Ti"), "arm64": (), "first_driver": None}
        ),
        "3.0": gpu.model_copy(
            update={"generation": "Young", "names": ("Y1",), "arm64": ("GB1",), "first_driver": "450.1"}
        ),
    }
    bundled = {"900.1": "350.5", "901.5": "460.2"}
    drivers = table.drivers.model_copy(update={"bundled": bundled, "family": {"900": "300.0", "901": "420.7"}})
    changed = {"line": {"1.0": old, "2.0": new}, "default_line": "1.0", "gpu": gpus, "drivers": drivers}
    return table.model_copy(update=changed)


def asked(small: Catalogue, driver: str | None, *gpus: str) -> dict[str, Answer]:
    """Answers by line."""
    wanted = [cc for gpu in gpus for cc in capabilities(small, gpu)]
    return {answer.line: answer for answer in answers(small, Driver.parse(driver) if driver else None, wanted)}


@pytest.mark.parametrize(
    ("driver", "gpu", "old", "new"),
    [
        ("360.1", "X1", (True, True), (False, False)),
        ("320", "X1", (True, False), (False, False)),
        ("299.9", "X1", (False, False), (False, False)),
        ("425", "X1", (True, True), (True, False)),
        ("460.2", "X1 Ti", (True, True), (True, True)),
        ("460.1", "X1", (True, True), (True, False)),
        ("401", "E1", (False, False), (False, False)),
        ("400.9", "E1", (True, True), (False, False)),
        ("449", "Y1", (False, False), (False, False)),
        ("450.1", "Y1", (False, False), (True, False)),
    ],
)
def test_driver_and_gpu_decide(
    small: Catalogue, driver: str, gpu: str, old: tuple[bool, bool], new: tuple[bool, bool]
) -> None:
    """Family floor, the driver that came with CUDA, the GPU's first driver and its last branch each count."""
    found = asked(small, driver, gpu)
    assert [(found[line].runs, found[line].complete) for line in ("1.0", "2.0")] == [old, new]


def test_several_gpus_must_all_run(small: Catalogue) -> None:
    """An old and a new GPU in one machine have no line in common."""
    assert not any(answer.runs for answer in asked(small, "500", "E1", "Y1").values())


def test_the_default_line_wins_where_it_runs_and_else_the_newest(small: Catalogue) -> None:
    """A recommendation is what most people use."""
    running = [Answer("1.0", True, False, ""), Answer("2.0", True, True, "")]
    assert best(small, running) == running[0]
    assert best(small, [Answer("1.0", False, False, ""), running[1]]) == running[1]
    assert best(small, [Answer("1.0", False, False, "")]) is None


@pytest.mark.parametrize("text", ["new", "9.9"])
def test_what_is_not_a_driver_is_refused(text: str) -> None:
    """The CUDA version that nvidia-smi prints beside it is a common mistake."""
    with refused("driver-invalid", repr(text), code=2):
        Driver.parse(text)


def test_the_command_answers_as_json_and_fails_where_nothing_runs() -> None:
    """For scripts: a tag on success, exit 1 and one line without one."""
    command = [sys.executable, "-m", "gpuyard", "pick", "--json", "--gpu", "H100", "--driver"]
    done = subprocess.run([*command, "999"], check=True, capture_output=True, text=True, cwd=paths.ROOT)
    assert ":v" in json.loads(done.stdout)["tag"]
    done = subprocess.run([*command, "100"], check=False, capture_output=True, text=True, cwd=paths.ROOT)
    assert done.returncode == 1
    assert json.loads(done.stdout)["tag"] is None
    assert len(done.stderr.splitlines()) == 1


def test_generated_text_is_put_between_its_markers_only() -> None:
    """The rest of the page stays; a page without markers is refused."""
    page = f"a\n{markdown.begin('x')}\nold\n{markdown.end('x')}\nb\n"
    assert markdown.between(page, "x", "new\\1") == page.replace("old", "new\\1")
    assert markdown.between(page, "y", "new") is None


def test_the_support_page_shows_the_catalogues_drivers(table: Catalogue) -> None:
    """docs/support.md is what `gpuyard page` writes today."""
    page = (paths.ROOT / "docs" / "support.md").read_text()
    assert markdown.between(page, "gpus", markdown.drivers_and_gpus(table)) == page


@pytest.mark.parametrize(("image", "code"), [("devel", 0), ("cuda", 1), ("base", 1)])
def test_only_images_that_a_line_has_are_offered(
    image: str, code: int, capsys: pytest.CaptureFixture[str], table: Catalogue
) -> None:
    """A tag that cannot be built is never the answer."""
    with pytest.raises(SystemExit) as ended:
        main(["pick", "--image", image, "--gpu", "9.0"])
    assert int(ended.value.code or 0) == code
    said = capsys.readouterr().out
    taken = [line.removeprefix("take ") for line in said.splitlines() if line.startswith("take ")]
    assert taken == [table.tag(line, image) for line in table.line if image in table.images_of(line)][:1]
