"""An engine that remaps users (``dockerd --userns-remap``): root in the container is nobody on the host.

A second engine holds the small image, which has the real base and the real start; JupyterLab and torch come from the
real image by a mount, so that nothing large is stored twice.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from gpuyard.catalogue.table import Catalogue
from gpuyard.image import assemble, build, load
from gpuyard.image.assemble import Options
from gpuyard.store.store import Store
from tests.containers import Outcome, ended, started
from tests.image import small
from tests.image.test_classic_store import classic

from ..conftest import KeyPair, greeting, host_port, log_of, wait_for
from ..jupyter.web import HEALTH
from ..services.test_services_running import HARD
from ..test_one_environment import ask_jupyter
from .test_user_modes import fingerprint

pytestmark = [pytest.mark.image, pytest.mark.full]
TAG = "gpuyard-small:userns"


class Remapped:
    """The second engine, and the number that the host gives to its containers' root."""

    def __init__(self, client: docker.DockerClient) -> None:
        self.client = client
        self.first = int(self.run("cat", "/proc/self/uid_map").stdout.split()[1])

    def start(self, *command: str, **options: Any) -> contextlib.AbstractContextManager[Container]:
        """A container that is removed at the end."""
        return started(self.client, TAG, list(command) or None, **options)

    def run(self, *command: str, **options: Any) -> Outcome:
        """A container's whole life."""
        with self.start(*command, **options) as container:
            return ended(container, timeout=60)


@pytest.fixture(scope="module")
def remapped(
    docker_client: docker.DockerClient, table: Catalogue, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Remapped]:
    """The engine with the small image in it."""
    del docker_client
    product = small.product(table, tmp_path_factory.mktemp("locks"), TAG)
    made = assemble.assemble(product, build.revision(), Store(), Options())
    folder = Path(tempfile.mkdtemp(prefix="gpuyard-", dir="/var/tmp"))
    # The remapped root walks through it.
    folder.chmod(0o711)
    try:
        with classic(folder, "--userns-remap=default") as address:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DOCKER_HOST", address)
                load.load(made, [TAG], Store())
            yield Remapped(docker.DockerClient(address))
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def venv(run_container: Any) -> Iterator[dict[str, dict[str, str]]]:
    """The real image's environment, mounted read-only from a container of the first engine."""
    with run_container("sleep 3600") as container:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        roots = [line.split()[4] for line in lines if container.id in line and " - overlay " in line]
        if not roots:
            pytest.skip("the first engine's files are not on this machine")
        yield {f"{roots[0]}/opt/venv": {"bind": "/opt/venv", "mode": "ro"}}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., dict[str, dict[str, str]]]:
    """Mounts a folder that belongs to a number of the host."""
    for place in (tmp_path, *list(tmp_path.parents)[:2]):
        place.chmod(0o755)

    def make(owner: int, bind: str = "/workspace") -> dict[str, dict[str, str]]:
        made = tmp_path / str(owner)
        made.mkdir()
        (made / "sentinel").write_text("theirs")
        for path in (made, made / "sentinel"):
            os.chown(path, owner, owner)
        return {str(made): {"bind": bind, "mode": "rw"}}

    return make


def test_the_user_writes_as_another_number_of_the_host(remapped: Remapped, folder: Any) -> None:
    """A folder of that number is writable without a word; a new volume is, too."""
    assert remapped.first > 0
    mount = folder(remapped.first + 1000)
    ended = remapped.run("sh", "-c", "id -u; touch /workspace/mine ~/x && echo ok", volumes=mount)
    assert (ended.code, ended.stdout) == (0, "1000\nok\n")
    assert "/workspace" not in ended.stderr
    (made,) = map(Path, mount)
    assert {path.name: path.stat().st_uid for path in made.iterdir()} == dict.fromkeys(
        ("sentinel", "mine"), remapped.first + 1000
    )
    assert remapped.run("touch", "/workspace/x", volumes={"gpuyard-test": {"bind": "/workspace"}}).code == 0


@pytest.mark.parametrize("user", ["4321:4321", "12345:0"])
def test_any_number_has_a_name_and_a_home(remapped: Remapped, user: str) -> None:
    """As without the remapping."""
    ended = remapped.run("sh", "-c", "whoami; touch ~/x && echo home", user=user)
    assert ended.stdout == f"uid{user.split(':')[0]}\nhome\n"


def test_its_root_becomes_the_user_and_touches_nothing(remapped: Remapped, folder: Any) -> None:
    """Of a folder that is the user's own, and of one that belongs to a user of the host."""
    mounts = {**folder(remapped.first + 1005), **folder(1000, "/mnt/data"), **folder(0, "/mnt/models")}
    before = {place: fingerprint(Path(place)) for place in mounts}
    script = "id -u; id -g; grep -E 'NoNewPrivs|Cap(Eff|Bnd)' /proc/self/status; cat sentinel"
    env = {"GPUYARD_UID": "1005", "GPUYARD_GID": "1006"}
    ended = remapped.run("sh", "-c", script, user="root", environment=env, volumes=mounts)
    assert ended.stdout.split() == [
        *("1005", "1006", "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "theirs")
    ]
    assert {place: fingerprint(Path(place)) for place in mounts} == before


def test_a_folder_of_the_hosts_user_is_told_with_the_number_that_helps(remapped: Remapped, folder: Any) -> None:
    """Which is the host's; nobody in the container can give it away."""
    mount = folder(1000)
    told = remapped.run("true", volumes={place: {"bind": "/mnt/data", "mode": "rw"} for place in mount})
    assert f"namespace: chown it to {remapped.first + 1000} on the host, or add --userns host" in told.stderr
    env = {"GPUYARD_CHOWN": "/workspace"}
    ended = remapped.run("echo", "runs", user="root", environment=env, volumes=mount)
    assert ended.stdout == "runs\n"
    assert "WARNING start[folder-not-given]: /workspace " in ended.stderr
    # What the line says does help.
    for place in mount:
        os.chown(place, remapped.first + 1000, remapped.first + 1000)
    assert remapped.run("touch", "mine", volumes=mount).code == 0


def test_a_number_beyond_the_namespace_is_refused(remapped: Remapped) -> None:
    """In one line that says how far they go."""
    ended = remapped.run("true", user="root", environment={"GPUYARD_UID": "70000"})
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1)
    assert "ERROR start[id-outside-namespace]: GPUYARD_UID is 70000" in ended.stderr
    assert "65535" in ended.stderr


@pytest.mark.parametrize(
    ("options", "env"),
    [(HARD, {}), ({"user": "root"}, {"GPUYARD_UID": "1005"})],
    ids=["with-as-little-as-possible", "from-root"],
)
def test_both_services_run(
    remapped: Remapped, venv: dict[str, Any], key: KeyPair, options: dict[str, Any], env: dict[str, str]
) -> None:
    """A kernel imports torch, a key logs in, and on the host none of it is a user's or root's."""
    environment = {"SSH_PUBLIC_KEY": key.public, "JUPYTER_TOKEN": "t", **env}
    ports = {"2222/tcp": ("127.0.0.1", None)}
    uid = int(env.get("GPUYARD_UID", 1000))
    with remapped.start(environment=environment, ports=ports, volumes=venv, **options) as container:
        wait_for(lambda: container.exec_run(HEALTH).output == b"jupyter, ssh answer\n", 90)
        said = ask_jupyter(container, "", "import os, torch; print(os.getuid(), torch.ones(2).sum().item())", token="t")
        assert said == f"{uid} 2.0\n"
        wait_for(lambda: greeting(host_port(container, 2222)))
        done = subprocess.run(key.ssh(host_port(container, 2222), "id -u"), capture_output=True, timeout=30, check=True)
        assert done.stdout == f"{uid}\n".encode()
        owners = {
            Path(f"/proc/{words[1]}").stat().st_uid for words in container.top(ps_args="-eo user,pid")["Processes"]
        }
        assert owners <= {remapped.first, remapped.first + uid}
        assert "Traceback" not in log_of(container)
        container.stop(timeout=10)
        assert container.wait(timeout=5)["StatusCode"] == 0
