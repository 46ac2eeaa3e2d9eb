"""Variants for other CUDAs and plug-ins for absent libraries, as user-installed packages bring them, are not faults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.verify.checks.test_native import library
from tests.verify.suite import CLAIMS
from verify.checks.image import native
from verify.model import Owner, Status, Verdict

NEEDS = "-Wl,--no-as-needed"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty site-packages that this Python and its children search."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(native, "packages", lambda: [str(folder)])
    return folder


def lacking(path: Path, name: str) -> None:
    """A library that needs another one which is nowhere."""
    other = library(path.parent / name, f"-Wl,-soname,{name}")
    library(path, NEEDS, str(other), f"-Wl,-rpath,{path.parent}/nowhere")
    other.unlink()


def judge() -> Verdict:
    return native.evaluate_needed(native.probe_compiled(), CLAIMS)


def package(folder: Path, code: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(code)
    return folder


def test_variants_for_other_cudas_are_not_faults(site: Path) -> None:
    """As bitsandbytes brings one for every CUDA and ROCm; the one that fits lacks nothing."""
    folder = package(site / "bits")
    for variant, missing in (("cuda118", "libcudart.so.88"), ("cuda97", "libcublas.so.97"), ("rocm62", "libhip.so.6")):
        lacking(folder / f"libbits_{variant}.so", missing)
    assert judge().status is Status.FAIL, "none of them fits"
    library(folder / "libbits_cuda99.so")
    verdict = judge()
    assert verdict.status is Status.PASS
    assert len(verdict.data["plugins"]) == 3


def test_a_plug_in_its_package_imports_without_is_not_a_fault(site: Path) -> None:
    """As cupy has one for cuTENSOR, which is imported where it is there."""
    code = "try:\n    import plug._tensor\nexcept ImportError:\n    pass\n"
    lacking(package(site / "plug", code) / "_tensor.so", "libcutensor.so.9")
    verdict = judge()
    assert verdict.status is Status.PASS
    assert "1 optional plug-ins and variants" in verdict.observed


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("import ctypes, pathlib\nctypes.CDLL(str(pathlib.Path(__file__).with_name('_core.so')))\n", "libgl.so.7"),
        ("", "libcudart.so.88"),
        ("", "libtorch_cuda.so"),
        ("", "libc10.so"),
    ],
)
def test_what_an_import_needs_and_what_another_cuda_built_is_a_fault(site: Path, code: str, missing: str) -> None:
    """The second kind also where the import works: it fails when it is first used. Who installed it owns it."""
    lacking(package(site / "ops", code) / "_core.so", missing)
    verdict = judge()
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert f"ops/_core.so needs {missing}" in verdict.observed


def test_a_locked_packages_lack_is_the_images(site: Path) -> None:
    """The records say which package brought the file."""
    lacking(package(site / "some_pkg") / "_C.so", "libcudart.so.88")
    info = site / "some_pkg-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Some_Pkg\nVersion: 1.2\n")
    (info / "RECORD").write_text("some_pkg/_C.so,,\nsome_pkg/__init__.py,,\n")
    assert judge().owner is Owner.IMAGE


def test_an_extension_without_a_package_has_no_import_that_works(site: Path) -> None:
    """A folder without __init__ imports as nothing, whatever its files lack."""
    (site / "cv").mkdir()
    lacking(site / "cv/cv.abi3.so", "libGL.so.77")
    assert "cv/cv.abi3.so needs libGL.so.77" in judge().observed


def test_an_import_that_hangs_is_a_doubt_that_counts(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for."""
    monkeypatch.setattr("verify.checks.image.optional.IMPORT_SECONDS", 0.2)
    lacking(package(site / "slow", "import time\ntime.sleep(60)\n") / "_C.so", "libother.so.7")
    assert judge().status is Status.FAIL


def test_a_fault_names_the_package_to_uninstall(site: Path) -> None:
    """With the name that its records give, so that the command works as printed."""
    lacking(package(site / "ops") / "_C.so", "libcudart.so.88")
    info = site / "fast_ops-3.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-ops\nVersion: 3.0\n")
    (info / "RECORD").write_text("ops/_C.so,,\nops/__init__.py,,\n")
    assert judge().remedy.endswith("uv pip uninstall fast-ops")


def test_a_second_copy_of_cuda_is_whoever_installed_it() -> None:
    """The image's own pair is the image's."""
    ours, theirs = "/s/some_pkg/libnccl.so.2", "/s/other/libnccl.so.2"
    for brought, owner in (("other 1.0", Owner.START), ("torch 9.9.9", Owner.IMAGE)):
        owners = {ours: "Some_Pkg 1.2", theirs: brought}
        copies = {"libnccl.so.2": [f"{path} ({name})" for path, name in owners.items()]}
        assert native.evaluate_copies({"owners": owners, "copies": copies}, CLAIMS).owner is owner
