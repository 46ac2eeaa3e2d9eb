"""`gpuyard new`: a project that is whole, that validators accept, and that is never half there."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from gpuyard import paths
from gpuyard.catalogue import claims
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.cli import main
from gpuyard.render.project import FILES, files
from tests.render.devcontainer.schema import SCHEMA

BIN = Path(sys.executable).parent


def call(*words: str | Path) -> int:
    """The exit code of `gpuyard new`."""
    with pytest.raises(SystemExit) as ended:
        main(["new", *map(str, words)])
    return int(str(ended.value.code or 0))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh project."""
    assert call(tmp_path / "news") == 0
    return tmp_path / "news"


def test_it_stands_on_the_default_image(project: Path, table: Catalogue) -> None:
    """The Dockerfile's base is the catalogue's tag, until CI names another."""
    assert (
        f"ARG BASE={table.tag(table.default_line, 'workbench')}\nFROM ${{BASE}}" in (project / "Dockerfile").read_text()
    )


def test_every_file_is_there_and_nothing_else(project: Path) -> None:
    """No template's mark is left in any of them, and no rest of the writing beside them."""
    found = {str(file.relative_to(project)) for file in project.rglob("*") if file.is_file()}
    assert found == {*FILES, ".devcontainer/devcontainer.json"}
    assert not [name for name in found if "{%" in (project / name).read_text()]
    assert [entry.name for entry in project.parent.iterdir()] == ["news"]


@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.compose-spec", "compose.yaml"), ("vendor.github-workflows", ".github/workflows/check.yml")],
)
def test_published_schemas_accept_it(project: Path, schema: str, file: str) -> None:
    """compose.yaml by the Compose specification, the workflow by GitHub's; a broken one is refused."""
    words = [str(BIN / "check-jsonschema"), "--builtin-schema", schema, str(project / file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    text = (project / file).read_text().replace("services:", "servces:").replace("jobs:", "job:")
    (project / file).write_text(text)
    assert subprocess.run(words, capture_output=True, check=False).returncode == 1


def test_its_dev_container_is_built_from_its_dockerfile(project: Path) -> None:
    """The file is valid, and the Dockerfile that it names exists."""
    found = json.loads((project / ".devcontainer" / "devcontainer.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert (project / ".devcontainer" / found["build"]["dockerfile"]).resolve() == project / "Dockerfile"


def test_linters_have_nothing_to_say(project: Path) -> None:
    """hadolint on the Dockerfile, ruff on the training, zizmor on the workflow."""
    for words in (
        ["hadolint", "Dockerfile"],
        ["ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,W,I,B", "train.py"],
        ["ruff", "format", "--isolated", "--line-length", "120", "--check", "train.py"],
        ["zizmor", "--offline", "--quiet", "--no-progress", ".github"],
    ):
        done = subprocess.run([BIN / words[0], *words[1:]], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


def test_its_ci_asks_verify_and_uses_our_actions(project: Path) -> None:
    """The workflow calls `verify --require`, with no rights, and the checkout that our own workflow names."""
    text = (project / ".github" / "workflows" / "check.yml").read_text()
    steps = yaml.safe_load(text)["jobs"]["image"]["steps"]
    assert any("verify" in step.get("run", "") and "--require" in step["run"] for step in steps)
    assert steps[0]["uses"] in (paths.ROOT / ".github" / "workflows" / "check.yml").read_text()
    assert yaml.safe_load(text)["permissions"] == {}


def test_the_image_gets_the_whole_project_but_for_junk(project: Path) -> None:
    """By the patterns of .dockerignore: sources in folders, and neither secrets, caches nor the repository."""
    patterns = [line for line in (project / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]

    def left_out(path: str) -> bool:
        parts = path.split("/")
        starts = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        plain = [pattern.removeprefix("**/") for pattern in patterns if pattern.startswith("**/")]
        return any(fnmatch.fnmatchcase(start, pattern) for start in starts for pattern in patterns) or any(
            fnmatch.fnmatchcase(part, pattern) for part in parts for pattern in plain
        )

    for kept in ("train.py", "src/model.py", "configs/a.yaml", "src/deep/er/x.py", "requirements.txt"):
        assert not left_out(kept), kept
    junk = (
        ".git/config",
        ".env",
        "src/__pycache__/model.cpython-313.pyc",
        "models/x.bin",
        "a/b.pt",
        ".venv/bin/python",
    )
    for path in junk:
        assert left_out(path), path


def test_index_and_certificates_reach_the_build_as_secrets(project: Path) -> None:
    """Compose hands on the files that variables of this machine name, or empty ones; the Dockerfile mounts each."""
    compose = yaml.safe_load((project / "compose.yaml").read_text())
    secrets = compose["services"]["cpu"]["build"]["secrets"]
    assert {name: compose["secrets"][name]["file"] for name in secrets} == {
        "pip": "${PIP_CONFIG_FILE:-/dev/null}",
        "ca": "${SSL_CERT_FILE:-/dev/null}",
    }
    text = (project / "Dockerfile").read_text()
    assert all(f"--mount=type=secret,id={name}," in text for name in secrets)


def test_an_image_has_its_own_labels(project: Path, table: Catalogue) -> None:
    """Every OCI label that ours sets is set again: none of ours is claimed for an image that is another."""
    text = (project / "Dockerfile").read_text()
    set_ = set(re.findall(r"(org\.opencontainers\.image\.[\w.]+)=", text))
    ours = claims.labels(find_product(table, None), "commit", "registry")
    assert {name for name in ours if name.startswith("org.opencontainers.image.")} <= set_
    workflow = yaml.safe_load((project / ".github" / "workflows" / "check.yml").read_text())["jobs"]["image"]
    assert workflow["env"]["REVISION"] == "${{ github.sha }}"
    assert "--build-arg REVISION" in next(
        step["run"] for step in workflow["steps"] if "docker build" in step.get("run", "")
    )


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    """Also one that exists already."""
    (tmp_path / "mine").mkdir()
    assert call(tmp_path / "mine") == 0
    assert (tmp_path / "mine" / "Dockerfile").exists()


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It lists the files."""
    assert call(tmp_path / "mine", "--dry-run") == 0
    assert "Dockerfile" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file in it is enough."""
    (tmp_path / "notes.txt").write_text("mine")
    assert call(tmp_path, "--name", "x") == 1
    assert "error[project-folder-unusable]" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("words", "code", "id_", "value"),
    [
        (["My_Project"], 2, "project-name-invalid", "'My_Project'"),
        (["a", "--image", "x y"], 2, "render-value-invalid", "--image 'x y'"),
        (["a", "--image", "pytorch-cuda:v9"], 2, "image-tag-unknown", "pytorch-cuda:v9"),
        (["missing/a"], 1, "project-folder-unusable", "mkdir -p"),
        (["file"], 1, "project-folder-unusable", "file is a file"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, id_: str, value: str
) -> None:
    """Its id and the value are named, and nothing is written."""
    (tmp_path / "file").write_text("")
    assert call(tmp_path / words[0], *words[1:]) == code
    shown = capsys.readouterr().err
    assert f"error[{id_}]" in shown
    assert value in shown
    assert shown.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fills_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a part of the project nor the folder it was written in first."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_text", full)
    assert call(tmp_path / "mine") == 1
    shown = capsys.readouterr().err
    assert "error[project-folder-unusable]" in shown
    assert "No space left on device" in shown
    assert list(tmp_path.iterdir()) == []


def test_a_reference_of_a_registry_reaches_every_file_that_names_the_image() -> None:
    """Dockerfile and README name what --image says."""
    found = files("mine", "registry.test/lab/image:9.9.9")
    assert [path for path, text in found.items() if "registry.test/lab/image:9.9.9" in text] == [
        "Dockerfile",
        "README.md",
    ]
