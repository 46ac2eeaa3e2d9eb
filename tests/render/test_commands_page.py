"""docs/commands.md is what the command line says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from gpuyard.commands.tree import application
from gpuyard.render import commands_page

ROOT: Any = typer.main.get_command(application())


def test_the_page_is_up_to_date() -> None:
    """`gpuyard page` writes it."""
    assert commands_page.PAGE.read_text() == commands_page.text(ROOT), "stale: run  gpuyard page"


def test_every_command_has_a_section_and_every_option_a_row() -> None:
    """Nested commands too, by their full name."""
    page = commands_page.text(ROOT)
    found = dict(commands_page.commands(ROOT))
    assert {"build", "engine start", "render k8s"} <= set(found)
    for name, one in found.items():
        section = page.split(f"\n## gpuyard {name}\n")[1].split("\n## ")[0]
        shown = [option for parameter in one.params if not parameter.hidden for option in parameter.opts]
        assert [option for option in shown if option.startswith("-") and f"`{option}`" not in section] == ["--help"] * (
            "--help" in shown
        )


def test_required_defaults_and_hidden_options_are_told_apart() -> None:
    """And a bar in a help text does not start another cell."""
    app = typer.Typer()

    @app.command()
    def one(
        folder: Annotated[str, typer.Argument(help="Where|to.")],
        size: Annotated[str, typer.Option(help="How large.")] = "8g",
        secret: Annotated[str, typer.Option(hidden=True)] = "",
        build: Annotated[bool, typer.Option(help="Build first.")] = True,
    ) -> None:
        """Does it."""

    app.command("other")(one)
    page = commands_page.text(typer.main.get_command(app))
    assert "| `FOLDER` | Where\\|to. | required |" in page
    assert "| `--size` | How large. | `8g` |" in page
    assert "| `--build`, `--no-build` | Build first. | `--build` |" in page
    assert "secret" not in page


def test_writing_says_whether_the_page_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is up to date is left alone."""
    monkeypatch.setattr(commands_page, "PAGE", tmp_path / "commands.md")
    assert commands_page.write(ROOT)
    assert not commands_page.write(ROOT)
