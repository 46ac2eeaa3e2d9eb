"""The bytes of a layer: a change in the code that changes them must not go unnoticed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import docker
import pytest

from gpuyard import paths
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import base as base_image
from gpuyard.image import load, reproduce
from gpuyard.layers.make import wheels_layer
from gpuyard.layers.model import Layer, Target
from gpuyard.layers.plan import Group
from gpuyard.packages.fetcher import Wheel
from gpuyard.store.store import Store
from tests.layers.wheels import make

TARGET = Target("3.13", 1_700_000_000)
FIXTURE = "fixture"
"""The table of images/digests.toml for the wheels below."""


def wheels(folder: Path) -> list[Wheel]:
    """Two wheels with everything a wheel can have; their bytes are the same everywhere."""
    files: dict[str, str | bytes] = {
        "sample/__init__.py": "VALUE = 'value'\n\n\ndef main() -> None:\n    print(VALUE)\n",
        "sample/" + "long/" * 30 + "data.bin": bytes(range(256)) * 600,
        "sample/broken.py": "def (:\n",
        "sample-1.0.data/data/share/x.json": "{}",
        "sample-1.0.data/scripts/tool": "#!python\n",
    }
    one = make(folder, files=files, scripts="[console_scripts]\nrun = sample:main\n")
    return [one, make(folder, "other", "2.0")]


def fixture_row(folder: Path, compiler: str | None) -> tuple[str, Layer]:
    """The layer of these wheels and what it is called in the record."""
    name = "with byte code" if compiler else "without byte code"
    return name, wheels_layer(wheels(folder), TARGET, compiler, folder / "layer")


def assert_as_recorded(name: str, layer: Layer) -> None:
    """Fails with what to do if the layer is not the one of the record."""
    known = reproduce.recorded().get(FIXTURE, {}).get(name)
    assert reproduce.row(layer) == known, (
        f"the bytes of layers changed: images/digests.toml has {known} for {name!r}. If that is meant, write the new "
        "ones there, and run gpuyard reproduce LINE --write for every line"
    )


def test_layers_have_the_recorded_bytes(tmp_path: Path) -> None:
    """Digest and diff id of a fixed layer are those of images/digests.toml."""
    assert_as_recorded(*fixture_row(tmp_path, None))


@pytest.mark.engine
def test_byte_code_has_the_recorded_bytes(tmp_path: Path, table: Catalogue, docker_client: docker.DockerClient) -> None:
    """Compiled in a container of the base image; code that is no Python is left as it is."""
    del docker_client
    store = Store()
    base = base_image.ensure(find_product(table, None), store, "auto", offline=False)
    load.ensure_base(base.image, base.reference, store)
    assert_as_recorded(*fixture_row(tmp_path, base.reference))


def test_every_locked_line_with_a_record_has_all_its_layers(table: Catalogue) -> None:
    """A record is of a line that exists, with a digest and a diff id for each layer."""
    for line, rows in reproduce.recorded().items():
        assert line in (*table.line, FIXTURE)
        assert all(row.keys() == {"digest", "diff_id"} for row in rows.values())


def test_a_difference_is_named_by_its_file(tmp_path: Path) -> None:
    """Two layers that should be equal: path and kind of every difference."""
    group = Group((make(tmp_path / "a"),))
    other = Group((make(tmp_path / "b", files={"sample/__init__.py": "other", "sample/more.py": ""}),))
    one = reproduce.once(group, TARGET, None, tmp_path, "first")
    two = reproduce.once(other, TARGET, None, tmp_path, "second")
    found = reproduce.compare(one, two).differences
    assert f"{TARGET.site}/sample/__init__.py: content" in found
    assert f"{TARGET.site}/sample/more.py: only in the second" in found
    later = reproduce.once(group, dataclasses.replace(TARGET, epoch=1), None, tmp_path, "later")
    assert all(line.endswith(": time") for line in reproduce.compare(one, later).differences)


def test_the_same_layer_twice_has_no_difference(tmp_path: Path) -> None:
    """From another folder, under another name."""
    group = Group((make(tmp_path / "a"),))
    pair = [reproduce.once(group, TARGET, None, tmp_path, name) for name in ("first", "second")]
    assert reproduce.compare(*pair).differences == ()


def test_a_changed_layer_is_told_from_one_packed_otherwise() -> None:
    """The record says which of the two it is, and names what is new or gone."""
    row = {"digest": "sha256:aa", "diff_id": "sha256:bb"}
    now = {"packed": {**row, "digest": "sha256:cc"}, "other": {**row, "diff_id": "sha256:dd"}, "new": row, "same": row}
    found = reproduce.changed(now, {"packed": row, "other": row, "gone": row, "same": row})
    assert [line.split(":")[0] for line in found] == ["gone", "new", "other", "packed"]
    assert "packed otherwise" in found[-1]


def test_a_record_keeps_the_other_lines(tmp_path: Path) -> None:
    """Writing one line leaves the rest as it was."""
    path, row = tmp_path / "digests.toml", {"digest": "sha256:aa", "diff_id": "sha256:bb"}
    reproduce.write("1.0", {"a==1": row}, path)
    reproduce.write("2.0", {"b==1": row}, path)
    assert reproduce.recorded(path) == {"1.0": {"a==1": row}, "2.0": {"b==1": row}}


def test_the_record_lies_with_the_images() -> None:
    """Beside the catalogue and the locks it follows from."""
    assert reproduce.DIGESTS.parent == paths.IMAGES
    assert reproduce.DIGESTS.exists()
