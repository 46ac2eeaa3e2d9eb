"""Packages that somebody installed, moved, swapped or removed in an image: what passes, what fails, and whose it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.images.index import wheel
from tests.verify.suite import fake, finding
from verify.checks.image import installed, packages
from verify.engine.owners import settle_owners
from verify.engine.run import run_checks
from verify.model import Claims, Finding, Level, Owner, Status

LOCK = Claims({"packages": {"torch": "2.0", "numpy": "2.5", "Pillow": "12.0", "nvidia-cublas-cu99": "1"}}, {})
BUILT, LATER = 1_000, 9_000
"""When the image was built, and when somebody installed something."""


def facts(*broken: str, **changes: str | None) -> dict[str, Any]:
    """What a probe finds in the image; a changed or added package has a later time, None removes it."""
    image = {"torch": "2.0", "numpy": "2.5", "pillow": "12.0", "nvidia-cublas-cu99": "1"}
    have = {**image, **{name.replace("_", "-"): version for name, version in changes.items()}}
    here = {name: version for name, version in have.items() if version is not None}
    times = {name: BUILT if image.get(name) == version else LATER for name, version in here.items()}
    return {"installed": here, "times": times, "parser": True, "broken": list(broken)}


def test_an_untouched_image_has_no_later_package() -> None:
    """Also when all its times are of today."""
    assert packages.installed_later(facts(), LOCK) == {}
    assert packages.evaluate_lock(facts(), LOCK).status is Status.PASS
    assert packages.evaluate_strays(facts(), LOCK).status is Status.PASS


def test_what_a_user_installed_is_a_note() -> None:
    """The template's own CI requires this check: real requirements pass, and the report still lists them."""
    verdict = packages.evaluate_strays(facts(aiohttp="3.1", yarl="1.0"), LOCK)
    assert verdict.status is Status.PASS
    assert verdict.data["packages"] == ["aiohttp==3.1", "yarl==1.0"]
    assert "2 packages installed later" in verdict.observed


def test_what_the_image_itself_brought_unpinned_fails() -> None:
    """It carries the image's own time, so nobody installed it later."""
    seen = facts(stray="1.0", mine="2.0")
    seen["times"]["stray"] = BUILT
    verdict = packages.evaluate_strays(seen, LOCK)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.IMAGE)
    assert verdict.data["packages"] == ["stray==1.0"]
    assert "gpuyard lock" in verdict.remedy


def test_a_package_moved_with_its_requirements_met_is_a_note() -> None:
    """As gradio moves pillow. A requirement that is not met, but of other packages, does not change that."""
    for broken in ((), ("mine needs absent, which is missing",)):
        verdict = packages.evaluate_lock(facts(*broken, pillow="11.3"), LOCK)
        assert verdict.status is Status.PASS
        assert "pillow is 11.3 instead of 12.0" in verdict.observed


@pytest.mark.parametrize(
    "broken", ["matplotlib needs Pillow>=12, found 11.3", "pillow needs olefile, which is missing"]
)
def test_a_package_moved_against_a_requirement_fails(broken: str) -> None:
    """On either side of the requirement."""
    verdict = packages.evaluate_lock(facts(broken, pillow="11.3"), LOCK)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert broken in verdict.observed
    assert verdict.remedy.startswith("uv pip install --no-deps --reinstall pillow==12.0,")


@pytest.mark.parametrize("change", [{"torch": "2.1"}, {"torch": None}, {"nvidia_cublas_cu99": "2"}])
def test_swapping_torch_or_nvidia_fails_whatever_the_requirements_say(change: dict[str, str | None]) -> None:
    """And is owned by whoever installed it."""
    verdict = packages.evaluate_lock(facts(**change), LOCK)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)


def test_a_wrong_torch_of_the_images_own_build_is_the_images() -> None:
    """A tag that says one version over layers of another."""
    seen = facts(torch="2.1")
    seen["times"]["torch"] = BUILT
    assert packages.evaluate_lock(seen, LOCK).owner is Owner.IMAGE


def failing(check: str, group: str, owner: Owner = Owner.IMAGE) -> Finding:
    made = finding(check, Status.FAIL, owner=owner, remedy="rebuild the image")
    return Finding(made.check, group, Level.CPU, made.title, made.verdict, True, 0.0)


@pytest.mark.parametrize("change", [{"torch": "1.9"}, {"numpy": None}])
def test_consequences_of_a_swap_have_its_owner_and_its_remedy(change: dict[str, str | None]) -> None:
    """Those of the host, and those that are not about packages, stay as they are."""
    found = [
        failing("one-torch", "packages"),
        failing("numpy-bridge", "libraries"),
        failing("driver-files", "image"),
        failing("cuda-init", "driver", Owner.HOST),
        finding("matmul", Status.PASS),
    ]
    settled = {f.check: f.verdict for f in settle_owners(found, LOCK, lambda: facts(**change))}
    (name,) = change
    cause = packages.evaluate_lock(facts("torchvision needs numpy, which is missing", **change), LOCK)
    for check in ("one-torch", "numpy-bridge"):
        assert (settled[check].owner, settled[check].remedy) == (cause.owner, cause.remedy)
        assert f"{name}=={packages.locked_versions(LOCK)[name]}" in settled[check].remedy
    assert settled["driver-files"].owner is Owner.IMAGE
    assert settled["cuda-init"].owner is Owner.HOST
    assert settled["matmul"].owner is None


def test_without_a_swap_the_image_keeps_its_faults() -> None:
    """Also beside packages that a user added; and nobody looks when nothing failed."""
    found = [failing("torch-import", "torch")]
    assert settle_owners(found, LOCK, lambda: facts(mine="1")) == found
    assert settle_owners([finding("matmul", Status.PASS)], LOCK, lambda: pytest.fail("looked")) != found


def test_a_run_without_the_lock_check_settles_owners_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify --only numpy-bridge` looks at the packages when it fails."""
    monkeypatch.setattr("verify.engine.run.probe_installed", lambda: facts(numpy=None))
    verdict = failing("x", "y").verdict
    broken = fake("numpy-bridge", lambda: {"ok": False}, group="libraries", evaluate=lambda _f, _c: verdict)
    (settled,) = run_checks([broken], set(), LOCK)
    assert settled.verdict.owner is Owner.START
    assert "numpy==2.5" in settled.verdict.remedy


def test_an_install_leaves_a_later_time_than_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv, for real, into a folder whose other package has an image's time."""
    site = tmp_path / "site-packages"
    old = site / "numpy-2.5.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 2.5\n")
    os.utime(old, (BUILT, BUILT))
    wheel(tmp_path, "mine", "1.0")
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "-q", "--no-index", "--offline", "mine"]
    command += ["--find-links", str(tmp_path), "--target", str(site), "--cache-dir", str(tmp_path / "cache")]
    subprocess.run(command, check=True)
    monkeypatch.setattr(sys, "path", [str(site)])
    found = installed.probe_installed()
    assert found["times"]["numpy"] == BUILT
    assert found["times"]["mine"] > LATER
    assert packages.installed_later(found, Claims({"packages": {"numpy": "2.5"}}, {})) == {
        "mine": "mine==1.0 was added"
    }


def test_a_cpu_build_of_the_locked_release_is_a_swap() -> None:
    """The index serves the CUDA build without a local version; ``+cpu`` is another build of the same release."""
    claims = Claims({**LOCK.image, "versions": {"torch": "2.0+cu998"}}, {})
    assert packages.evaluate_lock(facts(), claims).status is Status.PASS
    verdict = packages.evaluate_lock(facts(torch="2.0+cpu"), claims)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "torch==2.0" in verdict.remedy
