"""The log's first line: every broken link is named, and a driver that hangs or crashes delays nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.gpu import line

STUB = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int cuInit(unsigned flags) {
  const char *code = getenv("STUB_INIT");
  if (!strcmp(code, "hang")) sleep(60);
  if (!strcmp(code, "crash")) abort();
  return atoi(code);
}
int cuDriverGetVersion(int *version) { *version = 99080; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, "Fake 1", length); return 0; }
"""
ASK = """
import sys
from pathlib import Path
from entrypoints.gpuyard_start.gpu import line
facts = line.limited(lambda: line.probe(Path(sys.argv[1])), float(sys.argv[2]))
found = line.evaluate(facts, sys.argv[3])
print(found if isinstance(found, str) else ": ".join(found))
"""
NO_LIBRARY = line.Facts(
    devices=["nvidia0"], missing=[], closed=[], libcuda=False, libnvml=True, init=None, cuda=None, names=[]
)


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a libcuda.so.1 that answers as STUB_INIT says."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub.c").write_text(STUB)
    command = ["gcc", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(folder / "stub.c")]
    subprocess.run(command, check=True)
    return folder


def ask(stub: Path, devices: Path, init: str, limit: float = 5.0, needs: str = "99.1") -> str:
    """The verdict with a stub driver and a folder of device nodes."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(stub), "STUB_INIT": init}
    command = [sys.executable, "-c", ASK, str(devices), str(limit), needs]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """A folder that looks like /dev on a machine with one GPU."""
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_working_driver_is_told_with_names_and_cuda_level(stub: Path, devices: Path) -> None:
    """The devices that CUDA lists, counted by name, and the level that the driver supports."""
    assert ask(stub, devices, "0") == "GPU: 2 x Fake 1; the driver supports CUDA 99.8"


def test_a_driver_that_is_too_old_is_told(stub: Path, devices: Path) -> None:
    """An image of a later CUDA generation can't run on it."""
    said = ask(stub, devices, "0", needs="100.0")
    assert said.startswith("gpu-driver-old: ")
    assert "100.0" in said


@pytest.mark.parametrize("code", ["34", "46", "100", "304", "802", "803", "804", "999"])
def test_each_known_failure_of_the_driver_is_explained(stub: Path, devices: Path, code: str) -> None:
    """The code and what it means for the user."""
    said = ask(stub, devices, code)
    assert said.startswith(f"gpu-unusable: GPU: not usable: cuInit answered {code}: ")
    assert "list of results" not in said


def test_a_missing_helper_node_is_named(stub: Path, devices: Path) -> None:
    """cuInit's code alone does not say which node was not given."""
    (devices / "nvidia-uvm").unlink()
    assert ask(stub, devices, "999").endswith("missing: /dev/nvidia-uvm")


def test_a_driver_library_without_a_device_is_a_partial_sign(stub: Path, tmp_path: Path) -> None:
    """A mounted library alone is not a GPU."""
    assert "but no device node" in ask(stub, tmp_path, "100")


def test_a_driver_that_hangs_is_given_up_in_time(stub: Path, devices: Path) -> None:
    """The child is ended at the limit."""
    begun = time.monotonic()
    assert ask(stub, devices, "hang", limit=0.3).startswith("gpu-driver-silent: ")
    assert time.monotonic() - begun < 3


def test_a_driver_that_crashes_is_an_answer(stub: Path, devices: Path) -> None:
    """Only the child dies."""
    assert ask(stub, devices, "crash").startswith("gpu-driver-silent: ")


def test_device_nodes_without_libcuda_name_the_missing_capability() -> None:
    """NVML alone means that 'compute' was not granted."""
    assert "NVIDIA_DRIVER_CAPABILITIES lacks compute" in line.evaluate(NO_LIBRARY, None)[1]
    bare = line.Facts(**{**NO_LIBRARY, "libnvml": False})
    assert "no driver library was mounted" in line.evaluate(bare, None)[1]


def test_a_node_that_may_not_be_opened_is_told() -> None:
    """That is what a revoked device looks like."""
    closed = line.Facts(**{**NO_LIBRARY, "closed": ["nvidia0"]})
    assert "opening /dev/nvidia0 is refused" in line.evaluate(closed, None)[1]


def test_no_sign_of_a_gpu_is_no_warning() -> None:
    """One line that says how to get one, at level INFO."""
    none = line.Facts(**{**NO_LIBRARY, "devices": [], "libnvml": False})
    assert line.evaluate(none, "99.1") == "GPU: no GPU was given to this container: add --gpus all to use one"


def test_levels_are_written_as_users_know_them() -> None:
    """The minor version is the tens, so that .10 is not .1."""
    assert [line.cuda_text(level) for level in (99080, 99010, 99100)] == ["99.8", "99.1", "99.10"]
