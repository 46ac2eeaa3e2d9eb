"""A container as a filter: an answer is whole, or it is an error."""

from __future__ import annotations

import time
from pathlib import Path

import docker
import pytest

from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import base as base_image
from gpuyard.image import load
from gpuyard.layers.container import Filter
from gpuyard.store.store import Store
from tests.refusals import refused

pytestmark = pytest.mark.engine

ANSWER = "set -e; tar -xf - -C /tmp; cd /tmp; tar -cf results file; "
WHOLE = "touch gpuyard-complete; tar -rf results gpuyard-complete; cat results"


@pytest.fixture(scope="module")
def base(table: Catalogue, docker_client: docker.DockerClient) -> str:
    """A base image in the engine."""
    del docker_client
    found = base_image.ensure(find_product(table, None), Store(), "auto", offline=False)
    load.ensure_base(found.image, found.reference, Store())
    return found.reference


def answer(base: str, script: Path) -> dict[str, bytes]:
    """What the script answers with, by name, when it is given one file."""
    with Filter(base, script) as container:
        container.give("file", b"content")
        return {member.name: content.read() for member, content in container.results() if content}


def test_a_whole_answer_is_taken_before_the_container_ends(tmp_path: Path, base: str) -> None:
    """The last file marks success and is not part of the result."""
    script = tmp_path / "slow.sh"
    script.write_text(ANSWER + WHOLE + "; sleep 30")
    started = time.monotonic()
    assert answer(base, script) == {"file": b"content"}
    assert time.monotonic() - started < 25


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("cat results; echo 'no space left' >&2; exit 3", "no space left"),
        ("cat results", "failed"),
        (WHOLE + " | head -c 700", "failed"),
    ],
)
def test_an_answer_that_stops_early_is_none(tmp_path: Path, base: str, end: str, said: str) -> None:
    """A failing script, a tar without the last file, and half a tar: the script's last words, and no result."""
    script = tmp_path / "early.sh"
    script.write_text(ANSWER + end)
    with refused("layer-script-failed", script.name, said):
        answer(base, script)
