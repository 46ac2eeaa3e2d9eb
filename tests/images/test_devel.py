"""The -devel image: a compiler of torch's own CUDA, which builds extensions for every GPU of the line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import build
from gpuyard.image.assemble import Options
from tests.containers import Runner

pytestmark = pytest.mark.full
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def product(table: Catalogue, docker_client: docker.DockerClient) -> Iterator[Product]:
    """The newest line with a compiler, built from layers; removed afterwards unless it existed before."""
    line = next(name for name in reversed(list(table.line)) if "devel" in table.images_of(name))
    made = find_product(table, line, "devel")
    there = docker_client.images.list(made.tag)
    build.from_layers(made, Options())
    yield made
    for tag in () if there else (made.tag, made.full_tag):
        docker_client.images.remove(tag)


@pytest.fixture(scope="module")
def devel(product: Product, run_container: Runner) -> Iterator[Container]:
    """A container of it."""
    volumes = {str(HERE): {"bind": "/extension", "mode": "ro"}}
    with run_container(["sleep", "infinity"], reference=product.tag, volumes=volumes, shm_size="1g") as container:
        yield container


def test_an_extension_is_compiled_for_every_gpu_of_the_line(devel: Container, product: Product) -> None:
    """torch.utils.cpp_extension finds nvcc, headers and the runtime, without a GPU and without a setting."""
    code, said = devel.exec_run(["python", "/extension/extension.py"], user="1000:1000")
    text = said.decode()
    assert code == 0, text[-4000:]
    assert "extension: right on cpu" in text
    for arch in product.row.arch_list:
        assert f"code={arch}" in text


def test_the_compiler_is_of_torchs_cuda(devel: Container, product: Product) -> None:
    """nvcc on PATH has the line's CUDA version, for any user; verify agrees."""
    for user in ("1000:1000", "23456:0"):
        code, said = devel.exec_run(["nvcc", "--version"], user=user)
        assert code == 0
        assert f"release {product.row.cuda}," in said.decode()
    code, said = devel.exec_run(["verify", "--no-color", "--only", "nvcc"], user="1000:1000")
    assert code == 0
    assert f"nvcc {product.row.cuda}" in said.decode()


def test_the_suite_passes(devel: Container) -> None:
    """All that a workbench must pass."""
    code, said = devel.exec_run(["verify", "--no-color"], user="1000:1000")
    assert code == 0, said.decode()[-4000:]
