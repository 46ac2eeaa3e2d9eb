"""Facts are read in the files of an image, and its tags tell the truth."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.image import facts
from gpuyard.image import source as sources
from gpuyard.image.source import Source, from_layout
from gpuyard.layers import scan
from gpuyard.publish import prepare
from gpuyard.publish.prepare import Selection
from gpuyard.store.store import Store
from tests.publish import small
from tests.publish.conftest import SUFFIXES
from tests.refusals import refused


def tar(files: Mapping[str, str]) -> io.BytesIO:
    """An uncompressed layer."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    out.seek(0)
    return out


def test_tags_are_read_from_the_files_in_the_image(source: Source) -> None:
    """torch's own version, the venv's Python and the system's os-release make them; date and commit the last one."""
    tags = source.tags
    assert tags.moving == ("v9.9", "9.9")
    assert tags.full == "9.9.9-cu998-py3.99-debian13"
    assert tags.immutable == f"{tags.full}-{facts.commit_date(small.head())}-g{small.head()[:12]}"
    assert tags.in_order[0] == tags.immutable
    assert tags.in_order[-1] == "v9.9"


def test_a_variant_has_its_suffix_in_every_tag(tmp_path: Path) -> None:
    """Before date and commit."""
    small.layout(tmp_path, name="runtime")
    tags = from_layout(tmp_path / "layout", SUFFIXES).tags
    assert tags.moving == ("v9.9-runtime", "9.9-runtime")
    assert tags.immutable.startswith("9.9.9-cu998-py3.99-debian13-runtime-2")


def test_uncommitted_changes_have_no_immutable_tag(source: Source) -> None:
    """Nobody could find out later what was in the image."""
    dirty = replace(source.facts, revision=small.head() + "-dirty")
    assert facts.tags(dirty, "", facts.commit_date(dirty.revision)).immutable == ""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"torch": "9.9.8+cu998"}, ("torch", "9.9.8+cu998", "9.9.9+cu998")),
        ({"cuda": "98.0"}, ("CUDA", "98.0")),
        ({"python": "3.98"}, ("Python", "3.98")),
        ({"os_version": "12"}, ("operating system", "debian-12")),
    ],
)
def test_an_image_whose_files_differ_from_its_claims_is_refused(
    source: Source, change: dict[str, str], named: tuple[str, ...]
) -> None:
    """Case B22: a tag must not say what the image does not hold."""
    with refused("image-claims-false", *named):
        facts.refuse_untrue(replace(source.facts, **change), source.labels)  # type: ignore[arg-type]


def test_labels_of_another_image_are_refused(source: Source) -> None:
    """Labels and image.json name the same line and image."""
    with refused("image-claims-false", "label line", "9.8", "9.9"):
        facts.refuse_untrue(source.facts, {**source.labels, "io.gpuyard.line": "9.8"})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """An image without torch has no tags."""
    store = Store(tmp_path / "store")
    small.layout(tmp_path, [small.base(store), small.own(store)])
    with refused("image-facts-unreadable", "torch/version.py"):
        _ = from_layout(tmp_path / "layout", SUFFIXES).facts


def test_an_upper_layer_replaces_and_hides() -> None:
    """What a whiteout hides is not in the image, nor what lies below an opaque folder."""
    site = "opt/venv/lib/python3.99/site-packages"
    below = scan.read(tar({
        f"{site}/a-1.dist-info/METADATA": "Name: a\nVersion: 1\n",
        f"{site}/b-1.dist-info/METADATA": "Name: b\nVersion: 1\n",
        "usr/lib/os-release": "ID=old",
    }))  # fmt: skip
    above = scan.read(tar({f"{site}/.wh.a-1.dist-info": "", "./usr/lib/os-release": "ID=new"}))
    merged = scan.over(below, above)
    assert [data["name"] for data in merged.packages.values()] == ["b"]
    assert merged.files["usr/lib/os-release"] == "ID=new"
    assert not scan.over(below, scan.read(tar({f"{site}/.wh..wh..opq": ""}))).packages


def test_a_layer_is_read_once_for_all_images(tmp_path: Path, source: Source) -> None:
    """The second time its record answers, though the blob is gone."""
    store = Store(tmp_path / "records")
    blobs = source.layout / "blobs" / "sha256"
    first = scan.scan(source.layers, blobs, store)
    for layer in source.layers:
        (blobs / str(layer["digest"])[7:]).unlink()
    assert scan.scan(source.layers, blobs, store) == first


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"io.gpuyard.base-origin": "somewhere"},
            "came from somewhere .debian-13.; the catalogue declares: registry, bootstrap",
        ),
        ({"io.gpuyard.base-origin": ""}, "came from nowhere known"),
    ],
)
def test_a_base_that_the_catalogue_does_not_declare_is_refused(
    tmp_path: Path, table: Catalogue, changed: dict[str, str], words: str
) -> None:
    """Publishing refuses an origin that nobody declared."""
    small.layout(tmp_path, given={**small.labels(), **changed})
    with pytest.raises(UserError, match=words) as caught:
        prepare.source_of(Selection(layout=tmp_path / "layout"), table, Store(tmp_path / "cache"))
    assert caught.value.id == "base-undeclared"


def test_a_layout_in_the_store_takes_no_space_and_keeps_nothing(tmp_path: Path) -> None:
    """Its layers are links: what is cleaned from the store is gone, and nothing is written twice."""
    store = Store(tmp_path / "store")
    made = small.image([small.base(store), small.python(store), small.own(store)], small.labels())
    for _ in range(2):
        sources.link(tmp_path / "linked", made, "name:tag", store)
    read = from_layout(tmp_path / "linked", SUFFIXES)
    assert (read.digest, read.facts.torch) == (made.digest, f"{small.TORCH}+cu998")
    store.blob(made.blobs[0]).unlink()
    assert not (tmp_path / "linked" / "blobs" / made.blobs[0].replace(":", "/")).exists()


@pytest.mark.parametrize("damage", ["index", "manifest", "nothing"])
def test_what_is_not_a_layout_is_refused(tmp_path: Path, damage: str) -> None:
    """One line, whatever is wrong with the folder."""
    digest = small.layout(tmp_path)
    if damage == "index":
        (tmp_path / "layout" / "index.json").write_text('{"manifests": []}')
    elif damage == "manifest":
        (tmp_path / "layout" / "blobs" / "sha256" / digest[7:]).write_bytes(b"{}")
    folder = tmp_path / ("none" if damage == "nothing" else "layout")
    with refused("layout-invalid", folder):
        from_layout(folder, SUFFIXES)
