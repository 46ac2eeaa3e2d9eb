"""How many GPUs a run is planned for: what was given and what was asked for, not what the machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.engine import gpus
from verify.probes.allocation import asked_for, mig_given, open_nodes

SIGNS = {"nodes": [f"/dev/nvidia{number}" for number in range(4)], "libraries": ["libcuda.so.1"], "elsewhere": {}}


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with four GPUs that all open, and no variable that chooses among them."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpus, "gpu_signs", lambda: SIGNS)
    monkeypatch.setattr(gpus, "open_nodes", lambda nodes: dict.fromkeys(nodes, "ok"))
    return monkeypatch


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, 4),
        ({"CUDA_VISIBLE_DEVICES": "0"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "1,2"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "GPU-aaa, GPU-bbb, GPU-ccc"}, 3),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5"}, 4),
        ({"CUDA_VISIBLE_DEVICES": "MIG-aaa,MIG-bbb"}, 1),
        ({"NVIDIA_VISIBLE_DEVICES": "MIG-aaa"}, 1),
        ({"NVIDIA_VISIBLE_DEVICES": "0:0,1:0"}, 1),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, 4),
    ],
)
def test_the_variables_are_respected(four: pytest.MonkeyPatch, variables: dict[str, str], count: int) -> None:
    """An empty list hides every GPU: that is a fault to be named, not a machine without one."""
    for name, value in variables.items():
        four.setenv(name, value)
    assert gpus.count_gpus() == count


def test_gpus_of_other_jobs_do_not_count(four: pytest.MonkeyPatch) -> None:
    """Two of four open; where all are refused there is something to find out about all of them."""
    four.setattr(gpus, "open_nodes", lambda nodes: dict(zip(nodes, ["EPERM", "ok", "EPERM", "ok"], strict=True)))
    assert gpus.count_gpus() == 2
    four.setattr(gpus, "open_nodes", lambda nodes: dict.fromkeys(nodes, "EPERM"))
    assert gpus.count_gpus() == 4


def test_without_any_sign_there_is_none(four: pytest.MonkeyPatch) -> None:
    """A library alone is a sign of one GPU."""
    four.setattr(gpus, "gpu_signs", lambda: {"nodes": [], "libraries": [], "elsewhere": {}})
    assert gpus.count_gpus() == 0
    four.setattr(gpus, "gpu_signs", lambda: {"nodes": [], "libraries": ["libcuda.so.1"], "elsewhere": {}})
    assert gpus.count_gpus() == 1


def test_a_node_that_crashes_or_hangs_ends_the_look_only(four: pytest.MonkeyPatch) -> None:
    """The nodes are opened in a child; without its answer all of them count."""

    def die(_nodes: list[str]) -> dict[str, str]:
        raise OSError("no")

    four.setattr(gpus, "open_nodes", die)
    assert gpus.count_gpus() == 4


def test_mig_instances_are_seen_by_their_capability_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes are MIG's administration on every machine that can do it."""
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    folder = tmp_path / "dev/nvidia-caps"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"nvidia-cap{number}").touch()
    assert not mig_given(tmp_path)
    (folder / "nvidia-cap21").touch()
    assert mig_given(tmp_path)


def test_names_are_counted_and_nodes_are_opened(tmp_path: Path) -> None:
    """None is not the empty list; a missing node has no answer."""
    assert (asked_for(None), asked_for(""), asked_for("0, 1")) == (None, 0, 2)
    (tmp_path / "node").touch()
    (tmp_path / "folder").mkdir()
    places = [str(tmp_path / name) for name in ("node", "folder", "none")]
    assert open_nodes(places) == {places[0]: "ok", places[1]: "folder"}
