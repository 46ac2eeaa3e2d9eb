"""GPU names: usual spellings are found, and GPUs that no image runs on get one line."""

from __future__ import annotations

from collections import defaultdict

import pytest

from gpuyard.catalogue.gpus import capabilities, spellings
from gpuyard.catalogue.table import Catalogue
from tests.refusals import refused


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA A100 80GB PCIe MIG 1g.10gb", "8.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("H100 NVL", "9.0"),
        ("Tesla V100-DGXS-32GB", "7.0"),
        ("GRID A10-4Q", "8.6"),
        ("nvidia geforce rtx 4090 laptop gpu", "8.9"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
        ("GeForce RTX 2060 with Max-Q Design", "7.5"),
        ("rtx4090", "8.9"),
        ("RTX 4090", "8.9"),
        ("rtx-4070-ti-super", "8.9"),
        ("RTX4070TiSuper", "8.9"),
        ("RTX 5090D", "12.0"),
        ("4090", "8.9"),
        ("1080ti", "6.1"),
        ("GTX 1080", "6.1"),
        ("GeForce GTX 750 Ti", "5.0"),
        ("GeForce GTX 960M", "5.0"),
        ("GeForce GTX 960", "5.2"),
        ("GeForce GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("Quadro P2000", "6.1"),
        ("P2000", "6.1"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA RTX A6000", "8.6"),
        ("A6000", "8.6"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ("RTX PRO 6000", "12.0"),
        ("HGX B200", "10.0"),
        ("Tesla T4", "7.5"),
        ("Tesla M4", "5.2"),
        ("8.6", "8.6"),
        ("Ada Lovelace", "8.9"),
    ],
)
def test_a_gpu_is_found_by_its_usual_spellings(table: Catalogue, name: str, capability: str) -> None:
    """As nvidia-smi, shops, clouds and people write it."""
    assert capabilities(table, name) == [capability]


def test_a_spelling_stands_for_one_capability(table: Catalogue) -> None:
    """No shortened name is that of another GPU, and every name in the catalogue finds its own row."""
    owners: dict[str, set[str]] = defaultdict(set)
    for cc, row in table.gpu.items():
        for name in (*row.names, *row.arm64):
            for spelling in spellings(name):
                owners[spelling].add(cc)
        assert all(cc in capabilities(table, f"NVIDIA {name}") for name in row.names)
    assert {spelling: found for spelling, found in owners.items() if len(found) > 1} == {}


def test_a_generation_is_all_of_its_x86_boards(table: Catalogue) -> None:
    """Jetson boards of the generation are left out."""
    assert capabilities(table, "Blackwell") == ["12.0", "10.3", "10.0"]
    assert capabilities(table, "pascal") == ["6.1", "6.0"]


@pytest.mark.parametrize(
    "name",
    [
        "DGX Spark",
        "NVIDIA GB10",
        "GH200 480GB",
        "GB200 NVL72",
        "GB300",
        "Jetson",
        "Jetson AGX Orin 64GB",
        "Jetson Nano",
    ],
)
def test_an_arm64_board_is_refused(table: Catalogue, name: str) -> None:
    """Known, and nothing is built for it."""
    with refused("gpu-arm64", name, "arm64"):
        capabilities(table, name)


def test_the_number_of_arm64_boards_is_refused_too(table: Catalogue) -> None:
    """A compute capability that no x86-64 board has."""
    with refused("gpu-arm64", "8.7"):
        capabilities(table, "8.7")


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("MI300X", "AMD"),
        ("AMD Instinct MI250", "AMD"),
        ("Radeon RX 7900 XTX", "AMD"),
        ("rx7900xtx", "AMD"),
        ("Intel Arc A770", "Intel"),
        ("Arc B580", "Intel"),
        ("Gaudi 3", "Intel"),
        ("Apple M3", "Apple"),
        ("M4 Max", "Apple"),
        ("M1", "Apple"),
        ("TPU v5e", "Google"),
    ],
)
def test_a_gpu_of_another_maker_is_named_as_such(table: Catalogue, name: str, maker: str) -> None:
    """Not as a typing error of an NVIDIA GPU."""
    with refused("gpu-not-nvidia", name, maker):
        capabilities(table, name)


@pytest.mark.parametrize(
    ("name", "near"), [("RTX 4900", "RTX 4090"), ("GTX 1081", "GTX 1080"), ("RTX 6000", "RTX 6000 Ada"), ("", "8.9")]
)
def test_an_unknown_gpu_names_similar_ones(table: Catalogue, name: str, near: str) -> None:
    """An unclear name is not guessed: RTX 6000 is of three generations."""
    with refused("gpu-unknown", repr(name), near, code=2):
        capabilities(table, name)
