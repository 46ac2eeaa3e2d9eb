"""A container with a sign of a GPU whose driver misbehaves: told in words, and nothing waits for it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.containers import Run

from ..conftest import KeyPair, greeting, host_port, log_of, wait_for
from .test_line import STUB

pytestmark = pytest.mark.image


@pytest.fixture
def broken_gpu(tmp_path: Path) -> dict[str, Any]:
    """Options that give a container device nodes and a stub driver; STUB_INIT says what cuInit does."""
    source = tmp_path / "stub.c"
    source.write_text(STUB)
    tmp_path.chmod(0o755)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(source)], check=True)
    nodes = ("nvidia0", "nvidiactl", "nvidia-uvm")
    return {
        "volumes": {str(tmp_path): {"bind": "/opt/stub", "mode": "ro"}},
        "devices": [f"/dev/null:/dev/{name}:rwm" for name in nodes],
    }


@pytest.mark.parametrize("to_the_end", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_driver_that_hangs_delays_no_service(
    run_container: Any, key: KeyPair, broken_gpu: dict[str, Any], to_the_end: bool
) -> None:
    """SSH answers while the driver is still being waited for; it is given up after a quarter of a minute."""
    environment = {"STUB_INIT": "hang", "LD_LIBRARY_PATH": "/opt/stub", "GPUYARD_SERVICES": "ssh"}
    environment["SSH_PUBLIC_KEY"] = key.public
    ports = {"2222/tcp": ("127.0.0.1", None)}
    begun = time.monotonic()
    with run_container(None, environment=environment, ports=ports, **broken_gpu) as container:
        wait_for(lambda: greeting(host_port(container, 2222)))
        assert time.monotonic() - begun < 10
        assert "GPU:" not in log_of(container)
        if to_the_end:
            wait_for(lambda: "WARNING start[gpu-driver-silent]: " in log_of(container), 30)


def test_the_monitor_says_in_words_that_there_is_no_driver(run: Run) -> None:
    """People type it first; it ends with a code, and with no traceback."""
    ended = run("nvitop", "--once")
    assert ended.code == 1
    assert "NVIDIA Management Library (NVML) not found" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_broken_driver_is_told_and_the_command_runs(run: Run, broken_gpu: dict[str, Any]) -> None:
    """The verdict comes from the background, on standard error, and leaves the command no child."""
    environment = {"STUB_INIT": "802", "LD_LIBRARY_PATH": "/opt/stub"}
    ended = run("sh", "-c", "sleep 1; ps -eo stat=,comm=", environment=environment, **broken_gpu)
    assert ended.code == 0
    assert "WARNING start[gpu-unusable]: " in ended.stderr
    assert "cuInit answered 802" in ended.stderr
    assert "start" not in ended.stdout
    assert "Z" not in ended.stdout
