"""Every ``run:`` step of the workflows, run: not as root, on Ubuntu, as far as it goes without a forge."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from tests.publish import conftest as publishing
from tests.publish import small
from tests.workflows import runner
from tests.workflows.expressions import Contexts, value
from tests.workflows.runner import Runner
from tests.workflows.test_workflows import load, steps

GPUYARD = ".venv/bin/gpuyard"
LIST = f'{GPUYARD} list --json --github >> "$GITHUB_OUTPUT"'
PUBLISH = f'{GPUYARD} publish --layout layout --report-dir reports --registry "$REGISTRY" --keyless'
INSPECT = f'{GPUYARD} inspect "$REGISTRY:$VERSION" --identity "$IDENTITY"'
ON_RUNNER = {
    # Step: exit codes that are right there, and what is given to keep it short.
    "make .venv/.host": ((0,), {}),
    "make runner-room": ((0,), {}),
    "make lint": ((0,), {}),
    "make test": ((0,), {"PYTEST_ARGS": "--collect-only -q"}),
    "make test-all": ((0,), {"PYTEST_ARGS": "--collect-only -q"}),
    LIST: ((0,), {}),
    # What the indexes and registries offer today decides between 0 and 1.
    f"{GPUYARD} lock --outdated": ((0, 1), {}),
    f"{GPUYARD} bases --check": ((0, 1), {}),
    f"{GPUYARD} update --check": ((0, 1), {}),
}
BUILD = f'{GPUYARD} build "$LINE" --image "$IMAGE" --layout layout'
LOAD = f"{GPUYARD} load layout"
VERIFY = f'{GPUYARD} verify "$LINE" --image "$IMAGE" --no-build'
ON_GPU = f"{VERIFY} --gpus all --require gpu"
WITH_IMAGE = {BUILD: (0,), LOAD: (0,), VERIFY: (0,), ON_GPU: (0, 1, 3)}
"""In this order. Without a GPU the last one refuses: a GPU was required."""
REPRODUCE = f'{GPUYARD} reproduce "$LINE"'
SMALL = (LIST, PUBLISH, INSPECT)


def test_every_step_is_run_by_a_test() -> None:
    """A new step without one fails here."""
    assert {step["run"] for _, step in steps() if "run" in step} == {*ON_RUNNER, *WITH_IMAGE, REPRODUCE, *SMALL}


def bash(step: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A step in a folder that has the environment of this checkout."""
    if not (folder / ".venv").exists():
        (folder / ".venv").symlink_to(paths.ROOT / ".venv")
    words = ["bash", "-ec", step]
    given = {**os.environ, "PYTHONPATH": str(paths.ROOT), **env}
    return subprocess.run(words, cwd=folder, env=given, capture_output=True, text=True, timeout=900, check=False)


@pytest.fixture
def cosign(tmp_path: Path) -> str:
    """A PATH with a cosign that signs and verifies anything: keyless needs a forge."""
    program = tmp_path / "bin" / "cosign"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{tmp_path}/asked\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


host, storage = publishing.host, publishing.storage


def test_what_was_built_elsewhere_is_published_and_looked_at(host: str, tmp_path: Path, cosign: str) -> None:
    """The last job's steps, with the layout and the report as they come from the jobs before."""
    digest = small.layout(tmp_path)
    small.write(tmp_path / "reports", small.report(digest))
    outputs = tmp_path / "outputs"
    given = {"REGISTRY": f"{host}/Lab/Images", "GITHUB_OUTPUT": str(outputs), "PATH": cosign}
    listed = bash(LIST, tmp_path, **given)
    assert listed.returncode == 0, listed.stderr
    found = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    assert found["registry"] == f"{host}/lab/images"
    needs = {"matrix": {"outputs": found}, "gpu": {"result": "success"}}
    product = {**json.loads(found["products"])[0], "version": "v9.9"}
    contexts = Contexts({"needs": needs, "matrix": {"product": product}, "github": {"repository": "Lab/Images"}})
    env = {name: str(value(text, contexts)) for name, text in load("publish")["jobs"]["publish"]["env"].items()}
    env |= {"PATH": cosign, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    published = bash(PUBLISH, tmp_path, **env)
    assert published.returncode == 0, published.stderr
    shown = bash(INSPECT, tmp_path, **env)
    assert shown.returncode == 0, shown.stderr
    assert digest in shown.stdout
    assert "sign --yes" in (tmp_path / "asked").read_text()
    assert f"--certificate-identity-regexp {env['IDENTITY']}" in (tmp_path / "asked").read_text()


def test_a_hosted_runner_gets_room(tmp_path: Path) -> None:
    """Known folders of SDKs are removed there, and nothing anywhere else."""
    (tmp_path / "sudo").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{tmp_path}/asked\n')
    (tmp_path / "sudo").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    script = ["bash", str(paths.DOCKER / "runner-room.sh")]
    for environment, asked in (("", False), ("self-hosted", False), ("github-hosted", True)):
        env = {**os.environ, "PATH": path, "RUNNER_ENVIRONMENT": environment}
        subprocess.run(script, env=env, check=True, capture_output=True)
        assert (tmp_path / "asked").exists() is asked
    (words,) = (tmp_path / "asked").read_text().splitlines()
    assert words.startswith("-n rm -rf /usr/share/dotnet /usr/local/lib/android")


@pytest.fixture(scope="module")
def ubuntu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """One runner for all steps, as one job's steps share one."""
    assert os.getuid() == 0, "a runner's file system is made as root"
    root = tmp_path_factory.mktemp("runner") / "root"
    made = runner.make(root)
    yield made
    subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


@pytest.mark.full
@pytest.mark.engine
@pytest.mark.parametrize("step", ON_RUNNER)
@pytest.mark.usefixtures("docker_client")
def test_a_step_does_on_a_hosted_runner_what_it_should(ubuntu: Runner, step: str) -> None:
    """As a user with sudo, without oras and cosign, from a clone; one line and no traceback where it refuses."""
    codes, env = ON_RUNNER[step]
    done = ubuntu.step(step, {**env, "GITHUB_OUTPUT": f"{runner.HOME}/outputs"})
    assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Traceback" not in done.stderr


@pytest.mark.full
@pytest.mark.image
@pytest.mark.usefixtures("image")
def test_the_steps_that_need_an_image_follow_each_other(table: Catalogue, tmp_path: Path) -> None:
    """Built to a layout, loaded from it, verified: the report is about the layout's digest."""
    env = {"LINE": table.default_line, "IMAGE": "workbench"}
    for step, codes in WITH_IMAGE.items():
        done = bash(step, tmp_path, **env)
        assert done.returncode in codes, (step, done.stderr)
    index = json.loads((tmp_path / "layout" / "index.json").read_text())
    digests = {json.loads(file.read_text())["digest"] for file in (tmp_path / "reports").glob("*.json")}
    assert digests == {index["manifests"][0]["digest"]}


@pytest.mark.full
def test_the_recorded_line_is_reproduced(table: Catalogue, tmp_path: Path) -> None:
    """Nightly's step, on the line whose digests are recorded."""
    done = bash(REPRODUCE, tmp_path, LINE=table.default_line)
    assert done.returncode == 0, done.stderr
