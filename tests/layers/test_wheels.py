"""Wheels into layers: what goes where, the same bytes every time, and what is refused."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import zstandard

from gpuyard.layers.make import wheels_layer
from gpuyard.layers.model import Layer, Packing, Target, refuse_conflicts
from gpuyard.layers.plan import BIG, SHELVES, groups
from gpuyard.packages.fetcher import Wheel
from tests.layers.wheels import LINK, make
from tests.refusals import refused

TARGET = Target("3.13", 1_700_000_000)
SITE = TARGET.site


def layer(folder: Path, *wheels: Wheel, target: Target = TARGET) -> tuple[Layer, dict[str, tarfile.TarInfo]]:
    """The layer of these wheels without byte code, and its entries."""
    out = folder / "layer.tar.zst"
    made = wheels_layer(wheels, target, None, out)
    with zstandard.open(out) as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        return made, {member.name: member for member in tar}


def content(folder: Path, path: str) -> str:
    """A file of the layer written last."""
    with zstandard.open(folder / "layer.tar.zst") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
        found = next(tar.extractfile(member) for member in tar if member.name == path)
        assert found is not None
        return found.read().decode()


def test_each_part_of_a_wheel_goes_to_its_place(tmp_path: Path) -> None:
    """Packages, headers, data and scripts lie where an installation puts them."""
    files = {
        "sample/__init__.py": "",
        "sample-1.0.data/data/share/sample/x.json": "{}",
        "sample-1.0.data/headers/sample.h": "",
        "sample-1.0.data/scripts/tool": "#!python\nprint(1)\n",
    }
    _, entries = layer(tmp_path, make(tmp_path, files=files, scripts="[console_scripts]\nrun = sample:main.go\n"))
    assert {
        f"{SITE}/sample/__init__.py",
        "opt/venv/share/sample/x.json",
        "opt/venv/include/site/python3.13/sample/sample.h",
        "opt/venv/bin/tool",
        "opt/venv/bin/run",
    } <= entries.keys()
    assert content(tmp_path, "opt/venv/bin/tool").startswith("#!/opt/venv/bin/python\n")
    assert "from sample import main" in content(tmp_path, "opt/venv/bin/run")
    assert "main.go()" in content(tmp_path, "opt/venv/bin/run")


def test_record_names_what_lies_there(tmp_path: Path) -> None:
    """RECORD has the scripts with hashes, itself without, no installer, in sorted order."""
    layer(tmp_path, make(tmp_path, scripts="[console_scripts]\nrun = sample:main\n"))
    lines = content(tmp_path, f"{SITE}/sample-1.0.dist-info/RECORD").splitlines()
    assert lines == sorted(lines)
    assert lines[0].startswith("../../../bin/run,sha256=")
    assert "sample-1.0.dist-info/RECORD,," in lines
    assert not any("INSTALLER" in line for line in lines)


def test_pip_has_a_script_for_its_python(tmp_path: Path) -> None:
    """As every installer of pip makes one; RECORD names it."""
    layer(tmp_path, make(tmp_path, "pip", scripts="[console_scripts]\npip3 = pip:main\n"))
    assert "pip.main" not in content(tmp_path, "opt/venv/bin/pip3.13")
    assert "../../../bin/pip3.13,sha256=" in content(tmp_path, f"{SITE}/pip-1.0.dist-info/RECORD")


def test_record_keeps_the_mode_it_has_in_the_wheel(tmp_path: Path) -> None:
    """Some tools write every file as a program, RECORD included; an installation keeps that."""
    wheel = make(tmp_path, modes={"sample-1.0.dist-info/RECORD": 0o100755})
    assert layer(tmp_path, wheel)[1][f"{SITE}/sample-1.0.dist-info/RECORD"].mode == 0o755


def test_times_owners_and_modes_follow_from_the_target(tmp_path: Path) -> None:
    """The environment is the user's, what is above it root's; programs keep their execute bit only."""
    wheel = make(tmp_path, files={"sample/tool.sh": "", "sample/a.txt": ""}, modes={"sample/tool.sh": 0o100775})
    _, entries = layer(tmp_path, wheel)
    assert {entry.mtime for entry in entries.values()} == {TARGET.epoch}
    assert (entries["opt"].uid, entries["opt/venv"].uid) == (0, 1000)
    modes = [oct(entries[f"{SITE}/sample/{name}"].mode) for name in ("tool.sh", "a.txt")]
    assert modes == ["0o755", "0o644"]


def test_the_same_wheels_give_the_same_bytes(tmp_path: Path) -> None:
    """Another folder, another order, another day: digest and diff id are equal."""
    one, other = make(tmp_path / "a", "one"), make(tmp_path / "a", "other")
    again = [make(tmp_path / "b", name) for name in ("other", "one")]
    os.utime(again[0].path, (0, 0))
    first, _ = layer(tmp_path, one, other)
    second, _ = layer(tmp_path, *again)
    assert (first.digest, first.diff_id) == (second.digest, second.diff_id)


def test_another_target_gives_other_bytes(tmp_path: Path) -> None:
    """Python, time, owner and prefix are inputs; the level changes the blob and not the tar in it."""
    wheel = make(tmp_path, files={"sample/__init__.py": "x = 1\n" * 1000})
    base, _ = layer(tmp_path, wheel)
    others = (Target("3.12", TARGET.epoch), Target("3.13", 1), Target("3.13", TARGET.epoch, owner=1001))
    assert base.diff_id not in {layer(tmp_path, wheel, target=target)[0].diff_id for target in others}
    packed, _ = layer(tmp_path, wheel, target=Target("3.13", TARGET.epoch, packing=Packing(level=19)))
    assert packed.diff_id == base.diff_id
    assert packed.digest != base.digest


@pytest.mark.parametrize("path", ["../evil.py", "/etc/evil", "a/../../b.py"])
def test_a_path_that_leaves_the_prefix_is_refused(tmp_path: Path, path: str) -> None:
    """The wheel and the path are named."""
    with refused("wheel-unsafe", "sample-1.0", repr(path)):
        layer(tmp_path, make(tmp_path, files={path: ""}))


def test_a_script_whose_name_leaves_the_prefix_is_refused(tmp_path: Path) -> None:
    """An entry point is a path too."""
    with refused("wheel-unsafe", "../../evil"):
        layer(tmp_path, make(tmp_path, scripts="[console_scripts]\n../../evil = sample:main\n"))


def test_a_link_is_refused(tmp_path: Path) -> None:
    """No wheel may hold one, wherever it points."""
    with refused("wheel-unsafe", "sample/passwd"):
        layer(tmp_path, make(tmp_path, files={"sample/passwd": "/etc/passwd"}, modes={"sample/passwd": LINK}))


@pytest.mark.parametrize("tag", ["cp312-cp312-manylinux_2_28_x86_64", "cp313-cp313-win_amd64"])
def test_a_wheel_for_another_python_or_platform_is_refused(tmp_path: Path, tag: str) -> None:
    """The line says for what it would have to be."""
    with refused("wheel-platform", tag, "3.13"):
        layer(tmp_path, make(tmp_path, tag=tag))


def test_a_truncated_wheel_is_refused(tmp_path: Path) -> None:
    """Whatever is cut off."""
    wheel = make(tmp_path)
    wheel.path.write_bytes(wheel.path.read_bytes()[:-100])
    with refused("wheel-damaged", wheel.path.name):
        layer(tmp_path, wheel)


@pytest.mark.parametrize("deflated", [True, False])
def test_a_wheel_with_a_changed_byte_is_refused(tmp_path: Path, deflated: bool) -> None:
    """In the middle of a file's deflated data, or in a stored file: its CRC-32 does not match."""
    files: dict[str, str | bytes] = {"big/data.bin": b"".join(hashlib.sha256(bytes([i])).digest() for i in range(200))}
    wheel = make(tmp_path, files=files)
    with zipfile.ZipFile(wheel.path) as old, zipfile.ZipFile(tmp_path / "new", "w") as new:
        for info in old.infolist():
            kind = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
            new.writestr(info.filename, old.read(info.filename), kind)
        place = new.getinfo("big/data.bin").header_offset + 2000
    data = bytearray((tmp_path / "new").read_bytes())
    data[place] ^= 0xFF
    wheel.path.write_bytes(data)
    with refused("wheel-damaged", wheel.path.name):
        layer(tmp_path, wheel)


def test_two_wheels_with_one_path_are_both_named(tmp_path: Path) -> None:
    """In one layer and across layers; identical files are not a conflict."""
    one, same = make(tmp_path, "one", files={"shared.txt": "1"}), make(tmp_path, "same", files={"shared.txt": "1"})
    other = make(tmp_path, "other", files={"shared.txt": "2"})
    layer(tmp_path, one, same)
    with refused("wheel-conflict", "shared.txt", "one==1.0", "other==1.0"):
        layer(tmp_path, one, other)
    layers = [layer(tmp_path, wheel)[0] for wheel in (one, same, other)]
    refuse_conflicts(layers[:2])
    with refused("wheel-conflict", "shared.txt", "one==1.0", "other==1.0"):
        refuse_conflicts(layers)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_file_where_another_wheel_has_a_folder_is_refused(tmp_path: Path, swapped: bool) -> None:
    """In one layer and across layers, in either order: both wheels and the path are named."""
    file, folder = make(tmp_path, "one", files={"shared": "1"}), make(tmp_path, "other", files={"shared/deep/x.py": ""})
    pair = (folder, file) if swapped else (file, folder)
    named = (f"{SITE}/shared", "file in one==1.0", "folder in other==1.0")
    with refused("wheel-conflict", *named):
        layer(tmp_path, *pair)
    layers = [layer(tmp_path, wheel)[0] for wheel in pair]
    with refused("wheel-conflict", *named):
        refuse_conflicts(layers)


def test_a_layer_needs_little_memory_whatever_the_size_of_a_file(tmp_path: Path) -> None:
    """A file of 100 MB goes through in a few buffers."""
    wheel = make(tmp_path, files={"sample/big.bin": bytes(100_000_000)})
    tracemalloc.start()
    wheels_layer([wheel], TARGET, None, tmp_path / "layer")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_big_wheels_have_their_own_layer_and_small_ones_share_by_name(tmp_path: Path) -> None:
    """A changed small wheel changes its own shelf only; the order follows from the names."""
    small = [Wheel(f"small{n}", "1", "00", tmp_path, 10) for n in range(10 * SHELVES)]
    big = Wheel("big", "1", "00", tmp_path, BIG)
    planned = groups([*reversed(small), big])
    assert planned[0].wheels == (big,)
    assert len(planned) == 1 + SHELVES
    changed = groups([big, *small[1:], Wheel("small0", "2", "11", tmp_path, 10)])
    assert sum(one != other for one, other in zip(planned, changed, strict=True)) == 1
