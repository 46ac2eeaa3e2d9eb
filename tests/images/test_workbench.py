"""The workbench image from a user's side: content, output, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import testinfra
from docker.models.containers import Container

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from tests.containers import Run, Runner
from tests.images.index import wheel

pytestmark = pytest.mark.image


@pytest.fixture(scope="module")
def shell(run_container: Runner) -> Iterator[Container]:
    """A container that only waits."""
    with run_container(["sleep", "infinity"]) as container:
        yield container


@pytest.fixture(scope="module")
def inside(shell: Container) -> Any:
    """That container as testinfra sees it."""
    return testinfra.get_host(f"docker://{shell.id}")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """An index of one harmless package."""
    wheel(tmp_path, "harmless", "1.0")
    tmp_path.chmod(0o755)
    return tmp_path


def test_torch_and_its_siblings_print_one_line(run: Run, table: Catalogue) -> None:
    """Standard output is the command's alone; the versions are the catalogue's; without a GPU torch says so."""
    line = table.line[table.default_line]
    code = "import torch as t, torchvision, torchaudio; c = t.cuda; print(t.__version__, t.version.cuda, "
    ended = run("python", "-c", code + "c.is_available(), c.device_count())")
    assert (ended.code, ended.stdout) == (0, f"{line.torch_version} {line.cuda} False 0\n")


def test_a_required_gpu_that_is_not_there_ends_with_3(run: Run) -> None:
    """It says that no GPU was given to the container, and how to give one."""
    ended = run("verify", "--require", "gpu", "--only", "gpu")
    assert ended.code == 3
    assert "no GPU was given to this container" in ended.stdout
    assert "--gpus all" in ended.stdout


def test_dockers_64_megabytes_fail_with_the_flag_to_add(run: Run) -> None:
    """`verify --only shm` in a plain container."""
    ended = run("verify", "--only", "shm")
    assert ended.code == 1
    assert "--shm-size=8g" in ended.stdout


def test_enough_shared_memory_passes(run: Run) -> None:
    """The same with the flag, and a DataLoader really moves its batches."""
    assert run("verify", "--only", "shm", shm_size="1g").code == 0


def test_a_user_installs_packages(run: Run, wheels: Path) -> None:
    """pip works for the default user, into the environment that python uses."""
    script = "pip install -q --no-index --find-links /wheels harmless >&2 && python -c 'import harmless; print(1)'"
    ended = run("bash", "-c", script, volumes={str(wheels): {"bind": "/wheels", "mode": "ro"}})
    assert ended.stdout == "1\n", ended.stderr


def test_the_user_and_the_folders_are_there(inside: Any) -> None:
    """trainer is 1000:1000 and owns the folders people mount on."""
    user = inside.user("trainer")
    assert (user.uid, user.gid, user.home) == (1000, 1000, "/home/trainer")
    assert user.shell == "/opt/gpuyard/entrypoints/session"
    for folder in ("/workspace", "/mnt/data", "/mnt/models", "/opt/venv"):
        assert inside.file(folder).user == "trainer"


def privileged_files(host: Any) -> list[str]:
    """All set-user-id and set-group-id files of the image."""
    return list(host.check_output("find / -xdev -type f -perm /6000").splitlines())


def test_no_program_gives_its_user_another_identity(run_container: Runner) -> None:
    """No set-user-id or set-group-id file is left in the image; one that is added would be seen."""
    with run_container(["sleep", "infinity"]) as container:
        root = testinfra.get_host(f"docker://root@{container.id}")
        assert privileged_files(root) == []
        root.check_output("install -m 4755 /bin/true /usr/local/bin/other")
        assert privileged_files(root) == ["/usr/local/bin/other"]


def test_each_cuda_library_stands_in_the_image_once(shell: Container) -> None:
    """No shared library that training loads has a second copy under the same name.

    triton carries its own profiler (CUPTI) beside its compiler, which only its profiler loads.
    """
    found = testinfra.get_host(f"docker://root@{shell.id}").check_output(
        "find / -xdev -type f -name 'lib*.so*' -regex '.*/lib\\(cu\\|nccl\\|nv\\)[^/]*' -not -path '*/triton/*'"
    )
    names = Counter(Path(path).name for path in found.splitlines())
    assert names["libcudnn.so.9"] == 1
    assert [name for name, count in names.items() if count > 1] == []


def test_byte_code_does_not_depend_on_times(inside: Any) -> None:
    """torch's byte code is of the unchecked-hash kind, which clamped times can't make stale."""
    code = (
        "import importlib.util, pathlib, sys; s = importlib.util.find_spec('torch').origin;"
        "p = pathlib.Path(importlib.util.cache_from_source(s)).read_bytes(); print(int.from_bytes(p[4:8], 'little'))"
    )
    assert inside.check_output(f'/opt/venv/bin/python -c "{code}"') == "1"


def test_the_image_stays_within_its_budget(docker_client: docker.DockerClient, image: str) -> None:
    """At most 4.0 GB compressed, where the engine keeps compressed content."""
    info = docker_client.info()
    if not any("io.containerd.snapshotter" in " ".join(pair) for pair in info["DriverStatus"]):
        pytest.skip("this engine's image store keeps no compressed content")
    assert docker_client.images.get(image).attrs["Size"] <= 4.0e9


def test_a_wheel_with_another_hash_is_never_installed(run: Run, wheels: Path) -> None:
    """The script that builds use refuses a wheel whose hash is not the lock's, and says so."""
    (wheels / "lock.txt").write_text(f"harmless==1.0 --hash=sha256:{'0' * 64}\n")
    (wheels / "uv.toml").write_text('no-index = true\nfind-links = ["/wheels"]\n')
    mounts = {
        str(wheels): {"bind": "/wheels", "mode": "ro"},
        str(wheels / "uv.toml"): {"bind": "/run/secrets/uv", "mode": "ro"},
        str(paths.DOCKER): {"bind": "/scripts", "mode": "ro"},
    }
    script = "/scripts/install-wheels.sh /wheels/lock.txt; echo $?; python -c 'import harmless'"
    cache = {"/var/cache/uv": "uid=1000"}
    ended = run("bash", "-c", script, volumes=mounts, tmpfs=cache)
    assert ended.stdout != "0\n"
    assert "Hash mismatch" in ended.stderr
    assert "No module named 'harmless'" in ended.stderr
