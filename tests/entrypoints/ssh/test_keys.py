"""Public keys: what is taken, what is refused, and how the refusal reads."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.ssh import keys


def blob(*parts: bytes) -> str:
    """A key's second word, from its wire fields."""
    return base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).decode()


ED25519 = f"ssh-ed25519 {blob(b'ssh-ed25519', bytes(32))} me@host"
SHORT_RSA = f"ssh-rsa {blob(b'ssh-rsa', bytes([1, 0, 1]), bytes([0, *[255] * 128]))}"


def test_several_keys_with_comments_and_windows_line_ends_are_taken() -> None:
    """Blank lines, comments and carriage returns are skipped without a fault."""
    found = keys.read_lines("X", f"# mine\r\n{ED25519}\r\n\r\n{ED25519}2\n")
    assert [key.line for key in found] == [ED25519, ED25519 + "2"]


def test_options_before_the_key_are_taken() -> None:
    """An authorized_keys line may begin with options, with blanks and quotes inside of them."""
    assert keys.fault(f'no-pty,command="echo \\"a b\\" c" {ED25519}') is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ssh-ed25519", "quote the whole key"),
        ("ssh-ed25519 AAAAbroken", "damaged"),
        (f"ssh-ed25519 {blob(b'ssh-ed25519', bytes(32))[:-8]}", "damaged"),
        (f"ssh-ed25519 {blob(b'ssh-rsa', bytes(32))}", "not a key of that type"),
        (f"ssh-dss {blob(b'ssh-dss', bytes(32))}", "no key type that is still accepted"),
        (SHORT_RSA, "1024 bits is too short"),
        ("hello", "no key type"),
        ('command="unclosed ssh-ed25519', "no key type"),
        ("~/.ssh/id_ed25519.pub", "looks like a file name"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "that is a private key"),
    ],
)
def test_a_line_that_is_no_key_is_refused_with_its_number(line: str, said: str) -> None:
    """The refusal is one line that names the origin, the line's number, the fault and what was expected."""
    with pytest.raises(Refusal) as refusal:
        keys.read_lines("SSH_PUBLIC_KEY", f"{ED25519}\n\n{line}\n")
    message = str(refusal.value)
    assert refusal.value.id == "login-key-invalid"
    assert message.startswith("SSH_PUBLIC_KEY, line 3: ")
    assert said in message
    assert "expected one public key" in message
    assert "\n" not in message


def test_a_refusal_never_repeats_the_key() -> None:
    """What was pasted by mistake, such as a private key, does not end up in a log."""
    with pytest.raises(Refusal) as refusal:
        keys.read_lines("PUBLIC_KEY", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n")
    assert "b3Bl" not in str(refusal.value)


def test_keys_from_all_sources_are_collected_once(tmp_path: Path) -> None:
    """Both variables and the files count; the same key twice is one key."""
    file = tmp_path / "authorized_keys"
    file.write_text(f"{ED25519}\n{ED25519}-file\n")
    found = keys.collect({"SSH_PUBLIC_KEY": ED25519, "PUBLIC_KEY": ED25519 + "-b"}, (file, tmp_path / "none"))
    assert [key.line for key in found] == [ED25519, ED25519 + "-b", ED25519 + "-file"]


def test_a_folder_in_the_key_files_place_is_refused(tmp_path: Path) -> None:
    """Docker makes a folder where a mounted file does not exist on the host; the message says so."""
    with pytest.raises(Refusal) as refusal:
        keys.collect({}, (tmp_path,))
    assert refusal.value.id == "login-key-file-unusable"
    assert str(tmp_path) in str(refusal.value)


def test_a_fingerprint_is_the_one_that_ssh_keygen_shows(tmp_path: Path) -> None:
    """Users compare the log's line with their client's."""
    file = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    shown = subprocess.run(["ssh-keygen", "-lf", str(file)], check=True, capture_output=True, text=True)
    text = Path(f"{file}.pub").read_text()
    assert keys.fingerprint(base64.b64decode(text.split()[1])) == shown.stdout.split()[1]
    assert keys.fault(text.strip()) is None
