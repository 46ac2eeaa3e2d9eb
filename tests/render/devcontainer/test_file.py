"""`gpuyard render devcontainer`: keys and types of the published format, nothing that an editor would ignore."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from gpuyard.cli import main
from gpuyard.render.devcontainer import GPUS, Editor, build
from tests.render.devcontainer.schema import SCHEMA


def validate(found: object) -> None:
    """Against the format: an unknown key is an error."""
    jsonschema.Draft202012Validator(SCHEMA).validate(found)


@pytest.mark.parametrize("dockerfile", ["", "../Dockerfile"])
@pytest.mark.parametrize("gpu", GPUS)
def test_it_is_valid(gpu: str, dockerfile: str) -> None:
    """Every choice gives a file of the format, from an image or from a Dockerfile."""
    validate(build(Editor("registry.test/a/b:9.9.9", "mine", gpu, 4, dockerfile)))


@pytest.mark.parametrize(
    "change",
    [
        {"forwardPort": [1]},
        {"mounts": "none"},
        {"hostRequirements": {"gpu": "some"}},
        {"runArgs": "--x"},
        {"image": None},
    ],
)
def test_a_wrong_file_is_seen(change: dict[str, object]) -> None:
    """A misspelt key, wrong types, and a file without an image."""
    with pytest.raises(jsonschema.ValidationError):
        validate({key: value for key, value in {**build(Editor("a")), **change}.items() if value is not None})


def test_a_gpu_is_asked_for_as_the_user_says() -> None:
    """Optional starts on any machine, required refuses one without, none asks for nothing."""
    asked = {gpu: build(Editor("a", gpu=gpu)).get("hostRequirements") for gpu in GPUS}
    assert asked == {"optional": {"gpu": "optional"}, "required": {"gpu": True}, "none": None}


def test_the_file_lands_where_editors_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder .devcontainer is made on the way."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["render", "devcontainer", "-o", ".devcontainer/devcontainer.json"])
    assert ended.value.code == 0
    validate(json.loads((tmp_path / ".devcontainer" / "devcontainer.json").read_text()))
