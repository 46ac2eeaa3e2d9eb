"""`gpuyard render k8s`: each mistake is one line, and the file says what it needs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuyard.cli import main

MISTAKES = [
    ([], "no command: write it after --"),
    (["--kind", "jobb", "--", "x"], "unknown kind 'jobb'. Did you mean 'job'?"),
    (["--nodes", "2", "--", "x"], "--nodes 2 with --kind job: a Job is one pod"),
    (["--kind", "jobset", "--nodes", "0", "--", "x"], "--nodes 0: expected 1 or more"),
    (["--data", "My Claim", "--", "x"], "--data 'My Claim': expected a name of your cluster"),
    (["--namespace", "a/b", "--", "x"], "--namespace 'a/b': expected a name of your cluster"),
    (["--shm", "0", "--", "x"], "--shm 0: expected 1 or more"),
    (["--image", "", "--", "x"], "--image '': expected workbench, runtime"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line(refused: Callable[..., str], words: list[str], said: str) -> None:
    """It says what was wrong and what was expected, and nothing is written."""
    assert said in refused("k8s", *words)


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
