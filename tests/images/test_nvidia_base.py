"""A stand-in for the nvidia/cuda base, with its traps, pulled from a registry by the same code.

The stand-in is a Debian of another release with Ubuntu's user at uid 1000 and NVIDIA's variables, labels and
package list. Only FROM and the Python differ from the default images.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from gpuyard import paths
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue, OperatingSystem
from gpuyard.image import build, origin
from gpuyard.image.assemble import Options
from tests.containers import Runner
from tests.publish import servers

pytestmark = pytest.mark.full
SUITE, PYTHON = "bookworm", "3.11"
NAME = "nvidia/cuda:stand-in"
RECIPE = """
FROM scratch
ADD rootfs.tar /
RUN groupadd --gid 1000 ubuntu && useradd --uid 1000 --gid 1000 --create-home --shell /bin/bash ubuntu
RUN echo 'deb https://nvidia.invalid/cuda/repos /' >/etc/apt/sources.list.d/cuda-ubuntu2404-x86_64.list
ENV NVARCH=x86_64 CUDA_VERSION=999.8.1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENV NVIDIA_REQUIRE_CUDA="cuda>=999.8 brand=tesla,driver>=470,driver<471" LD_LIBRARY_PATH=/usr/local/cuda/lib64
ENV PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LABEL maintainer="NVIDIA CORPORATION <cudatools@nvidia.com>" org.opencontainers.image.ref.name=ubuntu
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on loopback."""
    with servers.registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def system(
    table: Catalogue, host: str, docker_client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatingSystem]:
    """The stand-in, pushed; its row is nvidia/cuda's with another digest and Python."""
    folder = tmp_path_factory.mktemp("stand-in")
    epoch = str(int(table.os[table.default_os].epoch.timestamp()))
    make = ["bash", str(origin.BOOTSTRAP), SUITE, str(folder / "rootfs.tar")]
    subprocess.run(
        make, check=True, capture_output=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SOURCE_DATE_EPOCH": epoch}
    )
    (folder / "Dockerfile").write_text(RECIPE)
    subprocess.run(
        ["docker", "build", "--quiet", "--tag", f"{host}/{NAME}", str(folder)], check=True, capture_output=True
    )
    subprocess.run(["docker", "push", "--quiet", f"{host}/{NAME}"], check=True, capture_output=True)
    image = docker_client.images.get(f"{host}/{NAME}")
    digest = next(entry.partition("@")[2] for entry in image.attrs["RepoDigests"] if entry.startswith(host))
    row = next(row for row in table.os.values() if row.image.startswith("nvidia/cuda") and not row.nvcc)
    yield row.model_copy(update={"image": f"{NAME}@{digest}", "python": PYTHON, "cuda": None})
    docker_client.images.remove(f"{host}/{NAME}", force=True)


@pytest.fixture(scope="module")
def product(
    table: Catalogue, system: OperatingSystem, host: str, tmp_path_factory: pytest.TempPathFactory, docker_client: Any
) -> Iterator[Product]:
    """The runtime image on it: locked for its Python, built from layers."""
    patch = pytest.MonkeyPatch()
    patch.setenv(origin.MIRROR, host)
    catalogue = table.model_copy(update={"os": {**table.os, "stand-in": system}, "repository": "gpuyard-stand-in"})
    made = Product(catalogue, table.default_line, "runtime", "stand-in", tmp_path_factory.mktemp("locks"))
    made.locks.write()
    build.from_layers(made, Options("registry"))
    yield made
    patch.undo()
    for tag in (made.tag, made.full_tag):
        docker_client.images.remove(tag, force=True)


def test_torch_builds_on_it_and_the_suite_passes(product: Product, run_container: Runner) -> None:
    """trainer has uid 1000, NVIDIA's package list is removed, and the driver requirement is ours."""
    with run_container(["sleep", "infinity"], reference=product.tag, shm_size="1g") as container:
        code, said = container.exec_run(["verify", "--no-color"], user="1000:1000")
        assert code == 0, said.decode()[-4000:]
        code, said = container.exec_run(["bash", "-c", "id -un 1000; getent passwd ubuntu; ls /etc/apt/sources.list.d"])
        assert said.decode().split()[0] == "trainer"
        assert "ubuntu" not in said.decode()
        assert "cuda" not in said.decode()
        code, said = container.exec_run(["bash", "-c", "python --version; echo $NVIDIA_REQUIRE_CUDA; echo $PATH"])
        version, gate, path = said.decode().splitlines()
        assert version.startswith(f"Python {PYTHON}.")
        assert gate == product.require_cuda
        assert path.startswith("/opt/venv/bin:")


def test_where_it_came_from_stands_in_its_labels(product: Product, docker_client: docker.DockerClient) -> None:
    """The registry's image by digest, and the Python that differs."""
    labels = docker_client.images.get(product.tag).labels
    assert labels["org.opencontainers.image.base.digest"] == product.catalogue.os["stand-in"].image.partition("@")[2]
    assert labels["io.gpuyard.python"] == PYTHON
    assert labels["io.gpuyard.base-origin"] == "registry"
    assert paths.LOCKS not in product.locks.path("torch").parents
