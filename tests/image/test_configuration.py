"""The configuration of an image from layers: what its Dockerfiles set, on top of the base's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuyard.catalogue.claims import labels
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import configuration
from gpuyard.store.store import Store

SOURCE = "org.opencontainers.image.source"


@pytest.mark.parametrize(("found", "command"), [({}, []), ({"Cmd": None}, []), ({"Cmd": ["train"]}, ["train"])])
def test_the_command_is_a_list_and_never_the_bases(
    table: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], command: list[str]
) -> None:
    """An entry point resets a base's command, and a tool that adds to the command can't add to null."""
    monkeypatch.setattr(configuration, "_ask", lambda *_: {"Entrypoint": ["/start"], **found})
    base = {"Cmd": ["bash"], "Env": ["LANG=C.UTF-8"]}
    made = configuration.settings(find_product(table, None), base, Store(tmp_path))
    assert made == {"Cmd": command, "Env": ["LANG=C.UTF-8"], "Entrypoint": ["/start"]}


def test_the_label_of_the_source_is_the_catalogues(table: Catalogue) -> None:
    """It is left out while the catalogue has no address."""
    address = "https://example.org/gpuyard"
    ours = table.model_copy(update={"source": address})
    assert labels(find_product(ours, None), "", "bootstrap")[SOURCE] == address
    assert SOURCE not in labels(find_product(table.model_copy(update={"source": ""}), None), "", "bootstrap")
