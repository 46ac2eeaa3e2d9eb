"""The part of finish-image.sh that is easier in Python: links, and the fonts of images that people work in.

Runs in a build, as root, with the standard library of the image's own Python.
"""

from __future__ import annotations

import json
import os
import struct
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CLAIMS = Path("/etc/gpuyard")
OURS = Path("/opt/gpuyard")
FONT = Path("/usr/share/fonts-droid-fallback/truetype/DroidSansFallback.ttf")
FAMILY, RENAMED = "Droid Sans Fallback", "Droid Sans CJK Full"
"""Debian's font and its name here: two names of one length, because the bytes are replaced in place."""
STYLES = {"Regular": 400, "Bold": 700}
WEIGHT_OFFSET = 4
"""Where the OS/2 table holds the weight, in two bytes."""


def link_licenses(constraints: str, licenses: Path, site: Path) -> None:
    """One folder with the licences of the held packages, which lie with their wheels' metadata."""
    licenses.mkdir()
    for line in constraints.splitlines():
        name, held, version = line.partition("===")
        if held:
            (licenses / name).symlink_to(site / f"{name.replace('-', '_')}-{version}.dist-info")


def link_toolkit(cuda: Path, site: Path, major: str) -> None:
    """A CUDA toolkit where compilers look for one.

    NVIDIA's wheels share a folder per CUDA major, but ship no name to link against.
    """
    (cuda / "lib64").mkdir(parents=True)
    for name in ("bin", "include", "lib", "nvvm"):
        (cuda / name).symlink_to(site / "nvidia" / f"cu{major}" / name)
    (cuda / "lib64" / "libcudart.so").symlink_to(f"../lib/libcudart.so.{major}")


def tables(font: bytes) -> dict[str, tuple[int, int]]:
    """Start and end of each table of a TrueType font."""
    found = {}
    for index in range(struct.unpack(">H", font[4:6])[0]):
        tag, _, offset, length = struct.unpack(">4sLLL", font[12 + 16 * index : 28 + 16 * index])
        found[tag.decode()] = (offset, offset + length)
    return found


def renamed(font: bytes) -> bytes:
    """The font under a name of its own, so that Matplotlib can't take Debian's smaller file of that family for it.

    Raises ValueError if the font has another name than expected.
    """
    start, end = tables(font)["name"]
    names = font[start:end]
    for code in ("utf-16-be", "latin-1"):
        names = names.replace(FAMILY.encode(code), RENAMED.encode(code))
    if names == font[start:end]:
        raise ValueError(f"the font is not named {FAMILY!r}")
    return font[:start] + names + font[end:]


def weighted(font: bytes, weight: int) -> bytes:
    """The font with another weight: Matplotlib warns of a weight that a family lacks."""
    place = tables(font)["OS/2"][0] + WEIGHT_OFFSET
    return font[:place] + struct.pack(">H", weight) + font[place + 2 :]


def write_fonts(source: Path, folder: Path) -> None:
    """Chinese, Japanese and Korean letters from the one file of Debian's package that holds all three."""
    font = renamed(source.read_bytes())
    folder.mkdir(parents=True)
    for style, weight in STYLES.items():
        (folder / f"DroidSansCJK-{style}.ttf").write_bytes(weighted(font, weight))


def finish_workplace() -> None:
    """For images that people work in: JupyterLab's settings, fonts, and what makes Matplotlib use them."""
    # JupyterLab asks everybody who opens it whether it may fetch news; here it may not.
    labconfig = Path("/etc/jupyter/labconfig/page_config.json")
    labconfig.parent.mkdir(parents=True, exist_ok=True)
    labconfig.write_text('{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}\n')
    # A second server, typed into a running container, would quietly take the next port, which is not published.
    Path("/etc/jupyter/jupyter_server_config.json").write_text('{"ServerApp": {"port_retries": 0}}\n')
    write_fonts(FONT, Path("/usr/local/share/fonts/gpuyard"))
    # The image's variable MATPLOTLIBRC points here.
    (CLAIMS / "matplotlibrc").write_text(f"font.family: sans-serif, {RENAMED}\n")


def main(image: Mapping[str, Any]) -> None:
    """Finishes the image that these claims (image.json) are about."""
    # Modes do not depend on who builds.
    os.umask(0o022)
    site = Path(sysconfig.get_path("purelib"))
    (site / "gpuyard.pth").write_text(f"{OURS}\n")
    link_licenses((CLAIMS / "constraints.txt").read_text(), OURS / "licenses", site)
    cuda = Path("/usr/local/cuda")
    if image["image"] == "devel" and not cuda.exists():
        link_toolkit(cuda, site, image["versions"]["cuda"].split(".")[0])
    if "jupyter" in image["services"]:
        finish_workplace()


if __name__ == "__main__":
    main(json.loads((CLAIMS / "image.json").read_text()))
