"""Weeks in a container: hooks, installed packages, processors and memory that run short, no entry point."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuyard import paths
from tests.containers import Run

from .conftest import KeyPair, log_of, wait_for
from .test_one_environment import ask_jupyter

pytestmark = pytest.mark.image
HEALTH = "/opt/gpuyard/entrypoints/health"


def write(path: Path, text: str, mode: int = 0o755) -> Path:
    """A file, with the folders above it open to all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def hooks(folder: Path) -> dict[str, dict[str, str]]:
    """Mounts a folder where hooks are looked for."""
    folder.chmod(0o755)
    return {str(folder): {"bind": "/etc/gpuyard/hooks", "mode": "ro"}}


def test_hooks_run_before_the_command_and_leave_it_its_output(run: Run, tmp_path: Path) -> None:
    """Those of setup.d as the user that the container was started as, those of start.d as who it becomes."""
    write(tmp_path / "setup.d" / "10-who.sh", "#!/bin/sh\necho setup-$(id -u)\n")
    write(tmp_path / "start.d" / "20-late.sh", "#!/bin/sh\necho late-$(id -u)\n")
    write(tmp_path / "start.d" / "10-who.py", "#!/usr/bin/env python\nimport os; print('early', os.getuid())\n")
    ended = run("echo", "done", user="root", environment={"GPUYARD_UID": "1005"}, volumes=hooks(tmp_path))
    assert (ended.code, ended.stdout) == (0, "done\n")
    places = [ended.stderr.index(said) for said in ("setup-0", "early 1005", "late-1005")]
    assert places == sorted(places)
    assert "hook /etc/gpuyard/hooks/start.d/20-late.sh succeeded after 0." in ended.stderr


def test_a_hook_that_fails_ends_the_container_with_its_code(run: Run, tmp_path: Path) -> None:
    """Nothing is started."""
    write(tmp_path / "start.d" / "10-fails.sh", "#!/bin/sh\nexit 7\n")
    ended = run("echo", "never", volumes=hooks(tmp_path))
    assert (ended.code, ended.stdout) == (7, "")
    assert "ERROR start[hook-failed]: hook /etc/gpuyard/hooks/start.d/10-fails.sh " in ended.stderr


@pytest.mark.parametrize("stage", ["setup.d", "start.d"])
def test_a_hook_that_is_not_executable_is_refused(run: Run, tmp_path: Path, stage: str) -> None:
    """Before any other hook runs."""
    write(tmp_path / "setup.d" / "00-first.sh", "#!/bin/sh\necho ran\n")
    write(tmp_path / stage / "10-x.sh", "#!/bin/sh\n", 0o644)
    ended = run("true", volumes=hooks(tmp_path))
    assert ended.code == 2
    assert f"ERROR start[hook-unusable]: hook /etc/gpuyard/hooks/{stage}/10-x.sh " in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_quota_of_processors_reaches_torch(run: Run) -> None:
    """Without a word of it in the image; a number that the user gave stays."""
    show = "import torch; print(torch.get_num_threads())"
    assert run("python", "-c", show, nano_cpus=10**9).stdout == "1\n"
    given = run("printenv", "OMP_NUM_THREADS", nano_cpus=10**9, environment={"OMP_NUM_THREADS": "3"})
    assert given.stdout == "3\n"
    assert run("printenv", "OMP_NUM_THREADS").code == 1


def test_the_soft_limit_of_open_files_is_raised(run: Run) -> None:
    """DataLoader workers need many."""
    import docker

    limit = docker.types.Ulimit(name="nofile", soft=128, hard=4096)
    assert run("sh", "-c", "ulimit -Sn; ulimit -Hn", ulimits=[limit]).stdout == "4096\n4096\n"


EAT = "blocks = [bytearray(b'x') * 20_000_000 for _ in range(200)]"


def test_a_kernel_that_eats_all_memory_goes_alone_and_is_told(run_container: Any, key: KeyPair) -> None:
    """Jupyter and sshd survive it, and a program over SSH; the log says in words what happened and what helps."""
    environment = {"SSH_PUBLIC_KEY": key.public, "JUPYTER_TOKEN": "t"}
    with run_container(None, mem_limit="700m", memswap_limit="700m", environment=environment) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        services = container.exec_run("pgrep -f jupyter-lab|listener").output
        assert ask_jupyter(container, "", EAT, token="t") == "the kernel died"
        wait_for(lambda: "ERROR start[out-of-memory]: " in log_of(container))
        assert "0.7 GiB" in log_of(container)
        assert "WARNING start[memory-small]: memory is limited to 700 MB" in log_of(container)
        session = ["/opt/gpuyard/entrypoints/session", "-c", f'python -c "{EAT}"; echo ended-$?']
        assert b"ended-137" in container.exec_run(session).output
        assert container.exec_run("pgrep -f jupyter-lab|listener").output == services
        assert container.exec_run(HEALTH).output == b"jupyter, ssh answer\n"


def test_apt_without_root_says_how_a_package_gets_in(run: Run) -> None:
    """Under both names; everything that needs no root is Debian's own apt."""
    script = "for name in apt apt-get; do $name -y install sl; echo $?; $name --version | grep -o ^apt; done"
    ended = run("sh", "-c", script)
    assert ended.stdout.split() == ["100", "apt", "100", "apt"]
    assert ended.stderr.count("docker exec -u 0 NAME") == 2


NVML = r"""
#include <stdio.h>
static int code(void) {
  int found = 0;
  FILE *file = fopen("/tmp/nvml", "r");
  if (file) { fscanf(file, "%d", &found); fclose(file); }
  return found;
}
int nvmlInit_v2(void) { return code() == 15 ? 0 : code(); }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  *handle = 0;
  return index == 1 && code() == 15 ? 15 : 0;
}
"""


@pytest.fixture
def gpu(tmp_path: Path) -> dict[str, Any]:
    """Options that give a container a device node and an NVML that says what /tmp/nvml tells it."""
    source = write(tmp_path / "nvml.c", NVML, 0o644)
    tmp_path.chmod(0o755)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    place = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
    return {"volumes": {str(library): {"bind": place, "mode": "ro"}}, "devices": ["/dev/null:/dev/nvidia0:rwm"]}


def test_health_asks_the_gpu_where_one_was_given(run_container: Any, key: KeyPair, gpu: dict[str, Any]) -> None:
    """Lost from the bus, or access revoked: unhealthy, in words."""
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    with run_container(None, environment=environment, **gpu) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"ssh, GPU answer\n")
        for code, said in ((15, b"fallen off the bus"), (999, b"device access was revoked")):
            container.exec_run(["sh", "-c", f"echo {code} > /tmp/nvml"])
            found, output = container.exec_run(HEALTH)
            assert found == 1
            assert said in output
            assert f"(code {code})".encode() in output


def test_health_asks_the_gpu_of_a_command_too(run_container: Any, gpu: dict[str, Any]) -> None:
    """A job of Kubernetes runs no service: its liveness probe still sees that the GPU is lost."""
    with run_container(["sleep", "60"], **gpu) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"GPU answer\n")
        container.exec_run(["sh", "-c", "echo 15 > /tmp/nvml"])
        found, output = container.exec_run(HEALTH)
        assert found == 1
        assert b"fallen off the bus" in output
    with run_container(["sleep", "60"]) as container:
        assert container.exec_run(HEALTH) == (0, b"no service was asked for\n")


def test_the_messages_of_the_start_lie_beside_it(run: Run) -> None:
    """In the image, where `verify explain` finds them."""
    ended = run("cat", "/opt/gpuyard/entrypoints/messages.toml")
    assert ended.stdout == (paths.ROOT / "entrypoints" / "messages.toml").read_text()


BARE: dict[str, Any] = {
    "entrypoint": "",
    "read_only": True,
    "user": "12345:54321",
    "tmpfs": {"/tmp": ""},
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "network_mode": "none",
}


def test_without_the_entry_point_all_is_there(run: Run, tmp_path: Path) -> None:
    """As enroot and pyxis run images: read-only, any uid, a home of the host's that holds another torch."""
    tmp_path.chmod(0o755)
    shadow = tmp_path / ".local" / "lib" / "python3.13" / "site-packages" / "torch"
    write(shadow / "__init__.py", "raise SystemExit('the home wins')\n", 0o644)
    options = {**BARE, "volumes": {str(tmp_path): {"bind": "/h", "mode": "ro"}}, "environment": {"HOME": "/h"}}
    look = "import torch; print(torch.ones(2).sum().item())"
    assert run("python", "-c", look, **options).stdout == "2.0\n"
    assert run("verify", "--only", "user-site,torch-versions", **options).code == 0
    write(tmp_path / "job.py", "import os; print('rank', os.environ['RANK'])\n", 0o644)
    # Its workers meet under the machine's name, which a container without a network does not have.
    del options["network_mode"]
    ended = run("torchrun", "--standalone", "--nproc-per-node=1", "/h/job.py", **options)
    assert ended.stdout == "rank 0\n", ended.stderr


def test_all_but_jupyter_is_small_when_idle(run_container: Any, key: KeyPair) -> None:
    """Supervisor, sshd and the watch over memory: under 40 MB together."""
    with run_container(None, environment={"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"ssh answer\n")
        lines = container.exec_run("ps -eo rss=,comm=").output.decode().splitlines()
        assert sum(int(line.split()[0]) for line in lines if not line.endswith(" ps")) < 40 * 1024


def test_a_workspace_on_a_full_or_closed_disk_keeps_no_command_from_running(run: Run) -> None:
    """A read-only workspace is told when services start; a command runs."""
    assert run("echo", "ok", read_only=True, tmpfs={"/workspace": "ro", "/tmp": ""}).stdout == "ok\n"
