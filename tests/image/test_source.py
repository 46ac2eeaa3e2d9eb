"""What publish takes from a checkout is what the layer builder made from it, and nothing is built for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import build
from gpuyard.image.assemble import Options, assemble
from gpuyard.image.source import from_checkout
from gpuyard.store.store import Store
from tests.image import small
from tests.refusals import refused


def test_an_image_that_was_not_built_is_refused_at_once(table: Catalogue, tmp_path: Path) -> None:
    """With the command that builds it; no engine, no network."""
    product = find_product(table, None)
    with refused("image-not-assembled", product.tag, f"gpuyard build {product.line}"):
        from_checkout(product, Store(tmp_path))


@pytest.mark.engine
@pytest.mark.usefixtures("docker_client")
def test_the_records_make_the_image_that_the_builder_made(
    table: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digest for digest; a layer that is gone from the store is missed by name."""
    monkeypatch.undo()
    store = Store()
    product = small.product(table, tmp_path / "locks", "gpuyard-small:publish")
    made = assemble(product, build.revision(), store, Options())
    found = from_checkout(product, store)
    assert found.digest == made.digest
    assert found.contents.files["etc/gpuyard/image.json"]
    empty = Store(tmp_path / "empty")
    (empty.folder).mkdir()
    (empty.folder / "bases").symlink_to(store.folder / "bases")
    (empty.folder / "blobs").symlink_to(store.folder / "blobs")
    with refused("image-not-assembled", "cuda wheels"):
        from_checkout(product, empty)
