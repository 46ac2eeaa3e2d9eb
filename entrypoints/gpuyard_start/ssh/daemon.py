"""sshd without root: its host keys, its settings and what the log says about it."""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from .. import places
from ..errors import Refusal
from ..user import mounts
from . import keys

SSHD = "/usr/sbin/sshd"
KEYGEN = "/usr/bin/ssh-keygen"
NEW_KEY = "ssh_host_ed25519_key"

# Modern algorithms only. curve25519 is for clients without post-quantum key exchange; GPUYARD_SSH_STRICT drops it.
_POST_QUANTUM = ("sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com")
_CLASSIC = ("curve25519-sha256", "curve25519-sha256@libssh.org")
_SETTINGS = """\
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitEmptyPasswords no
PermitRootLogin no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
X11Forwarding no
# Not the client's language: sessions have the container's, and no other is installed.
AcceptEnv COLORTERM
Subsystem sftp internal-sftp
Ciphers chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes128-gcm@openssh.com
MACs hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com
HostKeyAlgorithms ssh-ed25519,rsa-sha2-512,rsa-sha2-256
RequiredRSASize 2048
# The keys lie in a folder that only this user can enter; the folders above it may be anyone's.
StrictModes no
# A port check every few seconds is normal for a container and must not lock its user out.
MaxStartups 100:30:200
"""


class Release(NamedTuple):
    """OpenSSH's version, which decides which settings it knows."""

    major: int
    minor: int

    def at_least(self, major: int, minor: int) -> bool:
        return (self.major, self.minor) >= (major, minor)


def installed() -> Release:
    """The version of the installed sshd."""
    try:
        told = subprocess.run([SSHD, "-V"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refusal("image-damaged", f"{SSHD} does not run ({error}): pull or build the image again", 1) from None
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", told.stdout + told.stderr)
    return Release(int(found[1]), int(found[2])) if found else Release(0, 0)


def render(
    release: Release,
    ports: tuple[int, ...],
    user: str,
    key_files: tuple[Path, ...],
    authorized: Path,
    strict: bool = False,
) -> str:
    """The whole sshd_config. ``strict`` leaves out the key exchange that a quantum computer could break."""
    kex: tuple[str, ...] = ("mlkem768x25519-sha256",) if release.at_least(9, 9) else ()
    kex += _POST_QUANTUM + (() if strict else _CLASSIC)
    lines = [f"Port {number}" for number in ports]
    lines += [f"HostKey {file}" for file in key_files]
    lines += [f"AuthorizedKeysFile {authorized}", f"AllowUsers {user}", f"KexAlgorithms {','.join(kex)}"]
    if release.at_least(9, 8):
        lines.append("PerSourcePenalties no")
    return "\n".join(lines) + "\n" + _SETTINGS


def public_blob(text: str) -> bytes:
    """The key in a ``.pub`` line. Raises ValueError if there is none."""
    try:
        return base64.b64decode(text.split()[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise ValueError("no public key") from error


def _run_keygen(*arguments: str) -> str:
    told = subprocess.run([KEYGEN, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if told.returncode != 0:
        reason = (told.stderr or told.stdout).strip().splitlines()
        raise Refusal("host-key-unusable", f"ssh-keygen failed: {reason[-1] if reason else told.returncode}", 1)
    return told.stdout


def writable(folder: Path) -> bool:
    """Whether a file can be made in the folder, which is created where its parent allows it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def existing_host_keys(folder: Path) -> tuple[Path, ...]:
    """The private host keys that lie in a folder."""
    try:
        found = sorted(p for p in folder.glob("ssh_host_*_key") if p.is_file())
    except OSError:
        return ()
    return tuple(found)


def refuse_useless_folder(folder: Path, named: bool, given: tuple[Path, ...] = ()) -> None:
    """Refuses a folder for host keys that has none and can't be written to. Changes nothing."""
    if existing_host_keys(folder) or not (named or mounts.is_mounted(folder, mounts.points())):
        return
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not places.usable(nearest, given):
        raise Refusal(
            "host-keys-unwritable",
            f"the folder of host keys {folder} is empty and can't be written to by uid {os.geteuid()}: make it"
            " writable, put a key into it with ssh-keygen, or leave it out for a key that ends with the container",
        )


def make_host_key(folder: Path) -> Path:
    """A new host key in the folder. Of two containers that start together on one volume, one key remains."""
    made = folder / f".{NEW_KEY}.{os.getpid()}"
    _run_keygen("-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(made))
    final = folder / NEW_KEY
    try:
        # A link fails where the name exists, so that a key once given out is never replaced.
        os.link(made, final)
        Path(f"{made}.pub").rename(f"{final}.pub")
    except FileExistsError:
        Path(f"{made}.pub").unlink()
    except OSError:
        made.rename(final)
        Path(f"{made}.pub").rename(f"{final}.pub")
    made.unlink(missing_ok=True)
    return final


def private_copy(source: Path, target_folder: Path) -> Path:
    """A copy that only we can read: sshd refuses open modes, and the user's file is not ours to change."""
    target = target_folder / source.name
    try:
        content = source.read_bytes()
    except OSError as error:
        raise Refusal(
            "host-key-unusable",
            f"host key {source} can't be read ({error.strerror}): make it readable for uid {os.getuid()},"
            " or name another folder with GPUYARD_HOST_KEYS",
        ) from None
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
    return target


def host_key_fingerprint(private: Path) -> str:
    """The fingerprint that a client shows for this host key."""
    return keys.fingerprint(public_blob(_run_keygen("-y", "-P", "", "-f", str(private))))
