"""sshd's settings and host keys, without a running sshd."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.ssh import daemon


def render(major: int, minor: int, strict: bool = False) -> list[str]:
    """The settings' lines for one release of OpenSSH."""
    release = daemon.Release(major, minor)
    return daemon.render(release, (2222, 22), "trainer", (Path("/k"),), Path("/a"), strict).splitlines()


def test_only_keys_of_one_user_are_taken_on_both_ports() -> None:
    """No password, no root, no PAM; nothing of the user's home is read."""
    lines = render(10, 0)
    for line in (
        *("Port 2222", "Port 22", "HostKey /k", "AuthorizedKeysFile /a", "AllowUsers trainer"),
        *("PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin no", "UsePAM no"),
        "AuthenticationMethods publickey",
    ):
        assert line in lines


def test_an_older_sshd_gets_no_setting_that_it_does_not_know() -> None:
    """An unknown setting would keep it from starting."""
    old, new = "\n".join(render(9, 6)), "\n".join(render(10, 0))
    for word in ("PerSourcePenalties", "mlkem768x25519-sha256"):
        assert word not in old
        assert word in new


def test_strict_leaves_only_post_quantum_key_exchange() -> None:
    """curve25519 alone goes; its hybrids stay."""
    loose, strict = (next(line for line in render(10, 0, s) if line.startswith("Kex")) for s in (False, True))
    assert "curve25519-sha256," in loose
    assert set(strict.split()[1].split(",")) < set(loose.split()[1].split(","))
    assert all("x25519-sha" in name for name in strict.split()[1].split(","))


def test_a_host_key_is_made_once_and_then_kept(tmp_path: Path) -> None:
    """A second container that starts on the same volume takes the first one's key."""
    first = daemon.make_host_key(tmp_path)
    content = first.read_bytes()
    assert daemon.make_host_key(tmp_path).read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == [daemon.NEW_KEY, f"{daemon.NEW_KEY}.pub"]
    assert daemon.existing_host_keys(tmp_path) == (first,)


def test_a_key_with_open_modes_is_copied_and_left_as_it_is(tmp_path: Path) -> None:
    """sshd refuses open modes; the file on the volume keeps its own."""
    source = daemon.make_host_key(tmp_path)
    source.chmod(0o644)
    private = tmp_path / "private"
    private.mkdir()
    copy = daemon.private_copy(source, private)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert source.stat().st_mode & 0o777 == 0o644
    assert daemon.host_key_fingerprint(copy).startswith("SHA256:")


def test_a_damaged_host_key_is_refused_in_one_line(tmp_path: Path) -> None:
    """What ssh-keygen says about it is part of the line."""
    broken = tmp_path / daemon.NEW_KEY
    broken.write_text("nonsense\n")
    broken.chmod(0o600)
    with pytest.raises(Refusal) as refusal:
        daemon.host_key_fingerprint(broken)
    assert refusal.value.id == "host-key-unusable"
    assert "\n" not in str(refusal.value)


def test_a_host_key_that_is_gone_or_closed_is_refused_by_name(tmp_path: Path) -> None:
    """The line names the file and the way out."""
    with pytest.raises(Refusal) as refusal:
        daemon.private_copy(tmp_path / "ssh_host_rsa_key", tmp_path)
    assert refusal.value.id == "host-key-unusable"
    assert "GPUYARD_HOST_KEYS" in str(refusal.value)


def test_a_folder_for_host_keys_that_keeps_none_is_refused(tmp_path: Path) -> None:
    """Only where the user named or mounted it, and only where it holds no key yet."""
    for place in (Path("/proc/keys"), Path("/dev/null"), Path("/dev/null/below")):
        with pytest.raises(Refusal) as refusal:
            daemon.refuse_useless_folder(place, named=True)
        assert refusal.value.id == "host-keys-unwritable"
        assert str(place) in str(refusal.value)
    daemon.refuse_useless_folder(tmp_path / "new" / "one", named=True)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_not_writable() -> None:
    """If the parent is not a folder, the answer is no, not an error."""
    assert not daemon.writable(Path("/dev/null/ssh"))
    assert os.access("/dev/null", os.F_OK)
