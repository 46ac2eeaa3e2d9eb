"""Every refusal and warning has a literal id, every id is explained once, and no explanation is left over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuyard import messages, paths
from gpuyard.cli import main

RAISED = {"UserError", "UsageError", "Refusal", "warn", "Absent", "Passing", "Notice"}
START_LOG = {"warning", "error"}
"""Methods of the start's log; other loggers take no id."""
PLACES = ("gpuyard", "entrypoints/gpuyard_start", "entrypoints/services")
IN_CLI = {"disk-full"}
"""Printed by the command line's last resort, without a call."""


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call that makes a refusal or a warning, with its place."""
    for file in (path for place in PLACES for path in sorted((paths.ROOT / place).rglob("*.py"))):
        for node in ast.walk(ast.parse(file.read_text())):
            in_start = "entrypoints" in file.parts
            if isinstance(node, ast.Call) and _name(node.func) in RAISED | (START_LOG if in_start else set()):
                yield f"{file.relative_to(paths.ROOT)}:{node.lineno}", node


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def ids() -> dict[str, str]:
    """The literal ids that are raised, with a place of each."""
    return {
        call.args[0].value: place
        for place, call in calls()
        if len(call.args) > 1 and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    }


def test_every_id_that_is_raised_is_explained() -> None:
    """With what it means and at least one thing to do."""
    known = messages.load()
    assert {id_: place for id_, place in ids().items() if id_ not in known} == {}
    assert [id_ for id_, message in known.items() if not (message.means and message.repair)] == []


def test_everything_that_the_start_refuses_or_warns_of_has_a_literal_id() -> None:
    """Or passes on a notice that was made with one."""
    bare = [
        place
        for place, call in calls()
        if place.startswith("entrypoints/")
        and not isinstance(call.args[0], ast.Starred)
        and not (isinstance(call.args[0], ast.Constant) and len(call.args) > 1)
    ]
    assert bare == [f"entrypoints/gpuyard_start/main.py:{line}" for line in _refusals_printed()]


def _refusals_printed() -> list[int]:
    """Where the start prints a refusal with the id that it was raised with."""
    text = (paths.ROOT / "entrypoints/gpuyard_start/main.py").read_text().splitlines()
    return [number for number, line in enumerate(text, 1) if "log.error(refusal.id, " in line]


def test_every_refusal_and_warning_of_the_command_line_has_a_literal_id() -> None:
    """None is made up at run time, so that all can be listed."""
    bare = [
        place
        for place, call in calls()
        if place.startswith("gpuyard/") and call.args and not isinstance(call.args[0], ast.Constant | ast.Starred)
    ]
    assert bare == []


def test_no_explanation_is_left_over() -> None:
    """An id that nothing raises any more leaves the table."""
    assert set(messages.load()) - set(ids()) - IN_CLI == set()


def test_an_id_that_stands_twice_is_found(tmp_path: Path) -> None:
    """In two rooms' files."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text('[same]\nmeans = "m"\nrepair = ["r"]\n')
    with pytest.raises(ValueError, match="same"):
        messages.load(tmp_path)


def test_an_id_is_explained_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """All of them listed, one in full, an unknown one refused with its own id."""
    main_ended(["explain"])
    assert set(messages.load()) <= set(capsys.readouterr().out.split())
    main_ended(["explain", "disk-full"])
    assert messages.load()["disk-full"].means in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["explain", "disk-ful"])
    assert ended.value.code == 2
    assert "error[explain-unknown-id]" in capsys.readouterr().err


def main_ended(words: list[str]) -> None:
    """Runs a command that succeeds."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code
