"""What of a project's folder goes into its image, and what is refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuyard.errors import UserError
from gpuyard.layers import project as layer
from gpuyard.layers.model import Target
from gpuyard.project import files
from gpuyard.project.definition import Project
from tests.project.conftest import Make

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nx"


def names(project: Project) -> set[str]:
    """The packed files, by their path in the project."""
    return {entry.path.removeprefix("workspace/") for entry in files.collect(project)}


def write(project: Project, name: str, text: str = "x") -> Path:
    """A file of the project."""
    path = project.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_whole_folder_goes_in_but_junk_and_what_is_ignored(make: Make) -> None:
    """`.dockerignore` adds to the usual junk, and ``!`` brings something back."""
    project = make("")
    for name in (
        "src/model.py",
        "src/__pycache__/model.pyc",
        ".git/config",
        ".venv/x",
        "data/big.bin",
        "data/small.csv",
    ):
        write(project, name)
    write(project, ".dockerignore", "# data stays\ndata\n!data/small.csv\n")
    assert names(project) == {"gpuyard.toml", "requirements.txt", "src/model.py", "data/small.csv"}


def test_links_inside_are_kept_and_others_refused(make: Make) -> None:
    """Also an absolute one, and one that leaves by ``..``."""
    project = make("")
    write(project, "a/b.py")
    (project.folder / "a" / "link.py").symlink_to("b.py")
    assert next(entry.link for entry in files.collect(project) if entry.path.endswith("link.py")) == "b.py"
    for target in ("/etc/passwd", "../../outside", str(project.folder / "a" / "b.py")):
        (project.folder / "bad").symlink_to(target)
        refused(project, "project-link-outside", target)
        (project.folder / "bad").unlink()


@pytest.mark.parametrize(
    ("name", "text"),
    [(".env", "A=1"), ("conf/id_ed25519", "x"), ("server.key", "x"), ("notes.txt", KEY), (".env.prod", "A")],
)
def test_a_secret_is_refused_until_it_is_ignored_or_allowed(make: Make, name: str, text: str) -> None:
    """By its name, or by a private key at its beginning."""
    project = make("")
    write(project, name, text)
    refused(project, "project-secret", name)
    allowed = make("", gpuyard_toml=f'allow = ["{name}"]')
    assert name in names(allowed)
    project = make("")
    write(project, ".dockerignore", f"{name}\n")
    assert name not in names(project)


def test_names_that_only_look_like_secrets_go_in(make: Make) -> None:
    """A public key, an example of a .env, a module called credentials."""
    project = make("")
    for name in (".env.example", "id_ed25519.pub", "credentials.py", "keys.json"):
        write(project, name)
    assert {".env.example", "id_ed25519.pub", "credentials.py", "keys.json"} <= names(project)


def test_files_that_are_too_large_or_not_files_are_named(make: Make) -> None:
    """The largest, with the bound; a pipe."""
    project = make("", gpuyard_toml="max_megabytes = 1")
    write(project, "weights.bin", "x" * 1_200_000)
    refused(project, "project-too-large", "weights.bin")
    (project.folder / "weights.bin").unlink()
    os.mkfifo(project.folder / "pipe")
    refused(project, "project-not-a-file", "pipe")


def refused(project: Project, id_: str, named: str) -> None:
    """Asserts one line with that id and name."""
    with pytest.raises(UserError) as error:
        files.collect(project)
    assert error.value.id == id_
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_the_layer_follows_from_paths_bytes_and_modes_alone(make: Make, tmp_path: Path) -> None:
    """Other times, another order of creation, and another umask give the same bytes; a changed byte does not."""
    project, target = make(""), Target("3.13", 1_700_000_000, prefix="workspace")
    write(project, "b/two.py")
    write(project, "a.py")
    first = layer.project_layer(files.collect(project), "workspace", target, tmp_path / "first")
    for path in sorted(project.folder.rglob("*"), reverse=True):
        os.utime(path, (1, 1))
    (project.folder / "a.py").chmod(0o600)
    again = layer.project_layer(files.collect(project), "workspace", target, tmp_path / "again")
    assert again.digest == first.digest
    write(project, "a.py", "y")
    assert layer.project_layer(files.collect(project), "workspace", target, tmp_path / "other").digest != first.digest
