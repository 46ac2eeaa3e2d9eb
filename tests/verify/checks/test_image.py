"""Claims against reality: each check of the image, right and wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.verify.suite import CLAIMS, NO_CLAIMS
from verify.checks.image import environment, installed, packages, variables
from verify.checks.image.torch_files import _assignments, torch_folders
from verify.model import Owner, Status, Verdict

P, F = Status.PASS, Status.FAIL
GOOD_TORCH = {"__version__": "9.9.9+cu998", "cuda": "99.8"}
GOOD = {"torch": "9.9.9", "torchvision": "8.8.8", "torchaudio": "9.9.9", "some-pkg": "1.2"}


def is_failure(verdict: Verdict, *words: str) -> bool:
    """Whether it is a whole failure: words, a remedy and an owner."""
    assert verdict.status is F, verdict
    assert verdict.remedy
    assert verdict.owner
    return all(word in verdict.observed + verdict.remedy for word in words)


def test_python_is_compared_as_a_series() -> None:
    """Another minor, or another python on PATH than the suite's own, fails."""
    good = {"version": "3.99.1", "prefix": "/opt/venv", "on_path": "/opt/venv"}
    assert environment.evaluate_python(good, CLAIMS).status is P
    assert is_failure(environment.evaluate_python({**good, "version": "3.9.1"}, CLAIMS), "Python 3.9.1")
    assert is_failure(environment.evaluate_python({**good, "on_path": "/usr"}, CLAIMS), "/usr")
    assert environment.evaluate_python({**good, "on_path": "/workspace/.venv", "over": True}, CLAIMS).status is P


def test_an_environment_over_the_images_is_told_from_another_one(tmp_path: Path) -> None:
    """By the file that the start puts there; other environments shadow the image's torch, or lack it."""
    site = tmp_path / "lib" / "python3.13" / "site-packages"
    site.mkdir(parents=True)
    assert not environment.lies_over(tmp_path, "/opt/venv")
    (site / "other.pth").write_text("/somewhere/else\n")
    assert not environment.lies_over(tmp_path, "/opt/venv")
    (site / "image.pth").write_text("import site; site.addsitedir('/opt/venv/lib/python3.13/site-packages')\n")
    assert environment.lies_over(tmp_path, "/opt/venv")


@pytest.mark.parametrize(
    ("folders", "file", "words"),
    [
        ([], {}, "no torch"),
        (["/a/torch", "/b/torch"], GOOD_TORCH, "2 torch packages"),
        (["/a/torch"], {"__version__": "9.9.9+cpu", "cuda": None}, "CPU build"),
        (["/a/torch"], {"__version__": "9.9.9+cu997", "cuda": "99.7"}, "CUDA 99.7"),
    ],
)
def test_one_torch_built_for_the_claimed_cuda(folders: list[str], file: dict[str, Any], words: str) -> None:
    """None, two, a CPU build and another CUDA fail; the right one passes and shows its version."""
    assert is_failure(environment.evaluate_one_torch({"folders": folders, "version_file": file}, CLAIMS), words)
    good = environment.evaluate_one_torch({"folders": ["/a/torch"], "version_file": GOOD_TORCH}, NO_CLAIMS)
    assert (good.status, good.observed) == (P, "torch 9.9.9+cu998, built for CUDA 99.8")


def test_torch_is_found_in_every_folder_of_the_path(tmp_path: Path) -> None:
    """Two packages on the search path are two, one reached twice is one."""
    for name in ("a", "b"):
        (tmp_path / name / "torch").mkdir(parents=True)
        (tmp_path / name / "torch" / "__init__.py").touch()
    search = [str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "a")]
    assert len(torch_folders(search)) == 2
    assert _assignments("from x import y\ncuda: str = '99.8'\nhip = None\n__version__ = '9'\n")["cuda"] == "99.8"


def test_a_user_site_on_the_path_fails() -> None:
    """The home's packages must not come first, wherever they come from."""
    facts = {"enabled": True, "on_path": True, "folder": "/home/u/.local", "pythonpath": "", "shadows": []}
    assert is_failure(environment.evaluate_user_site(facts, CLAIMS), "/home/u/.local", "PYTHONNOUSERSITE")
    assert environment.evaluate_user_site({**facts, "on_path": False}, CLAIMS).status is P


@pytest.mark.parametrize("variable", ["PYTHONPATH", "GPUYARD_USER_PYTHONPATH"])
def test_a_torch_by_pythonpath_fails(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the user set it, or as the image's command hands it over; other packages there are the user's own."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv(variable, f"{tmp_path}:/nowhere")
    (tmp_path / "mine").mkdir()
    facts = {**environment.probe_user_site(), "on_path": False}
    assert environment.evaluate_user_site(facts, CLAIMS).status is P
    assert str(tmp_path) in environment.evaluate_user_site(facts, CLAIMS).observed
    (tmp_path / "torch").mkdir()
    facts = {**environment.probe_user_site(), "on_path": False}
    assert is_failure(environment.evaluate_user_site(facts, CLAIMS), f"{tmp_path}/torch", "PYTHONPATH")


def test_driver_files_are_the_images_unless_mounted(tmp_path: Path) -> None:
    """A baked library and program are found, a mounted one and look-alikes are not counted."""
    for name in ("libcuda.so.999.1", "libnvidia-ml.so.1", "nvidia-smi", "libcudart.so.9", "libnvidia.txt"):
        (tmp_path / name).touch()
    (tmp_path / "libcuda.so.1").symlink_to("libcuda.so.999.1")
    (tmp_path / "libcuda.so").symlink_to("nowhere")
    mounted = str(tmp_path / "libnvidia-ml.so.1")
    files = environment.driver_files([tmp_path, tmp_path / "none"], [mounted])
    assert {Path(file).name: bool(mount) for file, mount in files.items()} == {
        "libcuda.so.999.1": False,
        "libnvidia-ml.so.1": True,
        "nvidia-smi": False,
    }
    verdict = environment.evaluate_driver_files({"files": files}, CLAIMS)
    assert is_failure(verdict, "libcuda.so.999.1", "nvidia-smi", "dpkg -S")
    assert verdict.owner is Owner.IMAGE
    assert environment.evaluate_driver_files({"files": {mounted: mounted}}, CLAIMS).status is P


@pytest.mark.parametrize(
    ("facts", "owner"),
    [
        ({"variable": "/usr/local/cuda/lib64/stubs", "folders": [], "cached": []}, Owner.START),
        ({"variable": "", "folders": ["/usr/local/cuda/compat"], "cached": []}, Owner.IMAGE),
        ({"variable": "", "folders": [], "cached": ["/opt/x/stubs/libcuda.so"]}, Owner.IMAGE),
    ],
)
def test_stubs_and_compat_on_the_loaders_path_fail(facts: dict[str, Any], owner: Owner) -> None:
    """By variable it is the caller's fault, by ld.so.conf or cache the image's."""
    verdict = environment.evaluate_loader_path(facts, CLAIMS)
    assert is_failure(verdict)
    assert verdict.owner is owner


def test_a_clean_loaders_path_passes() -> None:
    """A folder that merely contains the word does not count."""
    facts = {"variable": "/opt/compatible/lib", "folders": ["/usr/lib"], "cached": []}
    assert environment.evaluate_loader_path(facts, CLAIMS).status is P


def test_tuning_variables_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of NCCL, OpenMP and CUDA count; a cache's folder does not."""
    for name in list(variables.probe_tuning()["set"]):
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/tmp/x")
    assert variables.evaluate_tuning(variables.probe_tuning(), CLAIMS).status is P
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert is_failure(
        variables.evaluate_tuning(variables.probe_tuning(), CLAIMS), "NCCL_P2P_DISABLE", "CUDA_LAUNCH_BLOCKING"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"NVIDIA_DRIVER_CAPABILITIES": "utility"},
        {"PYTORCH_VERSION": "9.9.8"},
        {"missing": ["PIP_CONSTRAINT"], "PIP_CONSTRAINT": ""},
    ],
)
def test_variables_that_lie_fail(change: dict[str, Any]) -> None:
    """Each of the image's variables is compared with the claims."""
    good = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility", "PYTORCH_VERSION": "9.9.9", "missing": []}
    assert variables.evaluate_environment(good, CLAIMS).status is P
    assert is_failure(variables.evaluate_environment({**good, **change}, CLAIMS), next(iter(change.values()))[0][:3])


def test_versions_are_compared_with_the_claims() -> None:
    """A torch of another build, and a torchvision that is missing, are named with the repair."""
    facts = {"installed": GOOD, "version_file": GOOD_TORCH}
    assert packages.evaluate_versions(facts, CLAIMS).status is P
    swapped = {**facts, "version_file": {"__version__": "9.9.9+cpu"}}
    assert is_failure(packages.evaluate_versions(swapped, CLAIMS), "torch is 9.9.9+cpu", "torch==9.9.9")
    without = {**facts, "installed": {"torch": "9.9.9", "torchaudio": "9.9.9"}}
    assert is_failure(packages.evaluate_versions(without, CLAIMS), "torchvision is missing")


def test_the_whole_lock_is_compared() -> None:
    """Names are normalised; a changed and a missing package are named with the command."""
    assert packages.evaluate_lock({"installed": GOOD}, CLAIMS).status is P
    changed = packages.evaluate_lock({"installed": {"torch": "9.9.10"}}, CLAIMS)
    assert is_failure(changed, "2 of 2", "some-pkg is missing instead of 1.2", "torch==9.9.9")


def test_requirements_are_read_with_their_markers() -> None:
    """A missing and a wrong one are named; extras and other systems do not count."""
    needs = [
        ("app", "torch>=9.9.10"),
        ("app", "absent"),
        ("app", "other ; sys_platform == 'win32'"),
        ("app", "plus ; extra == 'dev'"),
        ("app", "Some.Pkg<2"),
    ]
    broken = installed.broken_requirements(needs, GOOD, installed.requirement_parser())
    assert broken == ["app needs absent, which is missing", "app needs torch>=9.9.10, found 9.9.9"]
    facts = {"parser": True, "broken": broken, "count": 4}
    assert is_failure(packages.evaluate_requirements(facts, CLAIMS), "2 not met")
    assert packages.evaluate_requirements({**facts, "broken": []}, CLAIMS).status is P
    assert packages.evaluate_requirements({**facts, "parser": False}, CLAIMS).status is Status.UNKNOWN


def test_other_packages_requirements_are_no_link_in_an_image_that_is_not_ours() -> None:
    """They are listed there and do not fail; those between torch and its libraries fail everywhere."""
    other = {"parser": True, "count": 4, "broken": ["torchmetrics-like needs absent, which is missing"]}
    assert is_failure(packages.evaluate_requirements(other, CLAIMS), "1 not met")
    verdict = packages.evaluate_requirements(other, NO_CLAIMS)
    assert verdict.status is P
    assert "1 not met, none of them torch's: torchmetrics-like needs absent" in verdict.observed
    for broken in ("torch needs nvidia-x-cu99==1, found 2", "app needs torch<9, found 9.9.9"):
        assert is_failure(packages.evaluate_requirements({**other, "broken": [broken]}, NO_CLAIMS), broken)


def test_nothing_to_read_needs_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare Python without packages has no unmet requirement; with packages and no parser nobody knows."""
    monkeypatch.setattr(installed, "requirement_parser", lambda: None)
    monkeypatch.setattr(installed, "distributions", lambda: iter(()))
    assert packages.evaluate_requirements(installed.probe_packages(), NO_CLAIMS).status is P
    monkeypatch.undo()
    monkeypatch.setattr(installed, "requirement_parser", lambda: None)
    assert packages.evaluate_requirements(installed.probe_packages(), NO_CLAIMS).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("have", "majors"),
    [
        ({"nvidia-x-cu98": "1", "nvidia-y-cu99": "1"}, ["98", "99"]),
        ({"nvidia-x-cu98": "1", "nvidia-cuda-runtime": "99.1"}, ["98", "99"]),
        ({"nvidia-x-cu99": "7.7", "nvidia-cublas": "13.0", "nvidia-cuda-runtime": "99.1"}, ["99"]),
    ],
)
def test_cuda_majors_are_counted(have: dict[str, str], majors: list[str]) -> None:
    """Suffixes count, and the runtime's own version where names have none; a library's own version does not."""
    assert sorted(packages.cuda_majors(have)) == majors
    verdict = packages.evaluate_cuda_majors({"installed": have}, CLAIMS)
    assert verdict.status is (P if len(majors) == 1 else F)
    assert packages.evaluate_cuda_majors({"installed": {}}, CLAIMS).status is F
    assert packages.evaluate_cuda_majors({"installed": {}}, NO_CLAIMS).status is P
