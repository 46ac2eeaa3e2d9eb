"""Each command of the documentation does what its page says, or its block is marked with what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from gpuyard.catalogue.table import Catalogue
from tests.docs.pages import DOCS, NOT_RUN, RUN, Command, blocks, fits, pages
from tests.docs.shell import Desk, Typed

PAGES = pages()


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
