"""What root does to a path never goes through a link, and never to another file than the one that was looked at."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from entrypoints.gpuyard_start import folder, settings, values
from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.user import mounts, names, nofollow, privileges, users

TRAINER = pwd.struct_passwd(("trainer", "x", 4000, 4000, "", "/home/trainer", "/bin/bash"))
as_root = pytest.mark.skipif(os.getuid() != 0, reason="gives files away, which only root may")


def owner(path: Path) -> int:
    """The owner of a path itself."""
    return path.lstat().st_uid


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A volume whose link leads to a folder of root's."""
    monkeypatch.setattr(users, "_MAY_BE_GIVEN", (tmp_path / "workspace",))
    (tmp_path / "etc" / "ssh").mkdir(parents=True)
    (tmp_path / "workspace" / "real" / "ssh").mkdir(parents=True)
    (tmp_path / "workspace" / "l").symlink_to(tmp_path / "etc")
    (tmp_path / "workspace" / "last").symlink_to(tmp_path / "etc" / "ssh")
    return tmp_path / "workspace"


@pytest.mark.parametrize("named", ["l", "l/ssh", "last", "real/../l/ssh"])
def test_a_folder_that_is_named_through_a_link_is_refused(volume: Path, named: str) -> None:
    """Wherever in the path the link stands."""
    with pytest.raises(Refusal) as refusal:
        users.target({settings.CHOWN.name: f"{volume}/{named}"}, 0, 0)
    assert refusal.value.id == "chown-link"
    assert users.target({settings.CHOWN.name: f"{volume}/real/ssh"}, 0, 0) is not None


def target(*give: Path) -> users.Target:
    """Whom root becomes."""
    return users.Target(4321, 4321, "trainer", TRAINER, give)


@as_root
def test_a_link_that_was_made_after_the_check_gives_nothing_away(volume: Path) -> None:
    """In the middle of the path or at its end; the folder itself is given."""
    linked, last, real = volume / "l" / "ssh", volume / "last", volume / "real" / "ssh"
    faults = privileges.give(target(linked, last, real), home=volume / "none")
    assert len(faults) == 2
    assert [owner(volume.parent / "etc" / "ssh"), owner(volume.parent / "etc"), owner(real)] == [0, 0, 4321]


@as_root
def test_a_link_in_the_home_is_given_itself_and_not_what_it_leads_to(tmp_path: Path) -> None:
    """Nor is anything that lies behind a link to a folder, or that is somebody else's."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (home / "sub").mkdir(parents=True)
    (home / "link").symlink_to(outside)
    (home / "sub" / "file").touch()
    (home / "roots").touch()
    for path in (home, home / "link", home / "sub", home / "sub" / "file", outside, outside / "deep"):
        os.chown(path, 4000, 4000, follow_symlinks=False)
    assert privileges.give(target(), home=home) == []
    given = {path.name for path in (home, *home.rglob("*")) if owner(path) == 4321}
    assert given == {"home", "sub", "file", "link"}
    assert [owner(outside), owner(outside / "deep")] == [4000, 4000]


@as_root
def test_a_home_behind_a_link_or_a_mount_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link above it; a mount in it."""
    home = tmp_path / "home"
    (home / "trainer" / "mount").mkdir(parents=True)
    for path in (home / "trainer", home / "trainer" / "mount"):
        os.chown(path, 4000, 4000)
    (tmp_path / "linked").symlink_to(home)
    assert privileges.to_give(target(), home=tmp_path / "linked" / "trainer") == ()
    monkeypatch.setattr(mounts, "points", lambda: frozenset({home / "trainer" / "mount"}))
    assert privileges.to_give(target(), home=home / "trainer") == (home / "trainer",)


def test_the_second_list_of_users_is_not_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user may put one there, and root writes the list."""
    (tmp_path / "etc").mkdir()
    monkeypatch.setattr(names, "PLACE", tmp_path / "users")
    names.PLACE.symlink_to(tmp_path / "etc")
    assert not names.give(1005, 1005, Path("/home/trainer"), Path("/bin/bash"))
    assert list((tmp_path / "etc").iterdir()) == []
    names.PLACE.unlink()
    assert names.give(1005, 1005, Path("/home/trainer"), Path("/bin/bash"))
    assert (names.PLACE / "passwd").read_text().startswith("uid1005:x:1005:1005:")
    assert (names.PLACE / "passwd").stat().st_mode & 0o777 == 0o644


@as_root
def test_a_file_of_roots_is_read_as_root_but_not_through_a_link(tmp_path: Path) -> None:
    """A key or a token in a mount that only root may read; a link of a volume leads nowhere."""
    secret, link = tmp_path / "token", tmp_path / "link"
    secret.write_text("s3cret")
    secret.chmod(0o600)
    link.symlink_to(secret)
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_mode & 0o005 != 0o005:
            place.chmod(place.stat().st_mode | 0o005)
    with privileges.acting_as(target()):
        assert values.read_file(secret) == b"s3cret"
        assert os.geteuid() == 4321
        with pytest.raises(OSError, match="symbolic link"):
            values.read_file(link)
        assert os.geteuid() == 4321


def test_a_path_is_opened_without_a_step_through_a_link(volume: Path) -> None:
    """In the middle it is an error; at the end the link itself is opened, unless a folder is asked for."""
    with nofollow.opened(volume / "real" / "ssh") as descriptor:
        assert os.fstat(descriptor).st_ino == (volume / "real" / "ssh").stat().st_ino
    with nofollow.opened(volume / "last") as descriptor:
        assert stat.S_ISLNK(os.fstat(descriptor).st_mode)
    for path, is_folder in ((volume / "l" / "ssh", False), (volume / "last", True)):
        with pytest.raises(OSError, match="Not a directory"), nofollow.opened(path, is_folder):
            pass


def test_a_file_that_is_not_a_regular_one_does_not_hang(tmp_path: Path) -> None:
    """A pipe without a writer reads as nothing."""
    os.mkfifo(tmp_path / "pipe")
    assert nofollow.read(tmp_path / "pipe") == b""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one place where a start's private folder may lie."""
    monkeypatch.setattr(folder, "_BASES", (tmp_path,))
    return tmp_path


@pytest.mark.parametrize("kind", [pytest.param("owner", marks=as_root), "mode", "link", "file"])
def test_only_a_folder_of_ours_that_is_closed_to_others_is_private(base: Path, kind: str, tmp_path: Path) -> None:
    """Another's, an open one, a link or a file under the right name is not taken."""
    place = base / folder._folder_name(os.getuid())
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        place.touch(0o700)
    else:
        place.mkdir(mode=0o700)
        place.chmod(0o750 if kind == "mode" else 0o700)
        if kind == "owner":
            os.chown(place, 4000, -1)
        os.chown(place, 4000 if kind == "owner" else os.getuid(), -1)
    assert folder.find_folder() is None
    with pytest.raises(Refusal):
        folder.make_folder()


def test_a_private_folder_is_found_again(base: Path) -> None:
    """The one that was made."""
    made = folder.make_folder()
    assert made.parent == base
    assert folder.find_folder() == folder.make_folder() == made


@as_root
def test_root_becomes_only_the_owner_that_a_folder_names(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names without a number, of another owner or of root are passed over."""
    became: list[int] = []
    monkeypatch.setattr(os, "setgroups", lambda _: None)
    monkeypatch.setattr(os, "setresgid", lambda *_: None)
    monkeypatch.setattr(os, "setresuid", lambda uid, *_: became.append(uid))
    for name, uid in (("x", 4000), ("0", 0), ("17", 4000), ("5000", 5000)):
        place = base / folder._folder_name(name)
        place.mkdir(mode=0o700)
        os.chown(place, uid, uid)
    folder.drop_to_owner()
    assert became == [5000]
