"""Every way to say who the container is, with files of the user's in every mount: nothing of theirs is touched."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.containers import Run

from ..conftest import KeyPair, host_port, log_of, wait_for

pytestmark = pytest.mark.image
PLACES = ("/workspace", "/mnt/data", "/mnt/models", "/home/trainer", "/home/trainer/.cache", "/var/lib/gpuyard/ssh")


@dataclass(frozen=True)
class Mode:
    """One way to start, and what 'id' says then."""

    name: str
    said: str
    options: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    own_home: bool = True


MODES = (
    Mode("default", "1000:1000 trainer"),
    Mode("user", "4321:4321 uid4321", {"user": "4321:4321"}),
    Mode("user-group-0", "12345:0 uid12345", {"user": "12345:0"}),
    Mode("root", "0:0 root", {"user": "0"}, {"GPUYARD_ALLOW_ROOT": "yes"}),
    Mode("uid", "1005:1000 trainer", {"user": "root"}, {"GPUYARD_UID": "1005"}, own_home=False),
    Mode("uid-gid", "1005:1006 trainer", {"user": "root"}, {"NB_UID": "1005", "NB_GID": "1006"}, own_home=False),
    Mode("taken-group", "1005:100 trainer", {"user": "root"}, {"NB_UID": "1005", "NB_GID": "100"}, own_home=False),
    Mode("name", "1000:1000 alice", {"user": "root"}, {"NB_USER": "alice"}, own_home=False),
    Mode("all", "1005:1006 alice", {"user": "root"}, {"NB_USER": "alice", "NB_UID": "1005", "NB_GID": "1006"}),
    Mode(
        "read-only",
        "1005:1000 uid1005",
        {"user": "root", "read_only": True, "tmpfs": {"/tmp": "", "/run": ""}},
        {"GPUYARD_UID": "1005"},
    ),
)
WHO = 'echo "$(id -u):$(id -g) $(whoami 2>/dev/null || echo -)"; touch "$HOME/x" && echo home'


def fingerprint(top: Path) -> list[tuple[object, ...]]:
    """Everything about a tree that a start could change: inode, owner, mode, times of content, content."""
    found: list[tuple[object, ...]] = []
    for path in (top, *sorted(top.rglob("*"))):
        stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found.append((str(path), stat.st_ino, stat.st_uid, stat.st_gid, stat.st_mode, stat.st_mtime_ns, content))
    return found


@pytest.fixture
def mounted(tmp_path: Path) -> dict[str, dict[str, str]]:
    """A folder for every place, each with files of several owners and modes, links among them."""
    volumes = {}
    for number, place in enumerate(PLACES):
        folder = tmp_path / f"mount{number}"
        (folder / "deep").mkdir(parents=True)
        for owner, mode in ((0, 0o600), (1000, 0o644), (1005, 0o4755), (54321, 0o000)):
            file = folder / "deep" / f"sentinel-{owner}"
            file.write_text(f"{place} {owner}")
            os.chown(file, owner, owner)
            file.chmod(mode)
        (folder / "link").symlink_to("deep/sentinel-0")
        os.chown(folder, 1000, 1000)
        volumes[str(folder)] = {"bind": place, "mode": "rw"}
    # Docker makes the mount point of a mount inside a mount: it is made here, so that the start is judged alone.
    (tmp_path / "mount3" / ".cache").mkdir()
    return volumes


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_no_mode_touches_what_was_mounted(run: Run, mounted: dict[str, dict[str, str]], mode: Mode) -> None:
    """Inode, owner, mode and content of every file are what they were."""
    before = {folder: fingerprint(Path(folder)) for folder in mounted}
    ended = run("sh", "-c", WHO.split(";")[0], volumes=mounted, environment=mode.env, **mode.options)
    assert (ended.code, ended.stdout) == (0, f"{mode.said}\n")
    assert {folder: fingerprint(Path(folder)) for folder in mounted} == before


def test_services_touch_nothing_either(run_container: Any, key: KeyPair, mounted: dict[str, dict[str, str]]) -> None:
    """With another uid and with SSH on. (A folder for host keys would get one.)"""
    mounted = {folder: place for folder, place in mounted.items() if not place["bind"].startswith("/var")}
    before = {folder: fingerprint(Path(folder)) for folder in mounted}
    env = {"GPUYARD_UID": "1005", "SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    with run_container(None, user="root", volumes=mounted, environment=env) as container:
        wait_for(lambda: "Server listening" in log_of(container))
    assert {folder: fingerprint(Path(folder)) for folder in mounted} == before


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.own_home], ids=lambda mode: mode.name)
def test_every_kind_of_mode_has_a_name_and_a_home(run: Run, mode: Mode) -> None:
    """Where none is mounted."""
    ended = run("sh", "-c", WHO, environment=mode.env, **mode.options)
    assert (ended.code, ended.stdout) == (0, f"{mode.said}\nhome\n")


def test_root_is_given_up_for_good(run: Run) -> None:
    """No capability is left to come back by, and standard error can still be opened by name."""
    script = (
        "grep -E 'NoNewPrivs|Cap(Prm|Eff|Bnd)' /proc/self/status; echo told > /dev/stderr; id -G; ls -ldn /opt/venv"
    )
    ended = run("sh", "-c", script, user="root", group_add=["44"], environment={"GPUYARD_UID": "1005"})
    words = ended.stdout.split()
    assert words[:8] == ["CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert words[8:10] == ["1000", "44"]
    assert "1005" in words[10:]
    assert "told" in ended.stderr


def test_new_packages_can_be_installed_after_the_change(run: Run) -> None:
    """The environment's folders belong to the new user; its files are not copied for that."""
    script = (
        "import sysconfig, pathlib; p = pathlib.Path(sysconfig.get_path('purelib'), 'x.py'); p.touch(); print('ok')"
    )
    assert run("python", "-c", script, user="root", environment={"GPUYARD_UID": "1005"}).stdout == "ok\n"


def test_a_root_that_may_not_change_is_told_the_options(run: Run) -> None:
    """Or to leave root out, which needs none."""
    ended = run("true", user="root", environment={"GPUYARD_UID": "1005"}, cap_drop=["ALL"])
    assert (ended.code, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert "ERROR start[capabilities-missing]: " in ended.stderr
    assert "--user 1005:1000" in ended.stderr


@pytest.mark.parametrize(
    ("owner", "options", "env", "advice"),
    [
        (1005, {}, {}, "start with --user 1005:1005, or with --user root -e GPUYARD_UID=1005 -e GPUYARD_GID=1005"),
        (1005, {"user": "root"}, {"GPUYARD_UID": "1006"}, "start with -e GPUYARD_UID=1005 -e GPUYARD_GID=1005"),
        (0, {}, {}, "add --user root -e GPUYARD_CHOWN=/mnt/data"),
    ],
)
def test_a_mount_of_someone_else_gets_one_line(
    run: Run, tmp_path: Path, owner: int, options: dict[str, Any], env: dict[str, str], advice: str
) -> None:
    """Who owns it, who we are, which option to use; the command runs all the same."""
    os.chown(tmp_path, owner, owner)
    tmp_path.chmod(0o755)
    volumes = {str(tmp_path): {"bind": "/mnt/data", "mode": "rw"}}
    ended = run("true", volumes=volumes, environment=env, **options)
    assert ended.code == 0
    lines = [line for line in ended.stderr.splitlines() if "/mnt/data" in line]
    assert len(lines) == 1
    assert f"it belongs to {owner}:{owner}; " in lines[0]
    assert lines[0].endswith(advice)
    assert tmp_path.stat().st_uid == owner


def test_a_mount_is_given_away_only_when_named(run: Run, tmp_path: Path) -> None:
    """The folder itself; what lies in it keeps its owner."""
    (tmp_path / "file").touch()
    volumes = {str(tmp_path): {"bind": "/mnt/data", "mode": "rw"}}
    env = {"GPUYARD_UID": "1005", "GPUYARD_CHOWN": "/mnt/data"}
    assert run("touch", "/mnt/data/mine", user="root", volumes=volumes, environment=env).code == 0
    owners = [path.stat().st_uid for path in (tmp_path, tmp_path / "mine", tmp_path / "file")]
    assert owners == [1005, 1005, 0]


@pytest.mark.parametrize("named", ["/workspace/l/ssh", "/workspace/l", "/workspace/deep/../l/ssh"])
def test_a_volumes_link_gives_nothing_of_the_image_away(run: Run, tmp_path: Path, named: str) -> None:
    """The start is refused, and names the link."""
    (tmp_path / "l").symlink_to("/etc")
    volumes = {str(tmp_path): {"bind": "/workspace", "mode": "rw"}}
    ended = run("true", user="root", volumes=volumes, environment={"GPUYARD_CHOWN": named})
    assert ended.code == 2
    assert "ERROR start[chown-link]: " in ended.stderr
    assert "/workspace/l " in ended.stderr


def test_a_container_that_became_someone_else_is_healthy_and_starts_again(run_container: Any, key: KeyPair) -> None:
    """The health check runs as root and still finds the user's services; a second start finds the change made.

    PATH and libraries are those that they were: nothing like sudo stands between.
    """
    env = {"GPUYARD_UID": "1005", "NB_USER": "alice", "SSH_PUBLIC_KEY": key.public, "GPUYARD_SERVICES": "ssh"}
    env["LD_LIBRARY_PATH"] = "/kept"
    with run_container(None, user="root", environment=env, ports={"2222/tcp": ("127.0.0.1", None)}) as container:
        for _ in range(2):
            wait_for(lambda: container.exec_run("/opt/gpuyard/entrypoints/health").output == b"ssh answer\n")
            users = container.exec_run("ps -eo uid=,comm=").output.decode().split("\n")
            assert {line.split()[0] for line in users if "tini" not in line and "ps" not in line and line} == {"1005"}
            assert "log in as alice" in log_of(container)
            look = key.ssh(host_port(container, 2222), "command -v python; echo $LD_LIBRARY_PATH", user="alice")
            assert subprocess.run(look, capture_output=True, text=True, timeout=30, check=True).stdout.split() == [
                "/opt/venv/bin/python",
                "/kept",
            ]
            container.restart(timeout=5)
