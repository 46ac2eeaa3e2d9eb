"""Compiled packages without their libraries, second copies of CUDA, decoys, and what was really mapped."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.verify.suite import CLAIMS, NO_CLAIMS, verify
from verify.checks.container import process
from verify.checks.image import loaded, native
from verify.model import Owner, Status
from verify.probes.elf import read_library


def library(path: Path, *options: str) -> Path:
    """An empty shared library, linked with the options."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-x", "c", "/dev/null", "-x", "none", "-o", str(path), *options]
    subprocess.run(command, check=True)
    return path


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Site-packages with a CUDA runtime and an extension linked against it."""
    folder = tmp_path / "site-packages"
    runtime = library(folder / "nvidia/lib/libcudart.so.99", "-Wl,-soname,libcudart.so.99")
    library(folder / "ops/_C.so", "-Wl,--no-as-needed", str(runtime), "-Wl,-rpath,$ORIGIN/../nvidia/lib")
    return folder


def unmet(folder: Path) -> dict[str, list[str]]:
    """What compiled files below the folder lack."""
    files = list(native.compiled_files([str(folder)]))
    libraries = [found for found in map(read_library, files) if found]
    return native.unmet(libraries, {Path(file).name for file in files} | native.cached_names())


def test_needs_names_and_search_paths_are_read_from_the_headers(packages: Path) -> None:
    """$ORIGIN is the file's own folder; what is not an ELF file gives None."""
    found = read_library(str(packages / "ops/_C.so"))
    assert found
    assert "libcudart.so.99" in found.needed
    assert found.search == (f"{packages}/ops/../nvidia/lib",)
    assert read_library(__file__) is None


def test_a_file_that_was_cut_off_or_overwritten_stops_nobody(packages: Path) -> None:
    """Whatever a header says, the answer is a library or None; seeded damage, so that a failure comes again."""
    whole = (packages / "ops/_C.so").read_bytes()
    dice, damaged = random.Random(7), packages / "ops/damaged.so"
    for _ in range(300):
        data = bytearray(whole[: dice.choice((len(whole), dice.randrange(len(whole))))])
        for _ in range(dice.randrange(40)):
            place = dice.randrange(max(len(data), 1))
            data[place : place + 1] = bytes([dice.randrange(256)])
        damaged.write_bytes(data)
        read_library(str(damaged))


def test_an_extension_for_another_cuda_is_named_with_what_it_lacks(packages: Path) -> None:
    """With its runtime it passes; without it the file and the library are named."""
    assert unmet(packages) == {}
    (packages / "nvidia/lib/libcudart.so.99").unlink()
    lacks = unmet(packages)
    verdict = native.evaluate_needed({"count": 1, "unmet": lacks}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "ops/_C.so needs libcudart.so.99" in verdict.observed


def test_plug_ins_of_nvidias_packages_may_lack_a_network_library(packages: Path) -> None:
    """They are loaded on demand only; the driver's libraries come from the host."""
    library(packages / "nvidia/lib/plug.so", "-Wl,--no-as-needed", str(library(packages / "libfabric.so.7")))
    (packages / "libfabric.so.7").unlink()
    lacks = unmet(packages)
    assert lacks
    assert native.evaluate_needed({"count": 2, "unmet": lacks}, CLAIMS).status is Status.PASS
    assert native.OF_THE_DRIVER.fullmatch("libcuda.so.1")
    assert not native.OF_THE_DRIVER.fullmatch("libcudart.so.99")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("torio/lib/_torio_ffmpeg9.so", Status.PASS),
        ("torchaudio/lib/_torchaudio_sox.so", Status.PASS),
        ("torchaudio/lib/libtorchaudio_sox.so", Status.PASS),
        ("torchaudio/lib/libtorchaudio.so", Status.FAIL),
        ("torio/lib/other.so", Status.FAIL),
    ],
)
def test_torchaudios_backends_may_lack_what_they_play_with(path: str, status: Status) -> None:
    """Those for sox and FFmpeg are imported when they are used; its own library is not one of them."""
    facts = {"count": 1, "unmet": {f"/opt/venv/lib/python9.9/site-packages/{path}": ["libavutil.so.99"]}}
    assert native.evaluate_needed(facts, CLAIMS).status is status


def test_two_copies_of_a_cuda_library_are_named_with_their_owners(packages: Path) -> None:
    """One package beside another, or a toolkit beside the wheels; one copy passes, a link to it is not another copy."""
    (packages / "link.so").symlink_to(packages / "nvidia/lib/libcudart.so.99")
    files = list(native.compiled_files([str(packages)]))
    assert native.cuda_copies(files) == {}
    second = library(packages / "other/libcudart.so.99")
    copies = native.cuda_copies([*files, str(second)])
    verdict = native.evaluate_copies({"copies": copies}, CLAIMS)
    assert verdict.status is Status.FAIL
    assert str(second) in verdict.observed
    assert native.owners([str(second)]) == {str(second): "no package owns it"}
    assert native.evaluate_copies({"copies": {}}, CLAIMS).status is Status.PASS


def test_the_owner_of_a_file_is_found_in_the_records() -> None:
    """pip's records name the package, dpkg's the Debian one."""
    from importlib import metadata

    file = next(file for file in metadata.files("pyyaml") or [] if ".so" in file.name)
    path = str(file.locate())
    assert native.owners([path])[path].startswith("PyYAML ")


@pytest.mark.parametrize("name", ["libcudnn.so.7", "libstdc++.so.6", "libnccl.so.2"])
def test_a_decoy_on_the_loaders_path_is_named(tmp_path: Path, name: str) -> None:
    """The folder's other files do not matter."""
    library(tmp_path / name)
    library(tmp_path / "libharmless.so.1")
    ended = verify("--only", "decoys", LD_LIBRARY_PATH=str(tmp_path))
    assert ended.returncode == 1
    assert name in ended.stdout
    assert "libharmless" not in ended.stdout


def test_a_preloaded_library_is_named_and_nothing_passes(tmp_path: Path) -> None:
    """LD_PRELOAD beats every search path."""
    path = library(tmp_path / "libgood.so.1")
    assert "LD_PRELOAD loads" in verify("--only", "decoys", LD_PRELOAD=str(path)).stdout
    assert verify("--only", "decoys", LD_LIBRARY_PATH="", LD_PRELOAD="").returncode == 0


def test_a_cuda_library_mapped_from_elsewhere_fails(tmp_path: Path) -> None:
    """The environment's own pass, with the standard library that is mapped."""
    own, stray = tmp_path / "site/nvidia/libnccl.so.2", tmp_path / "old/libcudnn.so.7"
    standard = next(Path("/usr/lib/x86_64-linux-gnu").glob("libstdc++.so.6"))
    maps = "\n".join(f"7f-80 r-xp 0 00:1 {n} {path}" for n, path in enumerate((own, standard)))
    good = {"home": str(tmp_path / "site"), **loaded.mapped(maps)}
    assert loaded.evaluate_loaded(good, CLAIMS).status is Status.PASS
    assert good["glibcxx"].startswith("GLIBCXX_3.4.")
    bad = {**good, **loaded.mapped(f"{maps}\n7f-80 r-xp 0 00:1 9 {stray}")}
    verdict = loaded.evaluate_loaded(bad, CLAIMS)
    assert verdict.status is Status.FAIL
    assert f"mapped from elsewhere: {stray}" in verdict.observed
    assert loaded.evaluate_loaded({**good, "cuda": []}, CLAIMS).status is Status.FAIL


def test_an_image_of_others_may_take_cuda_from_a_toolkit() -> None:
    """All of it from one place is their way; a mixture is a fault everywhere, and so is a toolkit's in our image."""
    own, toolkit = "/site/nvidia/libnccl.so.2", "/usr/local/cuda/lib64/libcudart.so.99"
    facts = {"home": "/site", "cuda": [toolkit], "stdcxx": "", "glibcxx": ""}
    assert loaded.evaluate_loaded(facts, NO_CLAIMS).observed == "1 CUDA libraries, all from /usr/local/cuda/lib64"
    assert loaded.evaluate_loaded({**facts, "cuda": [own, toolkit]}, NO_CLAIMS).status is Status.FAIL
    assert loaded.evaluate_loaded(facts, CLAIMS).status is Status.FAIL


NVCC = {"path": "/usr/bin/nvcc", "release": "99.8", "torch_cuda": "99.8", "archs": "9.0"}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, Status.PASS, "nvcc 99.8"),
        ({"path": "", "release": ""}, Status.PASS, "this is a runtime image"),
        ({"release": "98.1"}, Status.FAIL, "nvcc is of CUDA 98.1, torch was built with 99.8"),
        ({"release": ""}, Status.FAIL, "does not run"),
        ({"archs": ""}, Status.FAIL, "IndexError"),
    ],
)
def test_nvcc_is_told_from_torchs_cuda(changes: dict[str, Any], status: Status, words: str) -> None:
    """Absent is right for a runtime image; another version than torch's is not."""
    verdict = process.evaluate_nvcc({**NVCC, **changes}, CLAIMS)
    assert verdict.status is status
    assert words in verdict.observed


def test_the_arch_list_to_export_is_written_out() -> None:
    """The remedy can be pasted."""
    assert "TORCH_CUDA_ARCH_LIST='8.0;9.0'" in process.evaluate_nvcc({**NVCC, "archs": None}, CLAIMS).remedy


@pytest.mark.parametrize(
    ("code", "status", "owner", "words"),
    [
        ("", Status.PASS, None, ""),
        ("EPERM", Status.FAIL, Owner.HOST, "20.10.10"),
        ("EAGAIN", Status.FAIL, Owner.START, "--pids-limit"),
    ],
)
def test_why_threads_are_refused_is_told_apart(code: str, status: Status, owner: Owner | None, words: str) -> None:
    """EPERM is an old Docker, EAGAIN a limit."""
    verdict = process.evaluate_threads({"code": code, "pids": "9"}, CLAIMS)
    assert (verdict.status, verdict.owner) == (status, owner)
    assert words in verdict.remedy
