"""`gpuyard load`: an image that another machine built, into this engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import docker
import pytest

from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.publishing.load import adopt
from gpuyard.errors import UserError
from gpuyard.image import build
from gpuyard.image.assemble import Options
from gpuyard.image.source import Source
from gpuyard.store.store import Store
from tests.publish.conftest import gpuyard


def test_the_store_takes_the_layers_that_it_lacks(tmp_path: Path, source: Source) -> None:
    """All the first time, none the second; a damaged one is found before it is sent on."""
    store = Store(tmp_path / "fresh")
    adopt(source, store)
    digests = [str(layer["digest"]) for layer in source.layers]
    store.refuse_damaged(digests)
    before = [store.blob(digest).stat().st_ino for digest in digests]
    adopt(source, store)
    assert [store.blob(digest).stat().st_ino for digest in digests] == before
    blob = source.layout / "blobs" / digests[0].replace(":", "/")
    data = blob.read_bytes()
    blob.unlink()
    blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    store.blob(digests[0]).unlink()
    adopt(source, store)
    with pytest.raises(UserError):
        store.refuse_damaged(digests)


def test_what_is_not_a_layout_is_refused(tmp_path: Path) -> None:
    """Before the engine is asked."""
    done = gpuyard("load", str(tmp_path))
    assert done.returncode == 1
    assert "error[layout-invalid]" in done.stderr


@pytest.mark.full
@pytest.mark.image
@pytest.mark.usefixtures("image")
def test_the_engine_gets_the_digest_of_the_layout(
    docker_client: docker.DockerClient, table: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another store, as on another machine: image and digest are those of the layout."""
    product = find_product(table, None)
    made = build.to_layout(product, Options(), tmp_path / "layout", Store(Path.home() / ".cache" / "gpuyard"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    done = gpuyard("load", str(tmp_path / "layout"))
    shutil.rmtree(tmp_path / "other")
    assert done.returncode == 0, done.stderr
    assert made.digest in done.stdout
    assert docker_client.images.get(product.tag).id == made.digest
