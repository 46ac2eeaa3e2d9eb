"""When a registry is asked for the base."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import base as base_image
from gpuyard.image import origin
from gpuyard.store.store import Store
from tests.refusals import refused


@pytest.fixture
def product(table: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Product:
    """The default line's, on a network where no registry answers."""
    monkeypatch.setattr(origin, "ask", lambda _: "silent")
    return find_product(table, None)


def test_a_base_that_is_in_the_store_is_used_without_asking_for_it(product: Product, tmp_path: Path) -> None:
    """Its digest is in the recipe, so an answer could not change it; a silent registry costs 15 seconds."""
    store = Store(tmp_path)
    with refused("base-unreachable", "GPUYARD_MIRROR"):
        base_image.ensure(product, store, "registry", offline=False)
    keep(product, store)
    assert base_image.ensure(product, store, "registry", offline=False).python == "3.13.5"
    assert base_image.ensure(product, store, "auto", offline=False).origin == "registry"


def test_a_build_without_caches_asks_all_the_same(product: Product, tmp_path: Path) -> None:
    """What is stored is not what was asked for."""
    store = Store(tmp_path)
    keep(product, store)
    with refused("base-unreachable", "GPUYARD_MIRROR"):
        base_image.ensure(product, store, "registry", offline=False, no_cache=True)


def keep(product: Product, store: Store) -> None:
    """A base from a registry, as an earlier build recorded it."""
    recipe = base_image._key(product, "registry")
    store.write_record("bases", recipe, {"origin": "registry", "layers": [], "config": {}, "python": "3.13.5"})
