"""docker/finish_image.py on folders and on a font of two tables."""

from __future__ import annotations

import struct
from pathlib import Path

import finish_image
import pytest


def font(family: str = finish_image.FAMILY) -> bytes:
    """A font's directory with a name table, in both encodings, and an OS/2 table of weight 300."""
    names = family.encode("utf-16-be") + family.encode("latin-1")
    weights = struct.pack(">HHHH", 4, 500, 300, 5)
    start = 12 + 2 * 16
    directory = struct.pack(">LHHHH", 0x10000, 2, 0, 0, 0)
    directory += struct.pack(">4sLLL", b"name", 0, start, len(names))
    directory += struct.pack(">4sLLL", b"OS/2", 0, start + len(names), len(weights))
    return directory + names + weights


def weight(data: bytes) -> int:
    """The weight that the font says it has."""
    return int(struct.unpack(">H", data[-4:-2])[0])


def test_both_styles_have_the_new_name_and_their_weight(tmp_path: Path) -> None:
    """Nothing else differs: the files are as long as the original, and the tables lie where they did."""
    (tmp_path / "font.ttf").write_bytes(font())
    finish_image.write_fonts(tmp_path / "font.ttf", tmp_path / "out")
    written = {file.stem: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert {name: weight(data) for name, data in written.items()} == {
        "DroidSansCJK-Regular": 400,
        "DroidSansCJK-Bold": 700,
    }
    assert {data[:-4] + data[-2:] for data in written.values()} == {
        font(finish_image.RENAMED)[:-4] + font(finish_image.RENAMED)[-2:]
    }


def test_another_font_is_refused() -> None:
    """A package whose font was renamed fails the build, and does not give an image without these letters."""
    with pytest.raises(ValueError, match=finish_image.FAMILY):
        finish_image.renamed(font("Another Family Name"))


def test_names_are_replaced_in_place() -> None:
    """A longer or shorter name would shift every table behind it."""
    assert len(finish_image.FAMILY) == len(finish_image.RENAMED)


def test_only_held_packages_have_a_licence_link(tmp_path: Path) -> None:
    """Comments are not packages; a dash in a name is an underscore in its folder's."""
    text = "# Held by gpuyard\ntorch===9.9.1\nnvidia-nccl-cu12===9.9.9\n"
    finish_image.link_licenses(text, tmp_path / "licenses", tmp_path / "site")
    found = {link.name: link.readlink().name for link in (tmp_path / "licenses").iterdir()}
    assert found == {"torch": "torch-9.9.1.dist-info", "nvidia-nccl-cu12": "nvidia_nccl_cu12-9.9.9.dist-info"}


def test_the_toolkit_has_the_name_that_linkers_ask_for(tmp_path: Path) -> None:
    """-lcudart finds lib64/libcudart.so, which leads to the wheel's versioned file."""
    library = tmp_path / "site" / "nvidia" / "cu13" / "lib" / "libcudart.so.13"
    library.parent.mkdir(parents=True)
    library.write_text("the runtime")
    finish_image.link_toolkit(tmp_path / "cuda", tmp_path / "site", "13")
    assert (tmp_path / "cuda" / "lib64" / "libcudart.so").read_text() == "the runtime"
    assert {path.name for path in (tmp_path / "cuda").iterdir()} == {"bin", "include", "lib", "lib64", "nvvm"}
