"""`gpuyard diff`: what differs between two images, built or only declared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from gpuyard.acceptance import differences
from gpuyard.acceptance.differences import Side, changes, checks, side
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.using.diff import compare, diff
from gpuyard.errors import UsageError
from tests.verify.report import sample
from verify.model import Status, Verdict

CLAIMS = {
    "versions": {"torch": "9.9.1"},
    "driver": {"floor": "100.1", "full": "200.2"},
    "arch_list": ["sm_10"],
    "os": "x",
    "packages": {"a": "1", "b": "2"},
}


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine answers."""
    monkeypatch.setattr("gpuyard.engine.daemon.answers", lambda: False)


def test_changes_are_additions_removals_and_other_values() -> None:
    """What is equal is left out; what is on one side only is empty on the other."""
    found = changes({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"})
    assert [(change.name, change.old, change.new) for change in found] == [
        ("a", "1", ""),
        ("c", "3", "4"),
        ("d", "", "5"),
    ]


def test_two_built_images_are_compared_in_every_respect() -> None:
    """Versions, packages, driver, layers, and the results of checks."""
    old = Side("old", CLAIMS, "sha256:1", 10, ("l1", "l2"), {"x": "pass", "y": "pass"})
    claims = {**CLAIMS, "driver": {"floor": "101.1", "full": "200.2"}, "packages": {"a": "1", "b": "3"}}
    new = Side("new", claims, "sha256:2", 11, ("l1", "l3", "l4"), {"x": "fail", "y": "pass"})
    found = compare(old, new)
    assert found["versions"] == [{"name": "driver (floor)", "old": "100.1", "new": "101.1"}]
    assert found["packages"] == [{"name": "b", "old": "2", "new": "3"}]
    assert found["checks"] == [{"name": "x", "old": "pass", "new": "fail"}]
    assert found["layers"] == {"shared": 1, "old": 1, "new": 2}


@pytest.mark.usefixtures("no_engine")
def test_lines_are_compared_before_they_are_built(table: Catalogue, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an engine the catalogue and the locks speak, and it is said that they do."""
    first, second = list(table.line)[:2]
    diff(first, f"v{second}-runtime", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert {"torch", "cuda"} <= {change["name"] for change in found["versions"]}
    assert any(change["name"] == "jupyterlab" and not change["new"] for change in found["packages"])
    assert "not built here" in found["old"]["name"]
    assert found["layers"] is None


@pytest.mark.usefixtures("no_engine")
def test_an_unknown_image_is_one_line() -> None:
    """A name that means nothing is refused with the known lines."""
    with pytest.raises(UsageError, match=r"9\.9"):
        diff("9.9", "2.9")


def test_checks_are_those_of_the_newest_report_of_that_digest(tmp_path: Path) -> None:
    """A report of another digest, or a file that is none, does not count."""
    for name, digest, status in (("a", "sha256:1", Status.PASS), ("b", "sha256:2", Status.FAIL)):
        made = sample.report([sample.finding("c", Verdict(status, "seen"))])
        (tmp_path / f"{name}.json").write_text(json.dumps(replace(made, digest=digest).to_dict()))
    (tmp_path / "z.json").write_text("{}")
    assert checks("sha256:1", tmp_path) == {"c": "pass"}
    assert checks("sha256:3", tmp_path) == {}


@pytest.mark.image
def test_a_built_image_speaks_for_itself(table: Catalogue, image: str) -> None:
    """Claims come out of the image, not out of the catalogue; a line's name finds it."""
    found = side(table, table.default_line)
    assert found.name == image
    assert found.built
    assert found.claims["packages"]["jupyterlab"]
    assert len(found.layers) > 3
    assert differences.shared_layers(found, found) == (len(set(found.layers)), 0, 0)


@pytest.fixture
def derived(docker_client: docker.DockerClient, image: str) -> Iterator[str]:
    """An image on ours with one package more and one less; its labels and claims are still ours."""
    site = "$(python -c 'import sysconfig; print(sysconfig.get_paths()[\"purelib\"])')"
    extra = f"{site}/left_pad-7.0.dist-info"
    more = f"mkdir {extra} && printf 'Metadata-Version: 2.1\\nName: left_pad\\nVersion: 7.0\\n' >{extra}/METADATA"
    container = docker_client.containers.run(
        image, ["-c", f"{more} && rm -r {site}/tqdm-*"], entrypoint="sh", user="0", detach=True
    )
    try:
        assert container.wait(timeout=120)["StatusCode"] == 0, container.logs()
        container.commit("gpuyard-test-derived", "diff")
        yield "gpuyard-test-derived:diff"
    finally:
        container.remove(force=True)
        docker_client.images.remove("gpuyard-test-derived:diff", force=True)


@pytest.mark.image
def test_what_is_installed_counts_not_what_a_label_claims(
    table: Catalogue, image: str, derived: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Packages are read from the images."""
    ours, theirs = side(table, image), side(table, derived)
    assert theirs.claims == ours.claims
    assert ours.installed
    found = compare(ours, theirs)
    assert {change["name"]: (bool(change["old"]), change["new"]) for change in found["packages"]} == {
        "left-pad": (False, "7.0"),
        "tqdm": (True, ""),
    }
    diff(image, derived)
    assert "left-pad" in capsys.readouterr().out


def test_without_an_installed_list_the_claims_speak() -> None:
    """Of a line that is not built, or an image whose Python does not answer."""
    assert Side("x", CLAIMS).packages == {"a": "1", "b": "2"}
    assert Side("x", CLAIMS, installed={"torch": "8.0"}).packages == {"torch": "8.0"}
    assert differences.facts(Side("x", CLAIMS, installed={"torch": "8.0"}))["torch"] == "8.0"
