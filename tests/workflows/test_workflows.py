"""The workflows: no rights by default, actions by commit, one command a step, and every command exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.tree import application

FILES = sorted((paths.ROOT / ".github" / "workflows").glob("*.yml"))
PROGRAMS = ("make", ".venv/bin/gpuyard")


def load(name: str) -> dict[str, Any]:
    """A workflow as data; YAML reads its key ``on`` as a truth value."""
    found = yaml.safe_load((paths.ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    assert isinstance(found, dict)
    return {("on" if key is True else key): value for key, value in found.items()}


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every step of every job, with the file it is in."""
    for file in FILES:
        for job in load(file.stem)["jobs"].values():
            yield from ((file.name, step) for step in job["steps"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_allowed_by_default(file: Any) -> None:
    """`permissions: {}` at the top; each job says what it needs, and how long it may take."""
    workflow = load(file.stem)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert set(job["permissions"]) <= {"contents", "packages", "id-token"}
        assert job["permissions"].get("contents", "read") == "read"
        assert job["timeout-minutes"]


def test_actions_are_named_by_commit_with_their_version_beside_it() -> None:
    """A tag of an action can be moved; a commit can't."""
    for file in FILES:
        uses = re.findall(r"uses: (\S+)(.*)$", file.read_text(), flags=re.MULTILINE)
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action, _ in uses)
        assert all(re.fullmatch(r" # v[\d.]+", version) for _, version in uses)


def test_a_step_is_one_command_that_people_call_too() -> None:
    """No logic in YAML: a line of make or gpuyard, whose command the program has."""
    known = {command.name for command in application().registered_commands}
    commands = [step["run"] for _, step in steps() if "run" in step]
    assert len(commands) > 8
    for command in commands:
        program, word = command.split()[:2]
        assert "\n" not in command.strip()
        assert program in PROGRAMS
        assert "${{" not in command
        assert program == "make" or word in known


def test_only_runs_of_pull_requests_give_way() -> None:
    """A push that publishes is never cut off by the next one."""
    assert load("check")["concurrency"]["cancel-in-progress"] == "${{ github.event_name == 'pull_request' }}"
    assert load("publish")["concurrency"]["cancel-in-progress"] is False


def test_jobs_with_large_images_make_room_first() -> None:
    """A hosted runner's disk is half full; the command is one step, before anything is built or fetched."""
    for name in ("check", "nightly", "publish"):
        for job in load(name)["jobs"].values():
            runs = [step.get("run", "") for step in job["steps"]]
            if "GPUYARD_RUNNER" in str(job["runs-on"]):
                assert runs.index("make runner-room") < min(
                    i for i, run in enumerate(runs) if "test" in run or "gpuyard" in run
                )


def test_the_matrix_is_the_catalogues(table: Catalogue) -> None:
    """`gpuyard list --json --github` names every line and every published image once."""
    said = CliRunner().invoke(application(), ["list", "--json", "--github"]).stdout
    lines = dict(line.split("=", 1) for line in said.splitlines())
    outputs = {name: json.loads(lines[name]) for name in ("lines", "products")}
    assert outputs["lines"] == list(table.line)
    tags = [product["tag"] for product in outputs["products"]]
    assert len(tags) == len(set(tags)) >= len(table.line) * 2


def test_the_words_of_each_command_are_known_to_it() -> None:
    """An option that a command lost would be found out in the pipeline only."""
    runs = {step["run"] for _, step in steps() if step.get("run", "").startswith(".venv/bin/gpuyard")}
    for run in runs:
        words = run.partition(">>")[0].split()[1:]
        asked = {word for word in words if word.startswith("--")}
        said = CliRunner().invoke(application(), [words[0], "--help"], terminal_width=200).stdout
        assert all(word in said.split() or word in said for word in asked), run
