"""Faults of a container's start and of its packages, in containers of the real image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.containers import Outcome, Run
from tests.faults.conftest import finding

pytestmark = [pytest.mark.image, pytest.mark.full]
SECCOMP = (Path(__file__).parent / "seccomp-clone3.json").read_text()
SITE = "$(python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
DECOY = "echo | gcc -shared -x c - -o /tmp/{0} -Wl,-soname,{0}"


def checked(run: Run, check: str, before: str = "true", exports: str = "", **options: Any) -> dict[str, Any]:
    """The finding of one check in a container, after a command that breaks something."""
    script = f"set -e; {before}; {exports} verify --only {check} --json -"
    outcome: Outcome = run("sh", "-c", script, **options)
    return {**finding(outcome, check), "exit_code": outcome.code}


def package(name: str, version: str) -> str:
    """Commands that put a package's metadata beside the real ones, or over them, as an installer would."""
    folder = f"{SITE}/{name.replace('-', '_')}-{version}.dist-info"
    remove = f"rm -rf {SITE}/{name.replace('-', '_')}-*.dist-info"
    text = f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
    return f"{remove}; mkdir {folder}; printf '{text}' > {folder}/METADATA"


def test_an_old_hosts_seccomp_is_named(run: Run) -> None:
    """clone3 answered with EPERM, as Docker before 20.10.10 does."""
    found = checked(run, "threads", security_opt=[f"seccomp={SECCOMP}"])
    assert (found["status"], found["owner"]) == ("fail", "host")
    assert "EPERM" in found["observed"]
    assert "20.10.10" in found["remedy"]


def test_decoys_are_named(run: Run) -> None:
    """A stray cuDNN by LD_LIBRARY_PATH, and by LD_PRELOAD the one that torch really gets."""
    before = DECOY.format("libcudnn.so.9")
    found = checked(run, "decoys", before, "LD_LIBRARY_PATH=/tmp")
    assert (found["status"], found["owner"]) == ("fail", "container start")
    assert "/tmp/libcudnn.so.9" in found["observed"]


def test_a_preloaded_library_is_seen_in_the_maps_or_breaks_the_import(run: Run) -> None:
    """Whichever comes first names LD_PRELOAD as what to unset."""
    before = DECOY.format("libcusparseLt.so.0")
    outcome = run("sh", "-c", f"{before}; LD_PRELOAD=/tmp/libcusparseLt.so.0 verify --only loaded-libraries --json -")
    report = json.loads(outcome.stdout)
    assert outcome.code == 1
    assert "LD_PRELOAD" in report["result"]["verdict"]


def test_an_extension_for_another_cuda_is_found(run: Run) -> None:
    """A package whose compiled part needs a runtime that is nowhere."""
    library = f"{DECOY.format('libcudart.so.99')}; mkdir {SITE}/ops"
    before = f"{library}; echo | gcc -shared -x c - -o {SITE}/ops/_C.so -Wl,--no-as-needed -L/tmp -l:libcudart.so.99"
    found = checked(run, "needed-libraries", before)
    assert found["status"] == "fail"
    assert "ops/_C.so needs libcudart.so.99" in found["observed"]
    assert checked(run, "needed-libraries")["status"] == "pass"


def test_a_second_nccl_is_named_with_its_owners(run: Run) -> None:
    """One from pip's torch stack, one that nobody owns."""
    found = checked(
        run, "cuda-copies", f"mkdir {SITE}/other; {DECOY.format('libnccl.so.2')}; cp /tmp/libnccl.so.2 {SITE}/other"
    )
    assert found["status"] == "fail"
    assert "libnccl.so.2" in found["observed"]
    assert "(nvidia-nccl-" in found["observed"]
    assert "no package owns it" in found["observed"]
    assert checked(run, "cuda-copies")["status"] == "pass"


def test_a_second_cuda_major_is_found(run: Run) -> None:
    """A package for another line came in with a dependency."""
    found = checked(run, "cuda-majors", package("nvidia-cublas-cu99", "99.1"))
    assert found["status"] == "fail"
    assert "CUDA 99: nvidia-cublas-cu99" in found["observed"]
    assert checked(run, "cuda-majors")["status"] == "pass"


def test_a_swapped_torch_is_found_with_the_command_that_repairs_it(run: Run) -> None:
    """Another torch's metadata stand where the locked one's were."""
    found = checked(run, "lock", package("torch", "9.9.9"))
    assert found["status"] == "fail"
    assert "torch is 9.9.9 instead of" in found["observed"]
    assert "uv pip install --no-deps --reinstall torch==" in found["remedy"]
    assert checked(run, "lock")["status"] == "pass"


def test_a_hostname_on_the_loopback_is_found(run: Run) -> None:
    """As /etc/hosts of some clusters has it."""
    found = checked(run, "hostname", hostname="node7", extra_hosts={"node7": "127.0.0.1"}, network_mode="none")
    assert found["status"] == "fail"
    assert "node7 is 127.0.0.1" in found["observed"]
    assert checked(run, "hostname")["status"] == "pass"


def test_dockers_default_shared_memory_is_found(run: Run) -> None:
    """64 MB against 1 GB."""
    assert "--shm-size" in checked(run, "shm-size")["remedy"]
    assert checked(run, "shm-size", shm_size="1g")["status"] == "pass"


def test_few_open_files_are_found(run: Run) -> None:
    """The limit and the flag."""
    from docker.types import Ulimit

    found = checked(run, "limit-nofile", ulimits=[Ulimit(name="nofile", soft=128, hard=128)])
    assert (found["status"], found["observed"]) == ("fail", "128 open files (hard limit 128)")


def test_no_compiler_and_a_foreign_nvcc_are_found(run: Run) -> None:
    """An empty PATH but for Python, and an nvcc of a CUDA that is not torch's."""
    nvcc = "printf '#!/bin/sh\\necho release 99.1\\n' > /tmp/nvcc; chmod +x /tmp/nvcc"
    assert "torch was built with" in checked(run, "nvcc", nvcc, "PATH=/tmp:$PATH")["observed"]
    found = checked(run, "compiler", "ln -s /usr/bin/python3 /tmp/", "PATH=/opt/venv/bin:/usr/local/bin:/nowhere")
    assert found["status"] == "fail"


def test_tuning_variables_are_found(run: Run) -> None:
    """What the user or the cluster set beside the image's own; the image sets none."""
    assert "NCCL_P2P_DISABLE=1" in checked(run, "tuning-env", environment={"NCCL_P2P_DISABLE": "1"})["observed"]
    assert checked(run, "tuning-env")["status"] == "pass"
