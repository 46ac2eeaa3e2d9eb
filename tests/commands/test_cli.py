"""The command line: every command is there, and only the one that is asked for is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from gpuyard import paths
from gpuyard.cli import main
from gpuyard.commands.tree import COMMANDS, application


def test_every_module_of_commands_is_a_command() -> None:
    """None is forgotten, and none is listed that does not exist."""
    modules = {file.stem.rstrip("_") for file in (paths.ROOT / "gpuyard" / "commands").glob("*/[a-z]*.py")}
    assert modules == set(COMMANDS)
    assert set(typer.main.get_command(application()).commands) == set(COMMANDS)  # type: ignore[attr-defined]


def test_a_command_imports_no_other() -> None:
    """`gpuyard pick` reads a table: the engine's client and the registry's parts stay where they are."""
    code = "from gpuyard.cli import main; main(['pick', '--help'])"
    lists = f"import sys\ntry:\n {code}\nexcept SystemExit:\n print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", lists], check=True, capture_output=True, text=True, cwd=paths.ROOT)
    assert "gpuyard.commands.using.pick" in done.stderr.split()
    assert not {"docker", "unearth", "gpuyard.publish", "gpuyard.commands.building.build"} & set(done.stderr.split())


def test_an_unknown_command_is_one_line_and_the_help_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with the near name."""
    with pytest.raises(SystemExit) as ended:
        main(["biuld"])
    assert ended.value.code == 2
    assert "build" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(f" {name} " in said for name in COMMANDS)
