"""Both builders make the same image: the Dockerfiles are the reference, layers are the fast way."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import build
from gpuyard.image.assemble import Options
from tests.image import small
from tests.image.filesystem import Node, nodes, read

ALLOWED = {
    "opt/venv/.lock": "uv's lock against a second uv; empty, and made again when uv runs in the image",
}
"""Paths that only one of the two images may have, each with its reason."""

SAME_CODE = """
import base64, json, marshal, sys
for path, one, other in json.load(sys.stdin):
    one, other = base64.b64decode(one), base64.b64decode(other)
    if one[:16] != other[:16] or marshal.loads(one[16:]) != marshal.loads(other[16:]):
        print(path)
"""


@dataclass(frozen=True)
class Pair:
    """One image by both builders."""

    client: docker.DockerClient
    dockerfiles: str
    layers: str

    def config(self, image: str) -> dict[str, Any]:
        """What the engine says of it."""
        found = self.client.images.get(image).attrs["Config"]
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class FullSize(Product):
    """A product under a tag of the tests' own."""

    way: str = ""

    @property
    def tag(self) -> str:
        return f"gpuyard-full:{self.way}"

    @property
    def full_tag(self) -> str:
        return f"gpuyard-full:{self.way}-full"


def build_pair(table: Catalogue, client: docker.DockerClient, folder: Path, image: str) -> Pair:
    """Builds a small image by both builders."""
    by_dockerfiles = small.product(table, folder / "one", f"gpuyard-small:{image}-dockerfiles", image)
    by_layers = small.product(table, folder / "two", f"gpuyard-small:{image}-layers", image)
    build.from_dockerfiles(by_dockerfiles, "auto", False)
    build.from_layers(by_layers, Options())
    return Pair(client, by_dockerfiles.tag, by_layers.tag)


@pytest.fixture(scope="module", params=["runtime", "workbench"])
def pair(
    request: pytest.FixtureRequest,
    table: Catalogue,
    docker_client: docker.DockerClient,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Pair]:
    """Both images, gone afterwards."""
    made = build_pair(table, docker_client, tmp_path_factory.mktemp("locks"), request.param)
    yield made
    for tag in (made.dockerfiles, made.layers):
        for name in (tag, tag + "-full"):
            docker_client.images.remove(name, force=True)


def differences(one: dict[str, Node], other: dict[str, Node]) -> list[str]:
    """The paths at which two file systems differ, allowed ones left out."""
    return sorted(
        path for path in one.keys() | other.keys() if one.get(path) != other.get(path) and path not in ALLOWED
    )


def other_code(pair: Pair, paths: list[str]) -> list[str]:
    """Which of these byte code files differ in more than marshal's reference bits."""
    one, other = read(pair.client, pair.dockerfiles, paths), read(pair.client, pair.layers, paths)
    assert one.keys() == other.keys()
    rows = [[path, *(base64.b64encode(found[path]).decode() for found in (one, other))] for path in one]
    command = ["docker", "run", "--rm", "-i", "--entrypoint", "python3", pair.layers, "-c", SAME_CODE]
    done = subprocess.run(command, check=True, input=json.dumps(rows), capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.engine
def test_both_builders_make_the_same_file_system(pair: Pair) -> None:
    """Every path, type, mode, owner and content is equal, but for what is allowed above.

    Byte code may differ in the bits by which marshal refers back to a string seen before: they follow
    from what else the same process compiled. The code itself must be equal.
    """
    found = differences(nodes(pair.client, pair.dockerfiles), nodes(pair.client, pair.layers))
    code = [path for path in found if path.endswith(".pyc")]
    assert [path for path in found if path not in code] == []
    assert other_code(pair, code) == []


@pytest.mark.full
@pytest.mark.engine
def test_both_builders_make_the_same_default_image(table: Catalogue, docker_client: docker.DockerClient) -> None:
    """The default line's workbench at its full size, compared in the same way."""
    made = [FullSize(table, table.default_line, "workbench", table.default_os, way=way) for way in ("docker", "layers")]
    build.from_dockerfiles(made[0], "auto", False)
    build.from_layers(made[1], Options())
    try:
        test_both_builders_make_the_same_file_system(Pair(docker_client, made[0].tag, made[1].tag))
    finally:
        for product in made:
            docker_client.images.remove(product.tag, force=True)
            docker_client.images.remove(product.full_tag, force=True)


@pytest.mark.engine
def test_both_builders_make_the_same_configuration(pair: Pair) -> None:
    """Environment, user, folder, entrypoint, ports, health check and labels are equal."""
    one, other = pair.config(pair.dockerfiles), pair.config(pair.layers)
    for name in ("Env", "User", "WorkingDir", "Entrypoint", "ExposedPorts", "Healthcheck", "Labels"):
        assert one.get(name) == other.get(name), name
    # BuildKit leaves an empty list out.
    assert (one.get("Cmd"), other.get("Cmd")) == (None, [])


@pytest.mark.engine
def test_a_file_more_a_mode_and_a_content_are_each_a_difference() -> None:
    """The comparison sees what it is there to see."""
    node = Node("file", "0o644", "0:0", "aa")
    one = {"same": node, "mode": node, "content": node}
    other = {"same": node, "mode": Node("file", "0o755", "0:0", "aa"), "content": Node("file", "0o644", "0:0", "bb")}
    assert differences(one, {**other, "more": node}) == ["content", "mode", "more"]
