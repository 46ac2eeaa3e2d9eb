"""A project's lock holds what the image lacks, by hash and without an address; each conflict is explained."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.project import lock
from tests.images.index import wheel
from tests.project.conftest import Make

pytestmark = pytest.mark.usefixtures("index")


def test_the_lock_holds_what_the_image_lacks(index: Path, make: Make) -> None:
    """With hashes; torch is the image's and stays out; no place to download from."""
    project = make("branch")
    assert lock.write(project) == {"branch": "2.0", "leaf": "1.1"}
    text = project.lock.read_text()
    assert text.count("--hash=sha256:") == 2
    assert "://" not in text
    assert str(index) not in text
    lock.refuse_stale(project)


def test_versions_stay_until_they_are_to_be_upgraded(index: Path, make: Make) -> None:
    """A new release changes the lock only when asked, for all or for one package; not where it no longer fits."""
    project = make("branch\nleaf<1.1")
    assert lock.write(project)["leaf"] == "1.0"
    project = make("branch")
    assert lock.write(project)["leaf"] == "1.0"
    wheel(index, "branch", "2.1", "leaf", "torch>=2")
    assert lock.write(project, names=["leaf"]) == {"branch": "2.0", "leaf": "1.1"}
    assert lock.write(project, upgrade=True) == {"branch": "2.1", "leaf": "1.1"}
    assert lock.write(make("branch<2.1")) == {"branch": "2.0", "leaf": "1.1"}
    with pytest.raises(UserError) as error:
        lock.write(project, names=["torch"])
    assert error.value.id == "project-upgrade-unknown"


@pytest.mark.parametrize(
    ("requirements", "id_", "named"),
    [
        ("oldtorch", "project-conflict", "torch=={torch}"),
        ("torch==2.8.0", "project-conflict", "torch=={torch}"),
        ("missing", "project-package-unknown", "missing"),
        ("reserved", "project-placeholder", "reserved==0.0.0"),
        ("nightly", "project-placeholder", "nightly==1.0.dev0"),
    ],
)
def test_what_cannot_be_locked_is_explained(
    make: Make, requirements: str, id_: str, named: str, table: Catalogue
) -> None:
    """One line; the lock that was there stays."""
    lock.write(make("leaf"))
    with pytest.raises(UserError) as error:
        lock.write(make(requirements))
    assert error.value.id == id_
    assert named.format(torch=table.line[table.default_line].torch) in str(error.value)
    assert "\n" not in str(error.value)
    assert lock.packages(make(requirements).lock) == {"leaf": "1.1"}


def test_an_index_that_does_not_answer_is_not_a_conflict(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that was there stays."""
    lock.write(make("leaf"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(UserError) as error:
        lock.write(make("branch"))
    assert error.value.id == "project-index-failed"
    assert lock.packages(make("branch").lock) == {"leaf": "1.1"}


def test_a_placeholder_that_is_asked_for_exactly_is_taken(make: Make) -> None:
    """Somebody wants it."""
    assert lock.write(make("reserved==0.0.0")) == {"reserved": "0.0.0"}


def test_a_package_without_a_wheel_is_named(index: Path, make: Make) -> None:
    """A source distribution alone is not enough."""
    (index / "source-1.0.tar.gz").write_bytes(b"")
    with pytest.raises(UserError) as error:
        lock.write(make("source"))
    assert error.value.id == "project-no-wheel"


def test_a_stale_missing_or_edited_lock_is_refused_at_once(make: Make) -> None:
    """Without a network, in well under two seconds."""
    project = make("leaf")
    with pytest.raises(UserError) as error:
        lock.refuse_stale(project)
    assert error.value.id == "project-lock-missing"
    lock.write(project)
    started = time.monotonic()
    with pytest.raises(UserError) as error:
        lock.refuse_stale(make("leaf<1.1"))
    assert error.value.id == "project-lock-stale"
    with pytest.raises(UserError) as error:
        lock.refuse_stale(make("leaf", gpuyard_toml='line = "2.7"'))
    assert error.value.id == "project-lock-stale"
    assert time.monotonic() - started < 2
    project = make("leaf")
    project.lock.write_text(project.lock.read_text().replace("leaf==1.1", "leaf==1.0"))
    with pytest.raises(UserError) as error:
        lock.refuse_stale(project)
    assert error.value.id == "project-lock-edited"


def test_lines_that_fit_are_told_from_those_that_do_not(make: Make) -> None:
    """What wants an old torch fits the old line alone, and the others say why."""
    answers = {answer.product.line: answer for answer in lock.which_lines(make("oldtorch"))}
    assert answers["2.7"].packages == {"oldtorch": "1.0"}
    assert [line for line, answer in answers.items() if answer.reason] == ["2.9", "2.15"]
    assert f"torch=={answers['2.9'].product.row.torch}" in answers["2.9"].reason


def test_a_project_without_requirements_has_an_empty_lock(make: Make) -> None:
    """uv is not asked."""
    project = make("")
    assert lock.write(project) == {}
    lock.refuse_stale(project)
