"""`gpuyard render k8s`: each mistake is one line, and the file says what it needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from gpuyard.cli import main

MISTAKES = [
    ([], "render-command-missing", "--"),
    (["--kind", "jobb", "--", "x"], "render-choice-unknown", "'job'"),
    (["--nodes", "2", "--", "x"], "render-job-is-one-pod", "--nodes 2"),
    (["--kind", "jobset", "--nodes", "0", "--", "x"], "render-value-invalid", "--nodes 0"),
    (["--data", "My Claim", "--", "x"], "render-value-invalid", "--data 'My Claim'"),
    (["--namespace", "a/b", "--", "x"], "render-value-invalid", "--namespace 'a/b'"),
    (["--pull-secret", "A", "--", "x"], "render-value-invalid", "--pull-secret 'A'"),
    (["--queue", "A b", "--", "x"], "render-value-invalid", "--queue 'A b'"),
    (["--env", "WANDB", "--", "x"], "render-value-invalid", "--env 'WANDB'"),
    (["--secret", "HF_TOKEN=tokens", "--", "x"], "render-value-invalid", "--secret 'HF_TOKEN=tokens'"),
    (["--node-selector", "gpu", "--", "x"], "render-value-invalid", "--node-selector 'gpu'"),
    (["--shm", "0", "--", "x"], "render-value-invalid", "--shm 0"),
    (["--image", "", "--", "x"], "render-value-invalid", "--image ''"),
    (["--image", "pytorch-cuda:v9", "--", "x"], "image-tag-unknown", "pytorch-cuda:v9"),
]


@pytest.mark.parametrize(("words", "id_", "value"), MISTAKES)
def test_a_mistake_is_one_line(refused: Callable[..., str], words: list[str], id_: str, value: str) -> None:
    """Its id and the value are named, and nothing is written."""
    shown = refused("k8s", *words)
    assert f"error[{id_}]" in shown
    assert value in shown


def rendered(
    capsys: pytest.CaptureFixture[str], *words: str, caplog: pytest.LogCaptureFixture | None = None
) -> tuple[str, str]:
    """The file and the warnings for these options."""
    with pytest.raises(SystemExit) as ended:
        main(["render", "k8s", *words])
    assert not ended.value.code
    return capsys.readouterr().out, caplog.text if caplog else ""


def test_what_a_pod_gets_grows_with_its_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    """Eight GPUs bring eight times the processors, memory and shared memory of one."""
    (job,) = yaml.safe_load_all(rendered(capsys, "--gpus", "8", "--", "x")[0])
    pod = job["spec"]["template"]["spec"]
    limits = pod["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"}
    assert pod["volumes"][0]["emptyDir"]["sizeLimit"] == "64Gi"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--", "python", "train.py"], True),
        (["--", "torchrun", "--nproc-per-node", "2", "/workspace/src/train.py"], True),
        (["--workspace", "code", "--", "python", "train.py"], False),
        (["--image", "registry.test/lab/mine:1", "--", "python", "train.py"], False),
        (["--image", "registry.test/lab/mine:1", "--", "python", "/mnt/data/train.py"], True),
        (["--", "python", "/opt/gpuyard/examples/x.py"], False),
        (["--", "python", "-c", "print(1)"], False),
    ],
)
def test_a_script_that_cannot_be_there_is_named(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, words: list[str], named: bool
) -> None:
    """In a warning, and in the file for whoever gets it."""
    text, warned = rendered(capsys, *words, caplog=caplog)
    assert ("warning[render-script-missing]" in warned) is named
    assert ("is in no volume" in text) is named


@pytest.mark.parametrize(
    ("kind", "said"),
    [("trainjob", "# The cluster needs Kubeflow Trainer"), ("jobset", "# The cluster needs the JobSet")],
)
def test_the_file_says_what_it_needs(capsys: pytest.CaptureFixture[str], kind: str, said: str) -> None:
    """A controller that is missing would be an unknown kind to kubectl, and a local image a pull that fails."""
    with pytest.raises(SystemExit):
        main(["render", "k8s", "--kind", kind, "--", "torchrun", "train.py"])
    shown = capsys.readouterr().out
    assert said in shown
    assert "is a local name: push the image" in shown
