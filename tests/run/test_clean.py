"""`gpuyard clean` removes what gpuyard made, and nothing that is in use or somebody else's."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from gpuyard import catalogue
from gpuyard.claims import LABEL
from gpuyard.commands import clean
from gpuyard.containers import RUN, SESSION, Owner

DEAD = str(replace(Owner.me(), born="1"))


@pytest.mark.parametrize(
    ("size", "text"), [(None, "-"), (0, "0 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (3_600_000_000, "3.6 GB")]
)
def test_sizes_are_for_people(size: int | None, text: str) -> None:
    """Unknown is not zero."""
    assert clean.human(size) == text


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A build folder and a folder of reports with a file each, and no engine."""
    build, reports = tmp_path / "build", tmp_path / "reports"
    for folder in (build, reports):
        folder.mkdir()
        (folder / "file").write_text("12345")
    monkeypatch.setattr(clean, "FOLDERS", (build,))
    monkeypatch.setattr(clean, "RECORDS", (reports,))
    monkeypatch.setattr("gpuyard.engine.answers", lambda: False)
    return build, reports


def test_a_dry_run_shows_sizes_and_removes_nothing(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """What would go is named with its size."""
    clean.clean(dry_run=True, everything=True)
    said = capsys.readouterr().out
    assert "would remove" in said
    assert "5 B" in said
    assert all(folder.exists() for folder in folders)


def test_generated_files_go_and_reports_stay(folders: tuple[Path, Path]) -> None:
    """Only --all takes the evidence too."""
    clean.clean()
    assert [folder.exists() for folder in folders] == [False, True]
    clean.clean(everything=True)
    assert [folder.exists() for folder in folders] == [False, False]


def test_nothing_to_remove_is_said(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A second clean does not look like a first one."""
    clean.clean(everything=True)
    capsys.readouterr()
    clean.clean(everything=True)
    assert capsys.readouterr().out == "nothing to remove\n"
    assert not any(folder.exists() for folder in folders)


@pytest.mark.engine
def test_volumes_of_dead_sessions_go_and_those_of_living_ones_stay(docker_client: docker.DockerClient) -> None:
    """The label says whose it is."""
    dead = docker_client.volumes.create(labels={SESSION: DEAD})
    mine = docker_client.volumes.create(labels={SESSION: str(Owner.me())})
    foreign = docker_client.volumes.create()
    try:
        names = [thing.name for thing in clean.started(docker_client, running=False)]
        assert f"volume {dead.name}" in names
        assert not {f"volume {mine.name}", f"volume {foreign.name}"} & set(names)
        every = [thing.name for thing in clean.started(docker_client, running=True)]
        assert f"volume {mine.name}" in every
        assert f"volume {foreign.name}" not in every
    finally:
        for volume in (dead, mine, foreign):
            volume.remove(force=True)


@pytest.mark.engine
def test_an_image_that_somebody_built_on_ours_is_theirs(docker_client: docker.DockerClient) -> None:
    """Labels are inherited, so it is the name that decides; without any name it is waste."""
    recipe = f"FROM scratch\nLABEL {LABEL}.line=9.9\nLABEL test={os.getpid()}\n".encode()
    repository = catalogue.load().repository
    names = [f"{repository}:test-{os.getpid()}", f"theirs:test-{os.getpid()}"]
    image, _ = docker_client.images.build(fileobj=io.BytesIO(recipe), tag=names[0], rm=True)
    try:
        assert f"image {names[0]}" in [thing.name for thing in clean.made(docker_client)]
        image.tag(*names[1].split(":"))
        (thing,) = [thing for thing in clean.made(docker_client) if names[0] in thing.name]
        thing.remove()
        assert docker_client.images.get(names[1]).tags == [names[1]]
        assert not [thing for thing in clean.made(docker_client) if str(os.getpid()) in thing.name]
    finally:
        docker_client.images.remove(names[1], force=True)


@pytest.mark.image
def test_a_running_container_of_the_user_stays_and_an_ended_one_goes(
    docker_client: docker.DockerClient, image: str
) -> None:
    """What `gpuyard run --detach` started is the user's while it runs."""
    container = docker_client.containers.run(image, ["sleep", "60"], detach=True, labels={RUN: "x"})
    try:
        name = f"container {container.name}"
        assert not [thing for thing in clean.started(docker_client, running=False) if thing.name.startswith(name)]
        container.stop(timeout=2)
        assert [thing for thing in clean.started(docker_client, running=False) if thing.name.startswith(name)]
    finally:
        container.remove(force=True, v=True)
