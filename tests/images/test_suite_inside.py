"""The suite's own torch tests, run where torch is: in a container of the image."""

from __future__ import annotations

import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from gpuyard import paths
from tests.containers import Run

pytestmark = pytest.mark.image
PURE = ("pytest", "pluggy", "iniconfig", "packaging", "Pygments")
FILES = (
    "reference/test_models.py",
    "reference/test_training.py",
    "checks/test_compute.py",
    "checks/test_dataloader.py",
    "checks/test_train.py",
    "checks/test_operators.py",
    "checks/test_distributed.py",
    "checks/test_data_parallel.py",
    "reference/test_generators.py",
    "engine/test_torchhost.py",
    "test_cli.py::test_an_interrupt_ends_within_a_second_and_leaves_nothing[15-torch-import]",
)


@pytest.fixture
def pytest_folder(tmp_path: Path) -> Path:
    """A folder with this environment's pytest, which is pure Python, to mount beside the image's packages."""
    for name in PURE:
        for file in metadata.files(name) or []:
            if not file.parts[0].startswith("..") and "__pycache__" not in file.parts:
                target = tmp_path / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), target)
    tmp_path.chmod(0o755)
    return tmp_path


def test_the_torch_tests_pass_in_the_image(run: Run, pytest_folder: Path) -> None:
    """Values, training, gradients and shared memory, against the torch of the image; none is skipped for lack of it."""
    tests = [f"/src/tests/verify/{name}" for name in FILES]
    options = ["-q", "-p", "no:cacheprovider", "--noconftest", "-c", "/src/pyproject.toml", "--rootdir", "/src"]
    mounts = {
        str(paths.ROOT): {"bind": "/src", "mode": "ro"},
        str(pytest_folder): {"bind": "/opt/pytest", "mode": "ro"},
    }
    ended = run(
        *("python", "-m", "pytest", *options, *tests),
        environment={"PYTHONPATH": "/opt/pytest:/src"},
        volumes=mounts,
        shm_size="1g",
        timeout=600,
    )
    assert ended.code == 0, ended.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", ended.stdout)[1]) > 50  # type: ignore[index]
    assert "could not import 'torch'" not in ended.stdout
