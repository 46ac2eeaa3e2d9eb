"""Containers in places that leave them little room: closed folders, homes on NFS, no /tmp, a driver that is ill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from tests.containers import Run

from .conftest import KeyPair, greeting, host_port, log_of, wait_for
from .jupyter.web import HEALTH, healthy
from .test_long_running import NVML, write
from .test_one_environment import ask_jupyter

pytestmark = pytest.mark.image
SQUASHED: dict[str, Any] = {"user": "root", "cap_drop": ["DAC_OVERRIDE", "CHOWN", "FOWNER"]}


def owned(folder: Path, uid: int, mode: int) -> Path:
    """A folder of somebody's, with all that lies in it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, uid)
        path.chmod(0o600 if path.is_file() else mode)
    return folder


def test_a_home_on_nfs_that_squashes_root_is_its_owners(run_container: Any, key: KeyPair, tmp_path: Path) -> None:
    """Root may read nothing there and give nothing away; the user that root becomes may, and its keys count."""
    home = tmp_path / "home"
    write(home / ".ssh" / "authorized_keys", f"{key.public}\n")
    owned(home, 1005, 0o700)
    options = {**SQUASHED, "volumes": {str(home): {"bind": "/home/trainer", "mode": "rw"}}}
    environment = {"GPUYARD_UID": "1005", "GPUYARD_GID": "1005", "GPUYARD_SERVICES": "ssh"}
    with run_container(None, environment=environment, ports={"2222/tcp": ("127.0.0.1", None)}, **options) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        done = subprocess.run(key.ssh(port, "touch ~/x; id -u"), capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout == "1005\n"
    assert (home / "x").stat().st_uid == 1005


def test_a_home_that_cannot_be_entered_gets_one_line(run: Run, tmp_path: Path) -> None:
    """Whose it is, and where the home is instead; the command runs."""
    owned(tmp_path, 1005, 0o700)
    ended = run("sh", "-c", "touch ~/x && echo $HOME", volumes={str(tmp_path): {"bind": "/home/trainer", "mode": "rw"}})
    assert ended.stdout.startswith("/run/gpuyard/")
    lines = [line for line in ended.stderr.splitlines() if "/home/trainer" in line]
    assert len(lines) == 1
    assert "can't be written to by uid 1000: it belongs to 1005:1005; start with --user 1005:1005" in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_a_mount_that_cannot_be_given_away_is_told(run: Run, tmp_path: Path) -> None:
    """The server of an NFS share decides who owns what."""
    options = {**SQUASHED, "volumes": {str(tmp_path): {"bind": "/mnt/data", "mode": "rw"}}}
    tmp_path.chmod(0o755)
    ended = run("echo", "ok", environment={"GPUYARD_UID": "1005", "GPUYARD_CHOWN": "/mnt/data"}, **options)
    assert ended.stdout == "ok\n"
    assert "WARNING start[folder-not-given]: /mnt/data " in ended.stderr
    assert tmp_path.stat().st_uid == 0


@pytest.mark.parametrize(
    ("owner", "mode", "access", "said"),
    [
        (1005, 0o700, "rw", "belongs to 1005:1005"),
        (1000, 0o500, "rw", "its mode is 0500: chmod u+rwx it"),
        (1000, 0o755, "ro", "/workspace is read-only: mount a folder or --tmpfs there to save work"),
    ],
)
def test_a_workspace_that_cannot_be_written_to_is_told_before_the_services(
    run_container: Any, key: KeyPair, tmp_path: Path, owner: int, mode: int, access: str, said: str
) -> None:
    """Of somebody else, of our own without the right, or read-only: SSH serves all the same."""
    owned(tmp_path, owner, mode)
    environment = {"SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    volumes = {str(tmp_path): {"bind": "/workspace", "mode": access}}
    with run_container(None, environment=environment, volumes=volumes) as container:
        wait_for(lambda: container.exec_run(HEALTH, workdir="/").output == b"ssh answer\n")
        assert len([line for line in log_of(container).splitlines() if "/workspace" in line and said in line]) == 1


@pytest.mark.full
def test_a_read_only_workspace_is_told_and_served(run_container: Any, tmp_path: Path) -> None:
    """By JupyterLab, too: it shows what is there; nothing can be saved, and the log said so."""
    write(tmp_path / "a.txt", "x", 0o644)
    tmp_path.chmod(0o755)
    with run_container(None, volumes={str(tmp_path): {"bind": "/workspace", "mode": "ro"}}) as container:
        healthy(container)
        assert "WARNING start[folder-unwritable]: /workspace is read-only" in log_of(container)


def test_without_a_writable_tmp_everything_works_elsewhere(run_container: Any, run: Run, key: KeyPair) -> None:
    """A command, a kernel and an SSH session have a folder for temporary files; one line says what is better."""
    look = "import tempfile; print(tempfile.mkdtemp())"
    said = "add --tmpfs /tmp:exec"
    ended = run("python", "-c", look, read_only=True)
    assert ended.stdout.startswith("/dev/shm/gpuyard-1000-"), ended.stderr
    assert len([line for line in ended.stderr.splitlines() if said in line]) == 1
    environment = {"SSH_PUBLIC_KEY": key.public, "JUPYTER_TOKEN": "t"}
    ports = {"2222/tcp": ("127.0.0.1", None)}
    with run_container(None, read_only=True, environment=environment, ports=ports) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        assert ask_jupyter(container, "", look, token="t").startswith("/dev/shm/gpuyard-1000-")
        command = key.ssh(host_port(container, 2222), "mktemp -d; tmux new-session -d true && echo tmux")
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout.startswith("/dev/shm/gpuyard-1000-")
        assert done.stdout.endswith("tmux\n")


@pytest.fixture(scope="module")
def crowded(run_container: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Container, Path]]:
    """JupyterLab beside a driver that does not answer, in a home as an older container run as root left it."""
    top = tmp_path_factory.mktemp("crowded")
    home, library = top / "home", top / "libnvidia-ml.so.1"
    for name in (".jupyter", ".ipython", ".local/share/jupyter", ".cache"):
        (home / name).mkdir(parents=True)
    (home / ".jupyter" / "jupyter_server_config.py").write_text("c.ServerApp.root_dir = '/nowhere'\n")
    os.chown(home, 1000, 1000)
    source = write(top / "nvml.c", NVML.replace("int found = 0;", "return 9; int found = 0;"), 0o644)
    top.chmod(0o755)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    volumes = {
        str(home): {"bind": "/home/trainer", "mode": "rw"},
        str(library): {"bind": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "mode": "ro"},
    }
    with run_container(None, volumes=volumes, environment={"JUPYTER_TOKEN": "t"}) as container:
        healthy(container)
        yield container, home


def test_folders_of_roots_in_a_home_stop_nothing(crowded: tuple[Container, Path]) -> None:
    """A kernel starts, and settings that lie there are read."""
    container, home = crowded
    code = "import matplotlib, os; print(matplotlib.get_cachedir(), os.environ['IPYTHONDIR'])"
    said = ask_jupyter(container, "", code, token="t")
    log = log_of(container)
    assert "Traceback" not in said + log
    assert all(place.startswith("/run/gpuyard/") for place in said.split())
    assert "WARNING start[home-folders-unwritable]: " in log
    assert "(.jupyter, .local/share/jupyter, .ipython, .cache)" in log
    assert {path.stat().st_uid for path in home.iterdir()} == {0}


def test_a_driver_that_does_not_answer_leaves_jupyter_alone(crowded: tuple[Container, Path]) -> None:
    """Its dashboard could not be loaded beside it, and would fill the log with a traceback."""
    assert "nvdashboard" not in log_of(crowded[0])
    assert "Traceback" not in log_of(crowded[0])
