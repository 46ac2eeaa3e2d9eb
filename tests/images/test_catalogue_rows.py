"""Each row of the catalogue agrees with the built image and its wheels' metadata."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest

from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.image import build
from gpuyard.image.assemble import Options
from tests.containers import Runner
from tests.images.answers import ask, differences, spelled

OTHERS = [name for name in catalogue.load().line if name != catalogue.load().default_line]


@pytest.fixture
def another(request: pytest.FixtureRequest, table: Catalogue, docker_client: docker.DockerClient) -> Iterator[Product]:
    """The runtime image of another line, built from layers and removed afterwards."""
    product = find_product(table, request.param, "runtime")
    there = docker_client.images.list(product.tag)
    build.from_layers(product, Options())
    yield product
    for tag in () if there else (product.tag, product.full_tag):
        docker_client.images.remove(tag)


@pytest.mark.image
def test_the_default_lines_row_is_what_its_image_says(run_container: Runner, image: str, table: Catalogue) -> None:
    """torch and its siblings, CUDA, cuDNN, NCCL, arch list, Python. A wrong row is noticed."""
    product = Product(table, table.default_line, "workbench", table.default_os)
    with run_container(["sleep", "infinity"], reference=image) as container:
        said = ask(container)
    assert differences(product, said) == {}
    for key, wrong in (("cudnn", "9.9.9.9"), ("nccl", "9.9.9"), ("arch_list", ("sm_10",)), ("torchvision", "9.9")):
        row = product.row.model_copy(update={key: wrong})
        other = Product(table.model_copy(update={"line": {product.line: row}}), product.line, "workbench", product.os)
        assert key in differences(other, said)


@pytest.mark.full
@pytest.mark.parametrize("another", OTHERS, indirect=True)
def test_another_line_builds_verifies_and_is_what_its_row_says(another: Product, run_container: Runner) -> None:
    """The suite passes on the CPU, and every answer agrees with the row."""
    with run_container(["sleep", "infinity"], reference=another.tag, shm_size="1g") as container:
        assert differences(another, ask(container)) == {}
        code, said = container.exec_run(["verify", "--no-color"], user="1000:1000")
    assert code == 0, said.decode()[-4000:]


def test_cudnns_number_is_read_as_its_version() -> None:
    """Two digits each below the first part."""
    assert spelled(90805) == "9.8.5"
    assert spelled(91234) == "9.12.34"
