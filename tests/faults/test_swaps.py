"""Images that are not what their tag says, and packages swapped by pip and uv: verify names what is there instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from gpuyard.catalogue.table import Catalogue, Line
from tests.containers import Runner
from tests.images.index import INDEX, MOUNT, wheel

pytestmark = [pytest.mark.image, pytest.mark.full]
FREE = "env -u PIP_CONSTRAINT -u UV_CONSTRAINT PIP_CONFIG_FILE=/dev/null"
"""Without what holds torch in the image, as in an image that lacks it."""
BROKEN_OPERATOR = "raise RuntimeError('operator torchvision::nms does not exist')\n"
ALIEN_NUMPY = """
__version__ = "99.0"
class ndarray:
    def reshape(self, *_shape):
        return self
def arange(*_given, **_named):
    return ndarray()
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
"""
"""Has every name that torch asks for in Python, and not the C interface that torch was built for."""


@dataclass(frozen=True)
class Spoilt:
    """A container that a test spoils, beside an index of small fake wheels."""

    container: Container

    def run(self, command: str, **environment: str) -> str:
        """The output of a command that has to succeed."""
        code, said = self.container.exec_run(["bash", "-c", command], environment=environment)
        assert code == 0, said.decode()
        return str(said.decode())

    def verify(self, checks: str, **environment: str) -> dict[str, dict[str, Any]]:
        """The findings of these checks by name, and the verdict in words."""
        words = ["sh", "-c", f"verify --only {checks} --json - 2>/dev/null"]
        _, said = self.container.exec_run(words, environment=environment)
        report = json.loads(said)
        return {**{found["check"]: found for found in report["findings"]}, "": report["result"]}


@pytest.fixture
def line(table: Catalogue) -> Line:
    """The default line."""
    return table.line[table.default_line]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another torch, a torchvision built for it, a NumPy without its C interface."""
    folder = tmp_path_factory.mktemp("index")
    wheel(folder, "torch", "99.0")
    wheel(folder, "torchvision", "99.0", code=BROKEN_OPERATOR)
    wheel(folder, "numpy", "99.0", code=ALIEN_NUMPY)
    folder.chmod(0o755)
    return folder


@pytest.fixture
def spoilt(run_container: Runner, index: Path) -> Iterator[Spoilt]:
    """A fresh container whose only index is the folder."""
    mount = {str(index): {"bind": MOUNT, "mode": "ro"}}
    with run_container(["sleep", "infinity"], volumes=mount, environment=INDEX) as container:
        yield Spoilt(container)


def failing_owners(found: dict[str, dict[str, Any]]) -> set[str]:
    """Who has to act on the checks that failed."""
    return {finding["owner"] for check, finding in found.items() if check and finding["status"] == "fail"}


def test_a_tag_that_says_another_torch_is_found(spoilt: Spoilt) -> None:
    """Claims of one version over the packages of another, as an image that was tagged wrong has them (B22)."""
    claims = json.dumps({"versions": {"torch": "99.0+cu999", "cuda": "99.9"}, "packages": {"torch": "99.0"}})
    spoilt.run(f"echo '{claims}' > /tmp/image.json")
    found = spoilt.verify("torch-versions,lock,one-torch", GPUYARD_IMAGE_JSON="/tmp/image.json")
    assert [found[check]["status"] for check in ("torch-versions", "lock", "one-torch")] == ["fail"] * 3
    assert found["torch-versions"]["expected"] == "torch 99.0+cu999"
    assert failing_owners(found) == {"image"}
    assert "CUDA 99.9" in found["one-torch"]["expected"]


def test_torch_in_another_python_than_the_one_on_path_is_found(spoilt: Spoilt) -> None:
    """`python` is an interpreter that has no torch (B22's known cause)."""
    spoilt.run("mkdir /tmp/bin && ln -s /usr/bin/python3 /tmp/bin/python")
    found = spoilt.verify("python", PATH="/tmp/bin:/opt/venv/bin:/usr/local/bin:/usr/bin:/bin")["python"]
    assert found["status"] == "fail"
    assert "python on PATH is in /tmp, the suite runs in /opt/venv" in found["observed"]
    assert spoilt.verify("python")["python"]["status"] == "pass"


def test_a_torch_that_a_later_build_step_installed_is_found(spoilt: Spoilt, line: Line) -> None:
    """pip, unconstrained, puts another version behind the same claims (B24, B26)."""
    spoilt.run(f"{FREE} pip install -q --no-deps torch==99.0")
    found = spoilt.verify("torch-versions,lock,one-torch,pip-check")
    assert "torch is 99.0" in found["torch-versions"]["observed"]
    assert f"torch {line.torch_version}" in found["torch-versions"]["expected"]
    assert f"torch is 99.0 instead of {line.torch_version.partition('+')[0]}" in found["lock"]["observed"]
    assert "99.0 is a CPU build" in found["one-torch"]["observed"]
    assert "needs torch" in found["pip-check"]["observed"]
    assert "uv pip install --no-deps --reinstall torch==" in found["lock"]["remedy"]
    assert failing_owners(found) == {"container start"}


def test_a_torch_that_uv_run_synchronised_is_found(spoilt: Spoilt) -> None:
    """A project that locks another torch, run with the image's environment as its own (B30)."""
    project = '[project]\nname = "p"\nversion = "0"\nrequires-python = ">=3"\ndependencies = ["torch==99.0"]\n'
    spoilt.run(f"mkdir /tmp/p && cd /tmp/p && printf '%s' '{project}' > pyproject.toml")
    spoilt.run(f"cd /tmp/p && {FREE} uv run --no-config python -c 0", UV_PROJECT_ENVIRONMENT="/opt/venv")
    found = spoilt.verify("lock,torch-versions")
    assert "torch is 99.0 instead of" in found["lock"]["observed"]
    assert found["torch-versions"]["status"] == "fail"
    assert failing_owners(found) == {"container start"}


def test_a_torchvision_of_another_torch_is_found(spoilt: Spoilt) -> None:
    """Its operators are not registered (B31)."""
    assert spoilt.verify("torchvision-nms")["torchvision-nms"]["status"] == "pass"
    spoilt.run(f"{FREE} uv pip install --no-config -q --no-deps torchvision==99.0")
    found = spoilt.verify("torchvision-nms,torch-versions")
    assert "torchvision is 99.0" in found["torch-versions"]["observed"]
    assert "operator torchvision::nms does not exist" in found["torchvision-nms"]["observed"]
    assert failing_owners(found) == {"container start"}


def test_a_numpy_that_torch_cannot_use_is_found(spoilt: Spoilt) -> None:
    """torch itself imports, and fails at the first conversion (B32)."""
    assert spoilt.verify("numpy-bridge")["numpy-bridge"]["status"] == "pass"
    spoilt.run(f"{FREE} uv pip install --no-config -q --no-deps numpy==99.0")
    found = spoilt.verify("numpy-bridge,torch-import")
    assert found["torch-import"]["status"] == "pass"
    assert found["numpy-bridge"]["status"] == "fail"
    assert "Numpy is not available" in found["numpy-bridge"]["observed"]
    assert failing_owners(found) == {"container start"}
