"""`gpuyard verify` against real containers: the good image, and derived ones with one thing broken."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from gpuyard.acceptance import proof, suite
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import Product, find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.cli import main
from gpuyard.engine.start import Gpus
from gpuyard.errors import UserError
from gpuyard.image import build
from tests.refusals import refused

pytestmark = pytest.mark.image
Derive = Callable[[str], Product]


@pytest.fixture
def derive(docker_client: docker.DockerClient, image: str) -> Iterator[Derive]:
    """Makes a product whose image is the default one with some lines of Dockerfile on top."""
    made: list[str] = []

    def make(lines: str) -> Product:
        tag = f"gpuyard-test/derived:{len(made)}"
        # The engine's old builder, which the SDK calls, breaks on layers of configuration alone.
        command = ["docker", "buildx", "build", "--quiet", "--load", "--provenance=false", "--tag", tag, "-"]
        done = subprocess.run(command, input=f"FROM {image}\n{lines}\n", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made.append(tag)
        default = find_product(catalogue.load(), None)

        class Derived(Product):
            """The default product under another tag."""

            @property
            def tag(self) -> str:
                return tag

        return Derived(default.catalogue, default.line, default.image, default.os)

    yield make
    for tag in made:
        docker_client.images.remove(tag, force=True)


def prove(client: docker.DockerClient, product: Product, *only: str) -> dict[str, Any]:
    """The findings by check of a run that takes only these."""
    choice = suite.choose(only, [], ("jupyter", "ssh"))
    report = proof.prove(client, proof.ProofRequest(product, choice, Gpus(), "256m"), lambda _text: None).to_dict()
    return {entry["check"]: entry for entry in report["findings"]} | {"exit": report["result"]["exit_code"]}


def test_the_default_image_passes_from_outside_and_its_report_is_written(
    image: str,
    tmp_path: Path,
    docker_client: docker.DockerClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SSH, Jupyter, configuration, layers and one check inside: exit code 0, three files, the real digest.

    A proxy that the environment names is for other machines, never for these containers.
    """
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    names = "content,config,start,ssh,jupyter,engine-host,shm-size"
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--gpus", "none", "--no-build", "--only", names, "--report-dir", str(tmp_path)])
    said = capsys.readouterr().out
    assert ended.value.code == 0, said
    (file,) = tmp_path.glob("*.json")
    report = json.loads(file.read_text())
    assert report["digest"] == docker_client.images.get(image).id
    assert {entry["status"] for entry in report["findings"]} == {"pass"}
    assert {entry["where"] for entry in report["findings"]} == {"inside", "outside"}
    assert {check.id for check in suite.CHECKS} < {entry["check"] for entry in report["findings"]}
    assert str(file) in said
    assert file.with_suffix(".xml").exists()
    assert file.with_suffix(".html").exists()


def test_a_required_check_that_cannot_run_ends_with_3(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GPU is asked for and none is given: the report is written, and says how to give one."""
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--gpus", "none", "--no-build", "--only", "device-nodes", "--report-dir", str(tmp_path)])
    assert image
    assert ended.value.code == 3
    assert "--gpus all" in " ".join(capsys.readouterr().out.split())
    written = {"".join(file.suffixes[1:]) for file in tmp_path.iterdir()}
    assert written == {".json", ".xml", ".html"}


def test_an_image_with_baked_tuning_and_a_host_key_fails(docker_client: docker.DockerClient, derive: Derive) -> None:
    """Variable and file are named, and the whole ends with 1."""
    product = derive(
        "USER root\nRUN touch /etc/ssh/ssh_host_rsa_key && mkdir -p /usr/lib/stubs"
        "\nRUN rm /etc/ssh/ssh_host_rsa_key && touch /usr/lib/stubs/libcuda.so\nUSER trainer\nENV NCCL_DEBUG=INFO"
    )
    found = prove(docker_client, product, "content", "config")
    assert "NCCL_DEBUG is baked in" in found["config-env"]["observed"]
    assert "/etc/ssh/ssh_host_rsa_key" in found["layers-no-secrets"]["observed"]
    assert "libcuda.so" in found["layers-no-driver"]["observed"]
    assert found["exit"] == 1


def test_an_image_that_prints_at_its_start_fails(docker_client: docker.DockerClient, derive: Derive) -> None:
    """A greeting on stdout would end up in every pipe."""
    product = derive(
        'ENTRYPOINT ["/bin/sh", "-c", "echo welcome; exec /usr/bin/tini -g -- '
        '/opt/gpuyard/entrypoints/start \\"$@\\"", "sh"]'
    )
    found = prove(docker_client, product, "stdout-pure")
    assert found["stdout-pure"]["status"] == "fail"
    assert "welcome" in found["stdout-pure"]["observed"]


def test_a_container_that_ends_at_once_is_one_error_with_the_end_of_its_log(
    docker_client: docker.DockerClient, derive: Derive
) -> None:
    """What it said stands in the message, its token does not."""
    product = derive('ENTRYPOINT ["/bin/sh", "-c", "echo no luck today $JUPYTER_TOKEN; exit 7"]')
    with refused("container-not-ready", "exit code 7", "no luck today ***"):
        prove(docker_client, product, "ssh")


@pytest.mark.usefixtures("docker_client")
def test_an_image_that_is_not_there_says_how_to_make_it(table: Catalogue) -> None:
    """No traceback for the most likely mistake, and the command names the line and image asked for."""
    nowhere = table.model_copy(update={"repository": "gpuyard-test-none"})
    with pytest.raises(UserError, match=r"gpuyard build 2\.7 --image runtime"):
        build.find(find_product(nowhere, "2.7", "runtime"))
