"""Each command of the documentation does what its page says, or its block is marked with what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import typer

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.tree import application
from tests.docs.pages import DOCS, NOT_RUN, RUN, Command, blocks, fits, pages
from tests.docs.shell import Desk, Typed
from verify.cli import parser
from verify.engine import registry

PAGES = pages()
CLI: Any = typer.main.get_command(application())


def commands(page: str, *needs: str) -> list[Command]:
    """The commands of a page's blocks that need one of these."""
    return [command for block in blocks(page) if block.need in needs for command in block.commands]


def having(*needs: str) -> list[str]:
    """The pages that have such commands."""
    return [page for page in PAGES if commands(page, *needs)]


def wrong(typed: list[Typed]) -> list[str]:
    """What did not do as its page says."""
    return [
        f"$ {one.command.text}\nexit {one.code}, expected {one.command.code}\n{one.output}\nshown: {one.command.shown}"
        for one in typed
        if one.code != one.command.code or not fits(one.command.shown, one.output)
    ]


@pytest.fixture
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A desk; containers and volumes that it made are removed at the end."""
    found = Desk(tmp_path)
    yield found
    if "image" in request.fixturenames:
        client: docker.DockerClient = request.getfixturevalue("docker_client")
        for container in client.containers.list(all=True, filters={"name": found.prefix}):
            container.remove(force=True, v=True)
        for volume in client.volumes.list(filters={"name": found.prefix}):
            volume.remove(force=True)


@pytest.mark.parametrize("page", having(""))
def test_commands_without_a_mark_run_anywhere(desk: Desk, page: str) -> None:
    """Exit codes and outputs are the page's, on a machine without an engine."""
    assert not wrong(desk.type(commands(page, "")))


@pytest.mark.full
@pytest.mark.image
@pytest.mark.parametrize("page", having("image", "full"))
@pytest.mark.usefixtures("image", "docker_client")
def test_commands_with_an_image_run_in_it(desk: Desk, page: str) -> None:
    """The same with containers, in the order of the page."""
    assert not wrong(desk.type(commands(page, "", "image", "full")))


@pytest.mark.parametrize("page", PAGES)
def test_every_mark_is_known(page: str) -> None:
    """A mark that no test knows would hide its commands; and a page has some commands."""
    assert {block.need for block in blocks(page)} <= {*RUN, *NOT_RUN}
    assert commands(page, *RUN, *NOT_RUN)


@pytest.mark.parametrize("page", PAGES)
def test_every_gpuyard_command_exists(page: str) -> None:
    """Also those that are not run: their options are options of that command."""
    for command in commands(page, *RUN, *NOT_RUN):
        if command.words[:1] == ["gpuyard"]:
            known(command.words[1:])


def known(words: list[str]) -> None:
    """Parses the words of a gpuyard command without running it. Raises for one that it does not know."""
    command = CLI
    name, words = "", words[: words.index("--")] if "--" in words else words
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(name, list(words))


@pytest.mark.parametrize("words", [["bild"], ["run", "--gpu", "all"], ["render", "slurm", "--node", "2"]])
def test_a_wrong_gpuyard_command_is_seen(words: list[str]) -> None:
    """An unknown command, and unknown options."""
    with pytest.raises(Exception, match=r"bild|No such option"):
        known(words)


@pytest.mark.parametrize("page", PAGES)
def test_every_verify_command_exists(page: str) -> None:
    """Options of verify inside docker run, by verify's own parser; and names of checks by its registry."""
    for command in commands(page, *RUN, *NOT_RUN):
        words = command.words[command.words.index("verify") + 1 :] if "verify" in command.words else []
        if command.words[0] == "docker" and words[:1] not in (["env"], ["explain"], []):
            found = parser().parse_args(words)
            for names in [*(found.only or []), *(found.require or [])]:
                registry.resolve(registry.CHECKS, names.split(","))


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    """What is built by make is a target of the Makefile."""
    targets = re.findall(r"^([\w.-]+):", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(page, *RUN, *NOT_RUN):
        if command.words[:1] == ["make"]:
            assert command.words[1] in targets


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    """Links to other pages and files of this repository."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (DOCS / page).read_text()):
        assert (DOCS / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_every_image_exists(page: str, table: Catalogue) -> None:
    """A tag that a page names is one that the catalogue gives."""
    tags = {table.tag(line, image) for line in table.line for image in table.published}
    assert set(re.findall(rf"\b{table.repository}:v[\w.-]*\w", (DOCS / page).read_text())) <= tags


@pytest.mark.parametrize(
    ("shown", "output", "good"),
    [
        (("a",), "a\n", True),
        (("a",), "b\n", False),
        (("a…", "c"), "ax\nb\nc\n", True),
        (("…",), "anything\nat all", True),
        (("…x",), "y", False),
        ((), "what ever", True),
    ],
)
def test_the_comparison_sees_a_difference(shown: tuple[str, ...], output: str, good: bool) -> None:
    """What a page shows is compared, where it does not leave it out."""
    assert fits(shown, output) is good


def test_a_failing_command_is_seen(tmp_path: Path) -> None:
    """Its exit code is not the page's, in the middle of others that do well."""
    typed = Desk(tmp_path).type([Command("true", 0, ()), Command("false", 0, ()), Command("false # exit 1", 1, ())])
    assert [one.code for one in typed] == [0, 1, 1]
    assert len(wrong(typed)) == 1
