"""`gpuyard clean` removes what gpuyard made, and nothing that is in use or somebody else's."""

from __future__ import annotations

import io
import json
import os
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import docker
import pytest

from gpuyard import paths
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.claims import LABEL
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.building import clean
from gpuyard.engine.session import RUN, SESSION, Owner
from gpuyard.store.usage import Retention
from tests.refusals import refused

DEAD = str(replace(Owner.me(), born="1"))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1500, "1.5 kB"),
        (2_500_000, "2.5 MB"),
        (3_779_525_585, "3.78 GB"),
        (999_800_000, "1000 MB"),
        (12_700_000_000, "12.7 GB"),
    ],
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
    monkeypatch.setattr("gpuyard.engine.daemon.answers", lambda: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
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


@pytest.mark.usefixtures("folders")
def test_without_an_engine_it_is_said_what_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """A dry run that shows no image must not look as if there were none; --images itself is refused."""
    clean.clean(dry_run=True)
    assert "warning[clean-without-engine]" in caplog.text


def test_images_cannot_be_asked_for_without_an_engine(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is removed either."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folders[0]}/none.sock")
    for option in ("images", "build_cache"):
        with refused("engine-unreachable"):
            clean.clean(**{option: True})  # type: ignore[arg-type]
    assert all(folder.exists() for folder in folders)


@pytest.mark.parametrize(("option", "value"), [("line", "2.9"), ("older_than", 0.0)])
def test_a_limit_of_nothing_is_refused(folders: tuple[Path, Path], option: str, value: object) -> None:
    """--line and --older-than limit images and the store alone."""
    with refused("option-without-effect", f"--{option.replace('_', '-')}", code=2):
        clean.clean(**{option: value})  # type: ignore[arg-type]
    assert all(folder.exists() for folder in folders)


def test_nothing_to_remove_is_said(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A second clean does not look like a first one."""
    clean.clean(everything=True)
    capsys.readouterr()
    clean.clean(everything=True)
    assert capsys.readouterr().out == "nothing to remove\n"
    assert not any(folder.exists() for folder in folders)


def put(path: Path, size: int, days: float = 0) -> Path:
    """A file of that size, last written so many days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - days * 86400,) * 2)
    return path


@pytest.fixture
def store(folders: tuple[Path, Path], table: Catalogue) -> dict[str, Path]:
    """A store with a wheel of the first line, one of no line, a layer of the second line, and a base."""
    root = folders[0].parent / "cache" / "gpuyard"
    first, second = list(table.line)[:2]
    lock = next(paths.LOCKS.glob(f"{first}-*-torch.txt")).read_text()
    sha = re.findall("sha256:([0-9a-f]{64})", lock.partition("\ntorch==")[2])[0]
    images = {"name": f"x:v{second}", "layers": {f"sha256:{'b' * 64}": 5}}
    base = {"layers": [{"digest": f"sha256:{'c' * 64}", "size": 7}]}
    for kind, record in (("images", images), ("bases", base)):
        put(root / kind / "one.json", 0).write_text(json.dumps(record))
    return {
        "wheel": put(root / "wheels" / sha / "a.whl", 1000, days=40),
        "stray": put(root / "wheels" / ("d" * 64) / "b.whl", 2000),
        "layer": put(root / "blobs" / ("b" * 64), 5000, days=40),
        "base": put(root / "blobs" / ("c" * 64), 7000),
    }


def left(store: dict[str, Path]) -> set[str]:
    """What is still there."""
    return {name for name, path in store.items() if path.exists()}


def test_the_store_stays_unless_it_is_asked_for(store: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Even --all keeps what took so long to fetch, and says its size and the option that frees it."""
    clean.clean(everything=True)
    assert left(store) == set(store)
    assert re.search(r"15 kB +store \(gpuyard clean --store", capsys.readouterr().out)


def test_a_line_takes_what_it_alone_needs(store: dict[str, Path], table: Catalogue) -> None:
    """Wheels by the locks that name them, layers by the images that have them."""
    first, second = list(table.line)[:2]
    clean.clean(store=True, line=f"v{second}")
    assert left(store) == {"wheel", "stray", "base"}
    clean.clean(store=True, line=first)
    assert left(store) == {"stray", "base"}


def test_what_is_old_goes_by_its_age(store: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Only what was last written longer ago; the age is shown."""
    clean.clean(store=True, older_than=30, dry_run=True)
    said = capsys.readouterr().out
    assert said.count("40 days old") == 2
    assert "by line: " in said
    clean.clean(store=True, older_than=30)
    assert left(store) == {"stray", "base"}
    clean.clean(store=True)
    assert left(store) == set()


def test_the_time_of_an_image_is_when_it_was_tagged_here() -> None:
    """Its own date is the catalogue's; without a time the age is unknown, which counts as new."""
    minute = datetime.fromtimestamp(time.time() - 60, UTC).isoformat().replace("+00:00", "123Z")
    assert 55 < (clean.tagged_ago({"Metadata": {"LastTagTime": minute}}) or 0) < 70
    assert clean.tagged_ago({"Metadata": {"LastTagTime": "0001-01-01T00:00:00Z"}}) is None
    assert not Retention(days=1).takes("9.9", None)


@pytest.mark.engine
def test_the_base_images_of_the_layer_builder_are_ours(docker_client: docker.DockerClient) -> None:
    """They are listed and removed like the images, and belong to no line."""
    name = f"{clean.BASE}:test-{os.getpid()}"
    docker_client.images.build(fileobj=io.BytesIO(f"FROM scratch\nLABEL t={name}\n".encode()), tag=name, rm=True)
    (thing,) = [thing for thing in clean.made(docker_client) if name in thing.name]
    thing.remove()
    assert not docker_client.images.list(name)
    line = next(iter(catalogue.load().line))
    assert not [thing for thing in clean.made(docker_client, Retention(line)) if clean.BASE in thing.name]


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
