"""The examples as users run them: in the image, with volumes, stopped and started again, as notebooks, as snippets."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.models.containers import Container

from gpuyard import paths
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from tests import notebooks
from tests.containers import Run, Runner
from tests.images.test_suite_inside import pytest_folder  # noqa: F401

pytestmark = pytest.mark.image
SNIPPETS = paths.ROOT / "tests" / "examples" / "snippets"
TABLE = catalogue.load()
CLASSIFY = ["python", "-m", "examples.classify"]


@pytest.fixture
def volume(docker_client: docker.DockerClient) -> Iterator[str]:
    """A named volume of this test alone."""
    made = docker_client.volumes.create(f"gpuyard-examples-{uuid.uuid4().hex[:8]}")
    yield str(made.name)
    made.remove(force=True)


@pytest.fixture(scope="module")
def desk(run_container: Runner) -> Iterator[Container]:
    """A container that waits, with the snippets and a folder to write to."""
    mounts = {str(SNIPPETS): {"bind": "/mnt/data/snippets", "mode": "ro"}}
    options: dict[str, Any] = {"volumes": mounts, "working_dir": "/workspace", "shm_size": "1g"}
    with run_container(["sleep", "infinity"], **options) as container:
        yield container


def waited(container: Container, text: str, seconds: float = 60) -> str:
    """The container's output, once it holds that text."""
    deadline = time.monotonic() + seconds
    while text not in (said := str(container.logs().decode())):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
    return said


@pytest.fixture(scope="module")
def plain(run_container: Runner) -> list[str]:
    """What a training says that nobody disturbs, without a word of configuration."""
    with run_container(CLASSIFY) as container:
        assert container.wait(timeout=120)["StatusCode"] == 0, container.logs().decode()
        said: bytes = container.logs(stderr=False)
        return said.decode().splitlines()


def test_titles_are_told_apart(plain: list[str]) -> None:
    """Nine of ten that were not learned from."""
    (accuracy,) = re.findall(r"held-out accuracy ([\d.]+)%", "\n".join(plain))
    assert float(accuracy) >= 90


@pytest.mark.full
def test_a_training_that_is_stopped_and_killed_ends_the_same(
    run: Run, run_container: Runner, volume: str, plain: list[str]
) -> None:
    """Stopped half way by docker, killed at three quarters, and started again."""
    mounts = {volume: {"bind": "/mnt/models", "mode": "rw"}}
    with run_container(CLASSIFY, volumes=mounts) as container:
        waited(container, "epoch 4/12")
        # Docker would kill it after 5 seconds, and the code would not be 0.
        container.stop(timeout=5)
        assert container.wait()["StatusCode"] == 0
        assert "classify: asked to end by SIGTERM: saved after step" in container.logs().decode()
    with run_container(CLASSIFY, volumes=mounts) as container:
        assert "continues after step" in waited(container, "epoch 8/12")
        container.kill()
    again = run(*CLASSIFY, volumes=mounts)
    assert again.code == 0, again.stderr
    rest = again.stdout.splitlines()[1:]
    # All but the time that an epoch took.
    assert [line.split("%,")[0] for line in rest] == [line.split("%,")[0] for line in plain[-len(rest) :]]


@pytest.mark.full
def test_a_stop_while_torch_is_imported_is_no_failure(run_container: Runner) -> None:
    """At once, with code 0, though imports go on after most exceptions."""
    for module in ("torch._C", "torch._dynamo", "torch.utils.tensorboard"):
        with run_container(["python", "-X", "importtime", *CLASSIFY[1:]]) as container:
            waited(container, f" {module}\n")
            began = time.monotonic()
            container.stop(timeout=20)
            assert time.monotonic() - began < 5
            assert container.wait()["StatusCode"] == 0
            assert "asked to end by SIGTERM" in container.logs().decode()


def test_a_full_volume_leaves_the_last_checkpoint(run: Run) -> None:
    """One line that says where space is missing."""
    ended = run(*CLASSIFY, tmpfs={"/mnt/models": "size=900k,uid=1000"})
    assert ended.code == 1
    (said,) = [line for line in ended.stderr.splitlines() if line.startswith("classify: ")]
    assert re.search(
        r"can't save .*No space left on device; the checkpoint.pt saved before is as it was: free some", said
    )
    assert "Traceback" not in ended.stderr


@pytest.mark.full
def test_a_volume_that_is_full_before_the_first_step_is_one_line(run: Run) -> None:
    """Not even TensorBoard's log can be begun."""
    fill = 'dd if=/dev/zero of=/mnt/models/fill status=none 2>&-; exec "$@"'
    ended = run("sh", "-c", fill, "sh", *CLASSIFY, tmpfs={"/mnt/models": "size=1m,uid=1000"})
    assert ended.code == 1
    assert re.search(
        r"^classify: No space left on device.*free some and run the same command", ended.stderr, re.MULTILINE
    )
    assert "Traceback" not in ended.stderr


def test_a_models_folder_of_somebody_else_is_said_before_the_training(run: Run, tmp_path: Path) -> None:
    """With the uid that it must belong to."""
    tmp_path.chmod(0o755)
    ended = run(*CLASSIFY, volumes={str(tmp_path): {"bind": "/mnt/models", "mode": "rw"}})
    assert ended.code == 1
    assert "can't write to /mnt/models/classify-rnn: Permission denied. It must belong to uid 1000" in ended.stderr


def unexplained(said: str) -> list[str]:
    """The warnings of an output that the examples' page does not have."""
    page = " ".join((paths.ROOT / "docs" / "examples.md").read_text().split())
    return [words for words in re.findall(r"\w*Warning: (.+)", said) if words[:40] not in page]


@pytest.mark.parametrize("snippet", sorted(file.name for file in SNIPPETS.glob("*.py")))
def test_code_as_users_paste_it_runs_and_its_warnings_are_explained(desk: Container, snippet: str) -> None:
    """Unchanged; each warning it prints stands on the examples' page."""
    code, said = desk.exec_run(["python", f"/mnt/data/snippets/{snippet}"])
    assert code == 0, said.decode()
    assert not unexplained(said.decode())


@pytest.mark.full
@pytest.mark.parametrize("line", [line for line in TABLE.line if line != TABLE.default_line])
def test_code_as_users_paste_it_runs_in_every_line(
    run_container: Runner, docker_client: docker.DockerClient, table: Catalogue, line: str
) -> None:
    """Those that are built on this machine; with no other warnings."""
    tag = find_product(table, line).tag
    if not docker_client.images.list(tag):
        pytest.skip(f"{tag} is not built here: make build LINE={line}")
    mounts = {str(SNIPPETS): {"bind": "/mnt/data/snippets", "mode": "ro"}}
    every = "for file in /mnt/data/snippets/*.py; do python $file || exit; done"
    with run_container(["sh", "-c", every], tag, volumes=mounts, shm_size="1g") as container:
        assert container.wait(timeout=250)["StatusCode"] == 0, container.logs().decode()[-3000:]
        assert not unexplained(container.logs().decode())


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "said", "pictures"),
    [
        ("classify", "Bank raises its interest rate -> economy", 2),
        ("transformer", "below the bound", 1),
        ("generate", "at least halved", 0),
    ],
)
def test_each_notebook_runs_to_its_end(desk: Container, name: str, said: str, pictures: int) -> None:
    """Every cell; with what the script says, and its pictures."""
    code, output = desk.exec_run(["python", "-c", notebooks.RUN, f"/opt/gpuyard/examples/{name}.ipynb"], demux=True)
    assert code == 0, output[1].decode()
    found = json.loads(output[0].decode().splitlines()[-1])
    assert said in found["text"]
    assert [image[:8] for image in found["images"]] == ["iVBORw0K"] * pictures


def test_each_example_has_help_without_loading_torch(desk: Container) -> None:
    """It comes at once, with the common options."""
    for name in ("classify", "transformer", "generate"):
        began = time.monotonic()
        code, said = desk.exec_run(["python", "-m", f"examples.{name}", "--help"])
        assert (code, b"--models" in said) == (0, True)
        assert time.monotonic() - began < 2


def test_tensorboard_shows_the_curves_of_a_training(desk: Container) -> None:
    """Training and held-out loss, step by step, as TensorBoard itself reads them."""
    code, said = desk.exec_run(["python", "-m", "examples.classify", "--epochs", "2", "--name", "seen"])
    assert code == 0, said.decode()
    read = (
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as E;"
        "e = E('/mnt/models/seen/logs'); e.Reload();"
        "print({t: len(e.Scalars(t)) for t in e.Tags()['scalars']})"
    )
    code, said = desk.exec_run(["python", "-c", read])
    assert "{'loss/training': 40, 'loss/held-out': 2, 'accuracy/held-out': 2}" in said.decode()


def inside(run: Run, tests: list[str], folder: Path) -> None:
    """Runs tests of this folder in the image, on this checkout's examples."""
    mounts = {
        str(paths.ROOT): {"bind": "/src", "mode": "ro"},
        str(folder): {"bind": "/opt/pytest", "mode": "ro"},
    }
    options = ["-q", "-p", "no:cacheprovider", "--noconftest", "-c", "/src/pyproject.toml", "--rootdir", "/src"]
    ended = run(
        *("python", "-m", "pytest", *options, *(f"/src/tests/examples/{name}" for name in tests)),
        environment={"PYTHONPATH": "/opt/pytest:/src/images/workbench:/src"},
        volumes=mounts,
        shm_size="1g",
        timeout=900,
    )
    assert ended.code == 0, ended.stdout[-5000:] + ended.stderr[-500:]
    assert " passed" in ended.stdout
    assert "skipped" not in ended.stdout


def test_batches_and_faults_pass_their_tests_in_the_image(run: Run, pytest_folder: Path) -> None:  # noqa: F811
    """What each costs little time."""
    inside(run, ["test_batches.py"], pytest_folder)


@pytest.mark.full
@pytest.mark.parametrize("file", ["test_course.py", "test_parallel.py"])
def test_courses_and_processes_pass_their_tests_in_the_image(run: Run, pytest_folder: Path, file: str) -> None:  # noqa: F811
    """Resume, faults, several processes, killed workers."""
    inside(run, [file], pytest_folder)
