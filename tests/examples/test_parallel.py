"""Several processes train one model: they take one process's course, start again together, and say what is wrong."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")

from examples import parallel  # noqa: E402
from examples.errors import ExampleError  # noqa: E402

from tests.examples.scripts import TORCHRUN, children, ended, losses, started, until  # noqa: E402

COURSE = ("-m", "examples.classify", "--dropout", "0", "--epochs", "8", "--models")
TWO = (*TORCHRUN, "--nproc-per-node", "2", "--max-restarts", "3")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training by two processes that nothing disturbed."""
    folder = tmp_path_factory.mktemp("two")
    code, said = ended(*TWO, *COURSE, folder)
    assert code == 0, said
    assert said.count("epoch 8/8") == 1
    return folder / "classify-rnn"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


def by_hand(rank: int, size: int, port: int) -> dict[str, str]:
    """What a launcher other than torchrun would set."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    return {**place, "RANK": str(rank), "WORLD_SIZE": str(size)}


def test_two_processes_take_the_course_of_one(two: Path, tmp_path: Path) -> None:
    """Each loss is the single process's within float32's rounding."""
    code, said = ended(COURSE[1], *COURSE[2:], tmp_path)
    assert code == 0, said
    assert losses(two) == pytest.approx(losses(tmp_path / "classify-rnn"), abs=1e-5)


def test_a_killed_worker_is_started_again_from_the_checkpoint(two: Path, tmp_path: Path) -> None:
    """Both go on after the last saved step, to the same trace."""
    with started(*TWO, *COURSE, tmp_path) as process:
        until((tmp_path / "classify-rnn" / "checkpoint.pt").exists)
        os.kill(children(process.pid)[-1], signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "continues after step" in said
    assert losses(tmp_path / "classify-rnn") == losses(two)


def test_a_stop_reaches_all_processes_at_the_same_step(two: Path, tmp_path: Path) -> None:
    """They save, and the next start goes on to the same trace."""
    with started(*TWO, *COURSE, tmp_path) as process:
        until((tmp_path / "classify-rnn" / "checkpoint.pt").exists)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert "saved after step" in said
    code, said = ended(*TWO, *COURSE, tmp_path)
    assert (code, "continues after step" in said) == (0, True), said
    assert losses(tmp_path / "classify-rnn") == losses(two)


def test_a_mismatched_number_of_processes_is_one_line(tmp_path: Path) -> None:
    """Said by the one that came second; the first one does not wait for ever."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    words = ("examples.classify", "--models", tmp_path, "--timeout", "15")
    with started(*words, variables=by_hand(0, 2, port)) as first:
        code, said = ended(*words, variables=by_hand(1, 3, port))
        waited, _ = first.communicate(timeout=60)
    assert code == 1
    assert "started as one of 3, another one as one of 2: start every node with the same" in said
    assert "Traceback" not in said + waited
    assert "process 0 of 2 did not meet the others" in waited


def test_a_taken_port_is_one_line(tmp_path: Path, taken: int) -> None:
    """With the place, and what to change."""
    code, said = ended("examples.classify", "--models", tmp_path, "--timeout", "5", variables=by_hand(0, 2, taken))
    assert code == 1
    assert f"the port of 127.0.0.1:{taken} is taken by another program" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"WORLD_SIZE": "2"}, "must both be numbers"),
        ({"WORLD_SIZE": "two", "RANK": "0"}, "must both be numbers"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK=2 .* has no place in WORLD_SIZE=2"),
        (
            {"WORLD_SIZE": "4", "RANK": "0", "LOCAL_WORLD_SIZE": "2", "GPUYARD_NODES": "3"},
            "3 node.* but 4 processes",
        ),
    ],
)
def test_places_that_make_no_sense_are_refused(variables: dict[str, str], said: str) -> None:
    """Before anybody waits."""
    with pytest.raises(ExampleError, match=said):
        parallel.world_from(variables)


def test_without_a_launcher_a_process_is_alone() -> None:
    """And speaks and saves for itself."""
    alone = parallel.world_from({})
    assert (alone.leads, alone.saves, alone.total([1.0]), alone.newest(1, "x")) == (True, True, [1.0], "x")


@pytest.mark.parametrize("words", ["[1] Connection closed by peer [172.18.0.3]:1", "Timed out waiting 1000ms for recv"])
def test_a_lost_process_is_told_from_other_errors(words: str) -> None:
    """Only what the exchange says counts as such."""
    assert "another process is gone" in parallel.lost(RuntimeError(words))
    assert not parallel.lost(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
