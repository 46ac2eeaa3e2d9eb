"""The user's own steps of a start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.additions import hooks
from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.log import Log


def hook(place: Path, name: str, body: str = "exit 0", mode: int = 0o755) -> Path:
    """A hook in a place's start.d."""
    folder = place / hooks.START
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(mode)
    return file


def test_hooks_of_both_places_run_in_the_order_of_their_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What they print goes to standard error; each is logged with its time."""
    for place, name in (("b", "10-one.sh"), ("a", "20-two.py"), ("b", "30-three.sh")):
        hook(tmp_path / place, name, f"echo said-{name}")
    found = hooks.find(hooks.START, (tmp_path / "a", tmp_path / "b"))
    assert [path.name for path in found] == ["10-one.sh", "20-two.py", "30-three.sh"]
    hooks.run(found, {"PATH": "/usr/bin:/bin"}, Log())
    out, err = capfd.readouterr()
    assert out == ""
    assert err.index("said-10-one.sh") < err.index("said-20-two.py") < err.index("said-30-three.sh")
    assert "20-two.py succeeded after 0." in err


def test_a_hook_that_fails_ends_the_start_with_its_code(tmp_path: Path) -> None:
    """By name; those after it do not run."""
    hook(tmp_path, "10-fails.sh", "exit 7")
    hook(tmp_path, "20-never.sh", f"touch {tmp_path}/ran")
    with pytest.raises(Refusal) as refusal:
        hooks.run(hooks.find(hooks.START, (tmp_path,)), {}, Log())
    assert refusal.value.id == "hook-failed"
    assert "10-fails.sh" in str(refusal.value)
    assert refusal.value.code == 7
    assert not (tmp_path / "ran").exists()


def test_an_optional_hook_may_fail(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is told, and the next one runs."""
    hook(tmp_path, "10-fails.sh.optional", "kill -9 $$")
    hook(tmp_path, "20-runs.sh", f"/usr/bin/touch {tmp_path}/ran")
    hooks.run(hooks.find(hooks.START, (tmp_path,)), {}, Log())
    told = capfd.readouterr().err
    assert "WARNING start[hook-optional-failed]: " in told
    assert "signal 9" in told
    assert (tmp_path / "ran").exists()


def test_a_hook_that_is_no_program_ends_the_start(tmp_path: Path) -> None:
    """Executable, but without a first line that names a program."""
    hook(tmp_path, "10-x.sh").write_bytes(b"\x00\x01")
    with pytest.raises(Refusal) as refusal:
        hooks.run(hooks.find(hooks.START, (tmp_path,)), {}, Log())
    assert (refusal.value.id, refusal.value.code) == ("hook-failed", 126)


@pytest.mark.parametrize(
    ("name", "mode"),
    [("10-x.sh", 0o644), ("10-x.sh.optional", 0o644), ("x.sh", 0o755), ("10-x.sh~", 0o755), ("10-x.rb", 0o755)],
)
def test_what_is_no_hook_is_refused_before_anything_runs(tmp_path: Path, name: str, mode: int) -> None:
    """A step that silently does not happen would be found out much later."""
    hook(tmp_path, "00-first.sh")
    hook(tmp_path, name, mode=mode)
    with pytest.raises(Refusal) as refusal:
        hooks.find(hooks.START, (tmp_path,))
    assert refusal.value.id == "hook-unusable"
    assert name in str(refusal.value)


def test_a_folder_with_a_hooks_name_is_refused(tmp_path: Path) -> None:
    """Docker makes one for a mount whose file is missing."""
    (tmp_path / hooks.START / "10-x.sh").mkdir(parents=True)
    with pytest.raises(Refusal) as refusal:
        hooks.find(hooks.START, (tmp_path,))
    assert refusal.value.id == "hook-unusable"
    assert hooks.find(hooks.SETUP, (tmp_path, Path("/dev/null"))) == ()


@pytest.mark.skipif(os.getuid() != 0, reason="about what root runs")
def test_root_runs_no_hook_that_lies_elsewhere(tmp_path: Path) -> None:
    """A link to a program on a volume; one inside the folder, as Kubernetes makes them, is kept."""
    places = (tmp_path / "hooks",)
    for stage in (hooks.SETUP, hooks.START):
        (places[0] / stage).mkdir(parents=True)
    outside = hook(tmp_path / "volume", "10-x.sh")
    for stage in (hooks.SETUP, hooks.START):
        (places[0] / stage / "10-x.sh").symlink_to(outside)
    assert len(hooks.find(hooks.START, places)) == 1
    with pytest.raises(Refusal) as refusal:
        hooks.find(hooks.SETUP, places)
    assert refusal.value.id == "hook-outside"
    assert str(outside) in str(refusal.value)
    (places[0] / hooks.SETUP / "10-x.sh").unlink()
    (places[0] / "data").mkdir()
    outside.rename(places[0] / "data" / "10-x.sh")
    (places[0] / hooks.SETUP / "10-x.sh").symlink_to("../data/10-x.sh")
    assert len(hooks.find(hooks.SETUP, places)) == 1
