"""A digest counts as verified only by a whole, passed report about exactly that image."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuyard.acceptance import reports
from gpuyard.errors import UserError
from gpuyard.image.source import Source
from gpuyard.publish import verified
from tests.publish import small
from tests.verify.report import sample
from verify.model import Level, Owner, Status, Verdict
from verify.report.report import Report

OTHER = "sha256:" + "7" * 64
Content = dict[str, Any]


def check(source: Source, path: Path) -> verified.Report:
    """The report if it verifies the image."""
    return verified.require(reports.read(path), source.identities, source.facts.image, "gpuyard verify 9.9")


def test_a_passed_report_about_the_digest_verifies_it(tmp_path: Path, source: Source) -> None:
    """And it says that nothing ran on a GPU."""
    report = check(source, small.write(tmp_path, small.report(source.digest)))
    assert report.data == report.path.read_bytes()
    assert not report.gpu


def test_an_engine_that_names_images_by_configuration_verifies_too(tmp_path: Path, source: Source) -> None:
    """Docker's classic store: the configuration's digest is of the same image and of no other."""
    (config,) = source.identities - {source.digest}
    assert not check(source, small.write(tmp_path, small.report(config))).gpu


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
        (lambda c: {**c, "digest": OTHER}, "is about sha256:7777.*, but the image is sha256"),
        (lambda c: {**c, "digest": None}, "is about None"),
        (lambda c: {**c, "profile": {**c["profile"], "name": "only"}}, "profile only, which left checks out"),
        (lambda c: {**c, "image": small.claims("runtime")}, "another /etc/gpuyard/image.json"),
        (lambda c: {**c, "profile": {**c["profile"], "required": ["ghost"]}}, "no finding of required checks: ghost"),
        (failed, "did not pass .exit code 1."),
        (claimed, "has exit code 0, but its findings make 1"),
        (silent, "proves nothing of what the image requires: cpu"),
        (inside, "holds no check from outside"),
    ],
)
def test_whatever_proves_less_is_refused(
    tmp_path: Path, source: Source, change: Callable[[Content], Content], words: str
) -> None:
    """Each with its reason and the command that repairs it."""
    path = small.write(tmp_path, change(small.report(source.digest)))
    with pytest.raises(UserError, match=f"{words}.*Run: gpuyard verify 9.9") as caught:
        check(source, path)
    assert caught.value.id == "report-insufficient"


def test_the_bytes_that_were_judged_are_those_that_are_published(tmp_path: Path, source: Source) -> None:
    """A file that changes after it was read changes nothing: it is read once."""
    path = small.write(tmp_path, small.report(source.digest))
    before = path.read_bytes()
    found = verified.find([tmp_path], source.identities, "")
    path.write_text("{}")
    report = verified.require(found, source.identities, source.facts.image, "")
    assert report.data == before
    assert report.content.to_dict() == json.loads(before)


def test_the_newest_report_about_the_digest_is_found(tmp_path: Path, source: Source) -> None:
    """Among others; without one, the line names the folders, another report in them, and how to make one."""
    small.write(tmp_path, small.report(OTHER), "a.json")
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(UserError) as caught:
        verified.find([tmp_path / "none", tmp_path], source.identities, "try it")
    assert caught.value.id == "image-unverified"
    for named in (f"{tmp_path}/none/ or {tmp_path}/", f"a.json is about {OTHER}", "Run: try it"):
        assert named in str(caught.value)
    for age, name in ((200, "b.json"), (100, "c.json")):
        path = small.write(tmp_path, small.report(source.digest), name)
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    assert verified.find([tmp_path], source.identities, "").path.name == "c.json"


def test_no_publication_is_made_with_a_report_about_another_digest(tmp_path: Path, source: Source) -> None:
    """Whatever way the two came together."""
    from gpuyard.publish.publisher import Publication
    from gpuyard.publish.registry import Repository

    path = small.write(tmp_path, small.report(OTHER))
    stray = verified.Report(path, path.read_bytes(), Report.from_dict(small.report(OTHER)))
    with pytest.raises(UserError, match="is about sha256:7777") as caught:
        Publication(source, stray, Repository("localhost", "name"), source.tags)
    assert caught.value.id == "report-other-image"
