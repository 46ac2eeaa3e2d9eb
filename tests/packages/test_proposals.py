"""`gpuyard update`: rows proposed from an index that the test makes up, as a diff that loads again."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

from gpuyard import paths
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.building.update import notes
from gpuyard.packages import proposals
from gpuyard.packages.proposals import Offer, Proposal
from tests.refusals import refused

TEXT = paths.CATALOGUE.read_text()


def offer(table: Catalogue, **more: tuple[str, ...]) -> dict[Version, frozenset[str]]:
    """What the catalogue knows, and more: version with underscores for dots, to its Pythons."""
    known = {Version(line.torch): frozenset(line.pythons) for line in table.line.values()}
    return {**known, **{Version(v.strip("v").replace("_", ".")): frozenset(pythons) for v, pythons in more.items()}}


def resolver(table: Catalogue, asked: list[list[str]] | None = None) -> proposals.Resolve:
    """Answers with the row of the nearest line, whatever the release."""

    def answer(requirements: list[str], python: str) -> Mapping[str, str]:
        del python
        (asked if asked is not None else []).append(requirements)
        version = Version(requirements[0].partition("==")[2])
        row = table.line.get(f"{version.major}.{version.minor}", table.line[table.default_line])
        suffix = "" if row.toolkit else f"-cu{row.cuda_major}"
        return {
            "torchvision": row.torchvision,
            "torchaudio": row.torchaudio,
            f"nvidia-cuda-runtime{suffix}": f"{row.cuda}.77",
            f"nvidia-cudnn-cu{row.cuda_major}": row.cudnn,
            f"nvidia-nccl-cu{row.cuda_major}": row.nccl,
        }

    return answer


def proposed(table: Catalogue, torch: Offer) -> list[Proposal]:
    """The proposals for that offer."""
    return proposals.proposals(table, torch, {}, resolver(table))


def test_a_catalogue_that_is_up_to_date_has_no_difference(table: Catalogue) -> None:
    """Nothing is proposed where the index offers what the rows say."""
    assert proposed(table, offer(table)) == []
    assert proposals.difference(TEXT, proposals.apply(TEXT, []), "x") == ""


def test_a_patch_release_changes_its_row_alone(table: Catalogue, tmp_path: Path) -> None:
    """The diff is taken by git, and what comes out loads as a catalogue."""
    line = table.default_line
    newer = f"{line}.99"
    found = proposed(table, offer(table, **{f"v{newer.replace('.', '_')}": ("3.12", "3.13")}))
    assert found == [Proposal(line, {"torch": newer, "pythons": ("3.12", "3.13")})]
    diff = proposals.difference(TEXT, proposals.apply(TEXT, found), "catalogue.toml")
    assert len([row for row in diff.splitlines() if row.startswith(("+ ", "- ", "+t", "-t", "+p", "-p"))]) == 4
    (tmp_path / "catalogue.toml").write_text(TEXT)
    subprocess.run(["git", "apply"], input=diff, text=True, check=True, cwd=tmp_path)
    after = catalogue.load(tmp_path / "catalogue.toml")
    assert after.line[line].torch == newer
    assert {name: row for name, row in after.line.items() if name != line} == {
        name: row for name, row in table.line.items() if name != line
    }


def test_a_new_release_is_proposed_as_a_new_row(table: Catalogue) -> None:
    """What the metadata has is filled in; what only the binary has is marked."""
    found = proposed(table, offer(table, v99_1_0=("3.13",)))
    assert [(proposal.line, proposal.new) for proposal in found] == [("99.1", True)]
    text = proposals.apply(TEXT, found)
    assert '[line."99.1"]\ntorch = "99.1.0"' in text
    assert "arch_list = [] # torch._C" in text
    assert text.index('[line."99.1"]') < text.index("[image.base]")


def test_a_sibling_of_the_same_number_is_preferred(table: Catalogue) -> None:
    """A torchaudio that names no torch would be paired with any; uv is asked for the right one."""
    asked: list[list[str]] = []
    row = table.line[table.default_line]
    proposals.proposals(table, offer(table), {Version(row.torch): frozenset()}, resolver(table, asked))
    assert any(f"torchaudio=={row.torch}" in words for words in asked)
    assert any("torchaudio" in words for words in asked)


def test_a_line_that_the_index_dropped_is_refused(table: Catalogue) -> None:
    """It can't be locked again: one line."""
    with refused("line-withdrawn", table.default_line):
        proposed(
            table,
            {
                version: pythons
                for version, pythons in offer(table, v99_1_0=("3.13",)).items()
                if not str(version).startswith(f"{table.default_line}.")
            },
        )


def test_a_cpu_build_is_no_proposal(table: Catalogue) -> None:
    """An index without NVIDIA's packages offers another product."""
    with refused("torch-without-cuda", "nvidia-cuda-runtime"):
        proposals.proposals(table, offer(table), {}, lambda *_: {"torchvision": "1", "torchaudio": "1"})


@pytest.mark.parametrize(
    ("filename", "pythons"),
    [
        ("torch-9.9.1-cp313-cp313-manylinux_2_28_x86_64.whl", {"3.13"}),
        ("torch-9.9.1-cp313-cp313t-manylinux_2_28_x86_64.whl", set()),
        ("torch-9.9.1-cp313-cp313-manylinux_2_28_aarch64.whl", set()),
        ("torch-9.9.1-cp313-cp313-win_amd64.whl", set()),
        ("torch-9.9.1-3-cp312-cp312-manylinux1_x86_64.whl", {"3.12"}),
    ],
)
def test_a_wheels_name_says_its_python(filename: str, pythons: set[str]) -> None:
    """Other platforms and free-threaded builds are not what the images use."""
    assert proposals.read_name(filename)[1] == pythons


@pytest.mark.parametrize(("day", "gone"), [(date(2026, 10, 31), False), (date(2026, 11, 1), True)])
def test_a_python_retires_five_years_after_its_release(day: date, gone: bool) -> None:
    """Python 3.10 of October 2021: to the end of October 2026."""
    assert proposals.retired("3.10", day) is gone


def test_retired_pythons_are_noted(table: Catalogue) -> None:
    """Both those in use and those that wheels exist for."""
    assert any("retired: move to" in note for note in notes(table, date(2090, 1, 1)))
    assert notes(table, date(2020, 1, 1)) == []


@pytest.mark.full
def test_the_pythons_of_each_line_are_those_with_wheels(table: Catalogue) -> None:
    """What the index offers for the very release of each row; a release's files do not go away."""
    found = proposals.offered("torch")
    assert {line.torch: tuple(sorted(found[Version(line.torch)], key=Version)) for line in table.line.values()} == {
        line.torch: line.pythons for line in table.line.values()
    }
