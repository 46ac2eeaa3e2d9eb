"""What a project's folder says is read whole, and each thing that can't be used is refused by id."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.project import definition
from tests.project.conftest import Make


def test_requirements_and_the_files_they_include_are_read(make: Make) -> None:
    """Comments and empty lines are left out; ``-r`` is followed."""
    project = make("# ours\nleaf>=1  # why\n\n-r more.txt\n", more_txt="branch==2.0\n")
    assert project.requirements == ("branch==2.0", "leaf>=1")
    assert (project.name, project.product.line, project.product.image) == ("news", "2.9", "workbench")


def test_a_pyproject_gives_dependencies_and_the_extras_that_are_named(make: Make) -> None:
    """requirements.txt does not count beside [project]."""
    text = '[project]\nname = "x"\ndependencies = ["leaf"]\n[project.optional-dependencies]\ntrain = ["branch"]\n'
    project = make("ignored", pyproject_toml=text, gpuyard_toml='extras = ["Train"]\nline = "2.7"\nimage = "runtime"')
    assert project.requirements == ("branch", "leaf")
    assert (project.product.line, project.product.image) == ("2.7", "runtime")


def test_a_project_is_known_by_its_table(tmp_path: Path) -> None:
    """A `pyproject.toml` without the table is somebody else's; a broken one with it is read, and says why."""
    assert not definition.is_project(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    assert not definition.is_project(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.gpuyard]\nline = "2.9"\n')
    assert definition.is_project(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.gpuyard]\nline = \n")
    assert definition.is_project(tmp_path)


BAD = {
    "an unknown field": ("project-field", "imgae", {"gpuyard_toml": 'imgae = "runtime"'}),
    "a name that no image can have": ("project-field", "Train It", {"gpuyard_toml": 'name = "Train It"'}),
    "a variable that no shell can have": ("project-field", "2X", {"gpuyard_toml": '[environment]\n2X = "1"'}),
    "not TOML": ("project-unreadable", "gpuyard.toml", {"gpuyard_toml": "line = "}),
    "an option of pip": ("project-requirement", "requirements.txt:2", {"requirements": "leaf\n--pre\n"}),
    "an address": ("project-requirement", "leaf", {"requirements": "leaf @ https://example.org/leaf.whl"}),
    "a path": ("project-requirement", "./here", {"requirements": "./here"}),
    "an included file that is not there": ("project-unreadable", "more.txt", {"requirements": "-r more.txt"}),
    "an extra without a pyproject": ("project-extra", "extras", {"gpuyard_toml": 'extras = ["train"]'}),
    "an unknown extra": (
        "project-extra",
        "'train'",
        {"gpuyard_toml": 'extras = ["train"]', "pyproject_toml": '[project]\nname = "x"\n'},
    ),
    "dynamic dependencies": (
        "project-dynamic",
        "pyproject.toml",
        {"pyproject_toml": '[project]\nname = "x"\ndynamic = ["dependencies"]\n'},
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_refused(make: Make, case: str) -> None:
    """One line, which names the place or the value."""
    id_, named, files = BAD[case]
    with pytest.raises(UserError) as error:
        make(**files)
    assert error.value.id == id_
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_whose_name_no_image_can_have_needs_another(tmp_path: Path, table: Catalogue) -> None:
    """Said with what to set."""
    folder = tmp_path / "My Project"
    folder.mkdir()
    (folder / "gpuyard.toml").write_text("")
    with pytest.raises(UserError) as error:
        definition.load(folder, table)
    assert error.value.id == "project-name"


def test_every_field_is_documented() -> None:
    """docs/own-project.md has a row for each, and no other."""
    page = (paths.ROOT / "docs" / "own-project.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(definition.Settings.model_fields)
