"""compose.yaml: two profiles of one service, nothing empty handed on, nothing open to other machines."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

import pytest

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue

FILE = paths.ROOT / "compose.yaml"
PROJECT = f"gpuyard-test-{os.getpid()}"
OURS = ("GPUYARD_", "JUPYTER_", "SSH_", "BIND", "WORKSPACE", "DATA", "MODELS", "SHM_SIZE", "COMPOSE_")


def compose(*words: str, **variables: str) -> str:
    """What docker compose prints, with these variables and no others of ours."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    command = ["docker", "compose", "--project-name", PROJECT, "--file", str(FILE), *words]
    done = subprocess.run(command, env=env | variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def service(name: str, **variables: str) -> dict[str, Any]:
    """A service as compose understands it."""
    config = json.loads(compose("--profile", name, "config", "--format", "json", **variables))
    assert list(config["services"]) == [name]
    return dict(config["services"][name])


def test_its_image_is_the_catalogues_default(table: Catalogue) -> None:
    """The one version that compose.yaml mentions is the default line's tag."""
    named = re.findall(rf"{re.escape(table.repository)}:[\w.-]+", FILE.read_text())
    assert named == [table.tag(table.default_line, "workbench")]


@pytest.mark.engine
def test_without_a_profile_nothing_starts() -> None:
    """Nobody gets the GPU service, or the CPU one, by accident."""
    assert json.loads(compose("config", "--format", "json"))["services"] == {}


@pytest.mark.engine
def test_the_profiles_differ_in_the_gpu_alone() -> None:
    """Both are one service; the devices are the only difference."""
    gpu, cpu = service("gpu"), service("cpu")
    (device,) = gpu.pop("deploy")["resources"]["reservations"]["devices"]
    assert (device["driver"], device["count"], device["capabilities"]) == ("nvidia", -1, ["gpu"])
    assert gpu | {"profiles": None} == cpu | {"profiles": None}


@pytest.mark.engine
def test_shared_memory_and_mounts_are_those_of_a_training_machine() -> None:
    """8 GB on the service itself, which is where the container gets it from."""
    cpu = service("cpu")
    assert int(cpu["shm_size"]) == 8 << 30
    assert [mount["target"] for mount in cpu["volumes"]] == ["/workspace", "/mnt/data", "/mnt/models"]
    assert "shm_size" not in cpu.get("build", {})


@pytest.mark.engine
def test_ports_are_this_machines_own_unless_asked() -> None:
    """BIND opens them, and nothing else does."""
    assert {port["host_ip"] for port in service("cpu")["ports"]} == {"127.0.0.1"}
    assert {port["host_ip"] for port in service("cpu", BIND="0.0.0.0")["ports"]} == {"0.0.0.0"}


@pytest.mark.engine
def test_a_token_that_is_not_set_is_not_passed_on() -> None:
    """Unset stays unset: an empty string would ask for a server without a login."""
    given = service("cpu")["environment"]
    assert [name for name, value in given.items() if value is not None] == ["JUPYTER_LINK"]
    assert service("cpu", JUPYTER_TOKEN="t")["environment"]["JUPYTER_TOKEN"] == "t"


@pytest.mark.engine
def test_the_log_is_told_the_port_of_this_machine() -> None:
    """Its link must be one that works; a proxy's address is the user's to say."""
    assert service("cpu")["environment"]["JUPYTER_LINK"] == "http://127.0.0.1:8888"
    moved = service("cpu", BIND="0.0.0.0", JUPYTER_PORT="9999")
    assert moved["environment"]["JUPYTER_LINK"] == "http://0.0.0.0:9999"
    assert service("cpu", JUPYTER_LINK="https://lab")["environment"]["JUPYTER_LINK"] == "https://lab"


@pytest.mark.engine
def test_nothing_is_allowed_that_nothing_needs() -> None:
    """Capabilities and new privileges, for both profiles."""
    for profile in ("gpu", "cpu"):
        found = service(profile)
        assert found["cap_drop"] == ["ALL"]
        assert not {"NET_RAW", "SYS_ADMIN", "MKNOD"} & set(found["cap_add"])
        assert found["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.engine
def test_a_folder_of_the_host_takes_the_place_of_a_volume() -> None:
    """WORKSPACE=. mounts the folder where compose.yaml lies."""
    mount = service("cpu", WORKSPACE=".")["volumes"][0]
    assert (mount["type"], mount["source"]) == ("bind", str(paths.ROOT))


INSTALL = """
mkdir -p /tmp/p/DEBIAN && cd /tmp
printf 'Package: tiny\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b.c>\\nDescription: x\\n' >p/DEBIAN/control
chmod 0755 p/DEBIAN && dpkg-deb --build p tiny.deb >&2 && apt-get install -y ./tiny.deb >&2 && dpkg-query -W tiny
"""


@pytest.mark.image
def test_a_debian_package_can_still_be_installed_by_root(image: str) -> None:
    """What the image says about packages holds here, too."""
    root = ("--user", "0", "-e", "GPUYARD_ALLOW_ROOT=yes")
    try:
        said = compose("--profile", "cpu", "run", "--rm", "-T", *root, "cpu", "sh", "-c", INSTALL, GPUYARD_IMAGE=image)
    finally:
        compose("--profile", "cpu", "down", "--volumes")
    assert said == "tiny\t1\n"


@pytest.mark.image
def test_a_container_of_it_sees_none_of_the_unset_variables(image: str) -> None:
    """In the container itself the names do not exist."""
    try:
        said = compose("--profile", "cpu", "run", "--rm", "-T", "cpu", "env", GPUYARD_IMAGE=image)
    finally:
        compose("--profile", "cpu", "down", "--volumes")
    names = {line.split("=")[0] for line in said.splitlines()}
    assert "PATH" in names
    assert not {"JUPYTER_TOKEN", "SSH_PUBLIC_KEY", "GPUYARD_SERVICES"} & names
