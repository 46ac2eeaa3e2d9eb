"""A digest counts as verified only by a whole, passed, unedited report about exactly that image."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuyard.errors import UserError
from gpuyard.image.source import Source
from gpuyard.publish import seal, verified
from tests.publish import small
from tests.verify.report import sample
from verify.model import Level, Owner, Status, Verdict

OTHER = "sha256:" + "7" * 64
Content = dict[str, Any]


def check(source: Source, path: Path) -> verified.Report:
    """The report if it verifies the image."""
    return verified.require(path, source.identities, source.facts.image, "gpuyard verify 9.9")


def test_a_passed_report_about_the_digest_verifies_it(tmp_path: Path, source: Source) -> None:
    """And it says that nothing ran on a GPU."""
    report = check(source, small.write(tmp_path, small.report(source.digest)))
    assert report.data == report.path.read_bytes()
    assert not report.gpu


def test_an_engine_that_names_images_by_configuration_verifies_too(tmp_path: Path, source: Source) -> None:
    """Docker's classic store: the configuration's digest is of the same image and of no other."""
    (config,) = source.identities - {source.digest}
    assert check(source, small.write(tmp_path, small.report(config)))


def failed(content: Content) -> Content:
    """A required check failed."""
    bad = Verdict(Status.FAIL, "wrong", "right", "repair it", Owner.IMAGE)
    findings = [*small.findings(), sample.finding("bad", bad, Level.CPU, required=True)]
    return small.report(content["digest"], findings, code=1)


def claimed(content: Content) -> Content:
    """A required check failed, and the report says that all passed."""
    return {**failed(content), "result": {"exit_code": 0, "verdict": "All passed."}}


def silent(content: Content) -> Content:
    """Nothing was proven on the CPU."""
    return small.report(content["digest"], small.findings()[:2])


def inside(content: Content) -> Content:
    """Nobody looked from outside."""
    return small.report(content["digest"], [f for f in small.findings() if f.where != "outside"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: {**c, "digest": OTHER}, "is about sha256:7777.*verification of another digest"),
        (lambda c: {**c, "digest": None}, "is about None"),
        (lambda c: {**c, "profile": {**c["profile"], "name": "only"}}, "profile only, which left checks out"),
        (lambda c: {**c, "image": small.claims("runtime")}, "another /etc/gpuyard/image.json"),
        (lambda c: {**c, "findings": [{"check": "x"}]}, "holds something that is no finding"),
        (lambda c: {**c, "profile": {**c["profile"], "required": ["ghost"]}}, "no finding of required checks: ghost"),
        (failed, "did not pass .exit code 1."),
        (claimed, "says exit code 0, and its findings make 1"),
        (silent, "proves nothing of what the image requires: cpu"),
        (inside, "holds no check from outside"),
    ],
)
def test_whatever_proves_less_is_refused(
    tmp_path: Path, source: Source, change: Callable[[Content], Content], words: str
) -> None:
    """Each with its reason and the command that repairs it."""
    path = small.write(tmp_path, change(small.report(source.digest)))
    with pytest.raises(UserError, match=f"{words}.*Run: gpuyard verify 9.9"):
        check(source, path)


def test_a_report_edited_after_the_fact_is_refused(tmp_path: Path, source: Source) -> None:
    """One changed sign breaks the seal, though the report would pass."""
    path = small.write(tmp_path, small.report(source.digest))
    path.write_text(path.read_text().replace("loss fell", "loss rose"))
    with pytest.raises(UserError, match="was edited after gpuyard verify wrote it"):
        check(source, path)


def test_a_report_by_hand_is_refused(tmp_path: Path, source: Source) -> None:
    """Without a seal it is nobody's."""
    path = tmp_path / "made.json"
    path.write_text(json.dumps(small.report(source.digest)))
    with pytest.raises(UserError, match="has no seal"):
        check(source, path)


def test_a_seal_of_another_machine_does_not_count(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copied report with its copied seal is no proof here; with the pipeline's shared key it is."""
    monkeypatch.setenv(seal.VARIABLE, "the pipeline's own key")
    path = small.write(tmp_path, small.report(source.digest))
    assert check(source, path)
    monkeypatch.delenv(seal.VARIABLE)
    with pytest.raises(UserError, match="sealed with another key"):
        check(source, path)


def test_a_short_key_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It could be guessed."""
    monkeypatch.setenv(seal.VARIABLE, "short")
    with pytest.raises(UserError, match="GPUYARD_SEAL_KEY has 5 characters"):
        small.write(tmp_path, {})


def test_the_key_is_its_users_alone(tmp_path: Path) -> None:
    """It lies in the user's configuration with mode 600, made once."""
    small.write(tmp_path / "reports", {})
    key = Path(os.environ["XDG_CONFIG_HOME"]) / "gpuyard" / "seal.key"
    before = key.read_bytes()
    small.write(tmp_path / "reports", {})
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_bytes() == before


def test_the_newest_report_about_the_digest_is_found(tmp_path: Path, source: Source) -> None:
    """Among others; without one, the line says what there is and how to make it."""
    small.write(tmp_path, small.report(OTHER), "a.json")
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(UserError, match=r"no report in .* is about it \(a.json is about sha256:7777.*Run: try it"):
        verified.find(tmp_path, source.identities, "try it")
    for age, name in ((200, "b.json"), (100, "c.json")):
        path = small.write(tmp_path, small.report(source.digest), name)
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    assert verified.find(tmp_path, source.identities, "").name == "c.json"


def test_no_order_is_made_with_a_report_about_another_digest(tmp_path: Path, source: Source) -> None:
    """Whatever way the two came together."""
    from gpuyard.publish.publisher import Order
    from gpuyard.publish.registry import Repository

    path = small.write(tmp_path, small.report(OTHER))
    stray = verified.Report(path, path.read_bytes(), small.report(OTHER))
    with pytest.raises(UserError, match="is about sha256:7777"):
        Order(source, stray, Repository("localhost", "name"), source.tags)
