"""A version stands in the catalogue and nowhere else; where people read one, it is the catalogue's."""

from __future__ import annotations

import re
import subprocess

import pytest

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue

GENERATED = ("images/", "verify/tables.json", "gpuyard/requirements.txt", "tests/requirements.txt")
PROSE = ("README.md", "compose.yaml", "docs/")
NAMING = ("README.md", "compose.yaml")


def tracked() -> list[str]:
    """The text files of this checkout that git knows."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=paths.ROOT)
    return [name for name in listed.stdout.split() if (paths.ROOT / name).is_file()]


def versions(table: Catalogue) -> set[str]:
    """Every version of torch, its siblings, CUDA, cuDNN, NCCL and drivers that the catalogue names."""
    found = {*table.drivers.bundled.values(), *table.drivers.family.values()}
    for line in table.line.values():
        found |= {line.torch, line.torchvision, line.torchaudio, line.cuda, line.cudnn, line.nccl, line.torch_version}
    return found


def mentions(text: str, wanted: set[str]) -> set[str]:
    """Which of these versions stand in the text as whole words."""
    return {version for version in wanted if re.search(rf"(?<![\w.]){re.escape(version)}(?![\w.]*\d)", text)}


@pytest.mark.parametrize("text", ['torch == "{torch}"', "needs CUDA {cuda} here", "driver {driver}."])
def test_a_second_copy_would_be_noticed(table: Catalogue, text: str) -> None:
    """The search that the next test relies on finds versions in code and in sentences."""
    line = table.line[table.default_line]
    shown = text.format(torch=line.torch, cuda=line.cuda, driver=table.driver_floor(line))
    assert mentions(shown, versions(table))


def test_no_code_holds_a_version(table: Catalogue) -> None:
    """No file but the catalogue, the locks, generated tables and prose names a version of these parts."""
    wanted = versions(table)
    copies = {
        name: found
        for name in tracked()
        if not name.startswith((*GENERATED, *PROSE)) and (found := mentions(_text(name), wanted))
    }
    assert not copies


@pytest.mark.parametrize("name", NAMING)
def test_every_image_that_prose_names_exists(table: Catalogue, name: str) -> None:
    """Each `repository:tag` in the README and compose.yaml is a tag that the catalogue gives."""
    known = {table.tag(line, image) for line in table.line for image in table.published}
    named = set(re.findall(rf"\b{table.repository}:v[\w.-]*[\w]", _text(name)))
    assert named
    assert named <= known


def test_every_build_of_torch_that_prose_names_is_in_the_catalogue(table: Catalogue) -> None:
    """Transcripts and sentences that name torch with its CUDA variant name one that exists."""
    known = {line.torch_version for line in table.line.values()}
    prose = [name for name in tracked() if name.startswith(PROSE)]
    named = {build for name in prose for build in re.findall(r"torch (\d+\.\d+\.\d+\+cu\d+)", _text(name))}
    assert named
    assert named <= known


def test_the_readmes_table_of_lines_is_the_catalogues(table: Catalogue) -> None:
    """Line, torch, CUDA, cuDNN, NCCL and driver of every row of the README's table."""
    rows = re.findall(r"^\| `v?([\d.]+)`[^|]*\|(.*)\|$", _text("README.md"), flags=re.MULTILINE)
    assert [row[0] for row in rows] == list(table.line)
    for name, rest in rows:
        line = table.line[name]
        cells = [cell.strip() for cell in rest.split("|")]
        assert cells[:5] == [line.torch, line.cuda, line.cudnn, line.nccl, table.driver_floor(line)]


def _text(name: str) -> str:
    try:
        return (paths.ROOT / name).read_text()
    except UnicodeDecodeError:
        return ""
