"""Services that end: when they are started again, and when the container gives up."""

from __future__ import annotations

from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.services import scan_folder, supervise
from entrypoints.gpuyard_start.services.supervise import Ended


def test_waits_grow_and_stay_bounded() -> None:
    """The first restart is at once, and nobody waits for minutes."""
    assert [supervise.wait_before(n) for n in range(1, 8)] == [0, 1, 2, 4, 8, 8, 8]


def test_old_failures_do_not_count() -> None:
    """A service that fails once a day never ends the container."""
    assert supervise.recent([0.0, 900.0, 999.0, 2000.0], 1000.0) == [900.0, 999.0]


@pytest.mark.parametrize(
    ("ended", "code", "text"),
    [
        (Ended(1, 0), 1, "exit code 1"),
        (Ended(supervise.KILLED, 9), 137, "killed by signal 9"),
        (Ended(0, 0), 1, "exit code 0"),
    ],
)
def test_the_containers_code_is_never_zero_after_a_failure(ended: Ended, code: int, text: str) -> None:
    """A signal gives the code that shells give."""
    assert (ended.exit_code, str(ended)) == (code, text)


def test_the_fifth_failure_ends_the_container_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The supervisor is told to stop, and what it will exit with is written down."""
    scan = scan_folder.make_scan_folder(tmp_path, fatal=True)
    monkeypatch.chdir(scan_folder.add(scan, "ssh"))
    monkeypatch.setattr(supervise, "rest", lambda *_: None)
    monkeypatch.setattr(supervise, "wanted_up", lambda _: True)
    told: list[list[str]] = []
    monkeypatch.setattr("subprocess.run", lambda command, **_: told.append(command))
    codes = [supervise.finish(["255", "0", "ssh"], "text") for _ in range(supervise.TOO_MANY)]
    assert codes == [0, 0, 0, 0, 125]
    assert told == [["/usr/bin/s6-svscanctl", "-t", str(scan)]]
    assert "ssh failed 5 times within 120 s, last with exit code 255" in capfd.readouterr().err
    monkeypatch.chdir(scan)
    assert supervise.ended() == 255


def test_a_users_command_outlives_a_service_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A training of days is not ended because Jupyter is broken."""
    scan = scan_folder.make_scan_folder(tmp_path, fatal=False)
    monkeypatch.chdir(scan_folder.add(scan, "jupyter"))
    monkeypatch.setattr(supervise, "rest", lambda *_: None)
    monkeypatch.setattr(supervise, "wanted_up", lambda _: True)
    for _ in range(supervise.TOO_MANY):
        supervise.finish(["1", "0", "jupyter"], "text")
    assert "it stays off, your command goes on" in capfd.readouterr().err
    assert not (tmp_path / "verdict").exists()


def test_a_stop_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that ends because the container is stopped is neither counted nor waited for."""
    scan = scan_folder.make_scan_folder(tmp_path, fatal=True)
    folder = scan_folder.add(scan, "ssh")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(supervise, "wanted_up", lambda _: False)
    assert supervise.finish([str(supervise.KILLED), "9", "ssh"], "text") == 0
    assert not (folder / "failures.json").exists()


def test_the_end_removes_secrets_and_leaves_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that had to be put beside the start's files keeps what the user wrote into it."""
    scan = scan_folder.make_scan_folder(tmp_path, fatal=True)
    scan_folder.add_jupyter(scan, {"IdentityProvider": {"token": "s3cret"}})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes").write_text("mine")
    monkeypatch.chdir(scan)
    assert supervise.ended() == 0
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert (tmp_path / "home" / "notes").read_text() == "mine"


def test_settings_with_secrets_are_for_their_user_only(tmp_path: Path) -> None:
    """No other user reads the token."""
    scan = scan_folder.make_scan_folder(tmp_path, fatal=True)
    scan_folder.add_jupyter(scan, {})
    assert (scan / "jupyter" / "settings.json").stat().st_mode & 0o777 == 0o600
    assert (scan / "jupyter").stat().st_mode & 0o777 == 0o700


def test_what_a_killed_start_left_is_replaced(tmp_path: Path) -> None:
    """docker restart after a kill finds the old folder and starts afresh."""
    scan_folder.add(scan_folder.make_scan_folder(tmp_path, fatal=True), "ssh")
    assert not (scan_folder.make_scan_folder(tmp_path, fatal=True) / "ssh").exists()


def test_a_second_start_beside_running_services_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files are not pulled from under them."""
    monkeypatch.setattr(scan_folder, "running", lambda _: True)
    with pytest.raises(Refusal) as refusal:
        scan_folder.make_scan_folder(tmp_path, fatal=True)
    assert refusal.value.id == "services-running"


@pytest.mark.parametrize(("alone", "said"), [(True, "the container ends"), (False, "your command goes on")])
def test_a_supervisor_that_was_killed_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], alone: bool, said: str
) -> None:
    """By whom nobody watches; the secrets go where the container ends."""
    scan = scan_folder.make_scan_folder(tmp_path, fatal=alone)
    scan_folder.add_jupyter(scan, {"PasswordIdentityProvider": {"token": "s3cret"}})
    assert supervise.lost(scan, 9, "quiet") == 137
    told = capfd.readouterr().err
    assert "ERROR start[supervisor-killed]: " in told
    assert "signal 9" in told
    assert said in told
    assert scan.exists() is not alone
