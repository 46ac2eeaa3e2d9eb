"""The catalogue: what it says, and what it refuses with file, key, found and expected."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue import claims
from gpuyard.catalogue import table as catalogue
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue, runs_on
from tests.refusals import refused


def broken(tmp_path: Path, pattern: str, new: str) -> Path:
    """A copy of the catalogue with the first match of a pattern changed."""
    text, count = re.subn(pattern, new, paths.CATALOGUE.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1
    path = tmp_path / "catalogue.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("pattern", "new", "words"),
    [
        ("^default_line = .*", 'default_line = "0.0"', ["default_line", "unknown name '0.0'", "Known: 2.7, 2.9"]),
        ("^cuda = .*\ncudnn", 'cuda = "99.9"\ncudnn', ["line.2.7.cuda", "99.9"]),
        ("^torch = .*", 'torch = "latest"', ["line.2.7.torch", "found 'latest'"]),
        ('^parent = "cuda"', 'parent = "coda"', ["image.torch.parent", "Did you mean 'cuda'"]),
        ("^uv = ", "uvv = ", ["uvv", "uv: Field required"]),
        ('^suite = "trixie"\n', "", ["os.debian-13", "'bootstrap' needs a suite"]),
        (r"^\[os.debian-13\]", "[os.debian-13", ["not TOML"]),
    ],
)
def test_a_fault_is_named_with_its_file_and_key(tmp_path: Path, pattern: str, new: str, words: list[str]) -> None:
    """Every kind of fault ends in one UserError that names the file, the key and what was found."""
    path = broken(tmp_path, pattern, new)
    with refused("catalogue-invalid", path, *words):
        catalogue.load(path)


def test_a_missing_catalogue_is_said_in_words(tmp_path: Path) -> None:
    """A catalogue that is not there gives no traceback."""
    with refused("catalogue-invalid", "none.toml"):
        catalogue.load(tmp_path / "none.toml")


@pytest.mark.parametrize("spelling", [None, "v{line}", "{line}", "{torch}", "{torch_version}"])
def test_a_line_is_found_by_the_names_people_type(table: Catalogue, spelling: str | None) -> None:
    """`v2.9`, `2.9` and the full torch version all mean the same line."""
    line, row = table.default_line, table.line[table.default_line]
    name = spelling and spelling.format(line=line, torch=row.torch, torch_version=row.torch_version)
    assert table.find_line(name) == line


def test_an_unknown_line_names_the_known_ones(table: Catalogue) -> None:
    """The refusal lists what there is and exits with 2."""
    with refused("line-unknown", "9.9", *table.line, code=2):
        table.find_line("9.9")


def test_a_python_without_wheels_is_refused_with_the_valid_ones(tmp_path: Path) -> None:
    """An impossible pair of line and Python is refused before anything is built."""
    odd = catalogue.load(broken(tmp_path, "^python = .*", 'python = "3.8"'))
    with refused("combination-impossible", "3.8", "3.10", code=2):
        odd.check("2.9", "runtime", "debian-13")


def test_a_base_with_another_cuda_is_refused_with_what_can_stand_on_it(table: Catalogue) -> None:
    """The line's CUDA major and the base's must be one; the refusal names lines and systems that fit."""
    system = next(name for name, row in table.os.items() if row.cuda)
    line = next(name for name, row in table.line.items() if row.cuda_major != str(table.os[system].cuda).split(".")[0])
    with refused("combination-impossible", system, f"built on: {table.default_os};", "lines: 2.7, 2.9", code=2):
        table.check(line, "runtime", system)


def test_a_compiler_is_refused_where_there_is_none(table: Catalogue) -> None:
    """-devel exists for lines whose CUDA has nvcc as wheels, and for others on a base that brings it."""
    line = next(name for name, row in table.line.items() if not row.toolkit)
    with refused("combination-impossible", "nvcc", "built on: ubuntu-", "lines: 2.15", code=2):
        table.check(line, "devel", table.default_os)
    assert "devel" not in table.images_of(line)
    assert any("devel" in table.images_of(name) for name in table.line)
    base = next(name for name, row in table.os.items() if row.nvcc and row.cuda == table.line[line].cuda)
    table.check(line, "devel", base)


def test_an_impossible_combination_is_refused_in_a_second() -> None:
    """The command line ends with 2 and one line before it asks an engine or a network for anything."""
    command = [sys.executable, "-m", "gpuyard", "build", "2.7", "--image", "devel"]
    started = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=paths.ROOT)
    assert time.monotonic() - started < 5, "the target is one second on an idle machine"
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "error[combination-impossible]" in done.stderr


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [
        ("sm_86", "8.9", True),
        ("sm_86", "8.0", False),
        ("sm_75", "7.0", False),
        ("sm_120", "12.1", True),
        ("sm_90", "10.0", False),
    ],
)
def test_machine_code_runs_on_the_same_major_and_no_older_minor(arch: str, capability: str, runs: bool) -> None:
    """The rule that decides which GPUs a build supports."""
    assert runs_on(arch, capability) is runs


def test_the_suites_tables_are_generated_from_the_catalogue(table: Catalogue) -> None:
    """verify/tables.json is what the catalogue gives today (`gpuyard list --write-tables`)."""
    assert paths.TABLES.read_text() == claims.tables_text(table)


def test_pypi_facts_agree_with_the_catalogue(table: Catalogue) -> None:
    """The CUDA libraries that the locks hold are the ones the catalogue names."""
    for name, line in table.line.items():
        locks = Product(table, name, "workbench", table.default_os).locks
        packages = locks.packages(["cuda", "torch"])
        versions = {key: value for key, value in packages.items() if key.startswith(("nvidia-cudnn", "nvidia-nccl"))}
        assert sorted(versions.values()) == sorted([line.cudnn, line.nccl])
        assert packages["torch"] == line.torch
        assert packages["torchvision"] == line.torchvision
        assert packages["torchaudio"] == line.torchaudio


def test_claims_hold_what_the_suite_compares(table: Catalogue) -> None:
    """image.json is JSON, and holds versions, locks and required checks of the product."""
    product = Product(table, table.default_line, "workbench", table.default_os)
    data = json.loads(json.dumps(claims.image_json(product)))
    assert data["versions"]["torch"] == table.line[table.default_line].torch_version
    assert data["packages"]["jupyterlab"]
    assert data["services"] == ["jupyter", "ssh"]


@pytest.mark.parametrize("image", ["workbench", "devel"])
def test_constraints_hold_torch_and_every_nvidia_package(table: Catalogue, image: str) -> None:
    """The constraints name exactly the packages that an install must not swap, each at one build."""
    line = next(name for name in table.line if image in table.images_of(name))
    product = Product(table, line, image, table.default_os)
    held = dict(row.split("===") for row in claims.constraints(product).splitlines() if "==" in row)
    assert {"torch", "torchvision", "torchaudio", "triton"} <= set(held)
    assert all(name in held for name in product.locks.packages(["cuda"]))
    assert "numpy" not in held
    assert "nvidia-ml-py" not in held
    assert all(name in held for name in table.line[line].toolkit) is (image == "devel" or not table.line[line].toolkit)
    assert tomllib.loads(claims.uv_configuration(product))["constraint-dependencies"] == [
        f"{name}==={version}" for name, version in held.items()
    ]
