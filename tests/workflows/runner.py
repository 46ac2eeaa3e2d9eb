"""A hosted runner as far as it goes without a forge: Ubuntu, a user who is not root, sudo without a password."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuyard import paths

SUITE = "noble"
PACKAGES = (
    *("apt", "ca-certificates", "curl", "docker-buildx", "docker-compose-v2", "docker.io", "gcc", "git", "libc6-dev"),
    *("make", "npm", "openssh-client", "openssl", "python3", "python3-venv", "rsync", "skopeo", "sudo"),
)
"""What the tests need of what a hosted runner has; oras, cosign and a registry are not among it."""
UID = 1001
HOME = "/home/runner"
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_FIND_LINKS", "SSL_CERT_FILE", "PIP_CERT")
BOUND = ("/dev", "/run/docker.sock")


@dataclass(frozen=True)
class Runner:
    """A file system to run steps in, with a clone of this checkout."""

    root: Path

    def step(self, command: str, env: Mapping[str, str], limit: float = 1500) -> subprocess.CompletedProcess[str]:
        """A ``run:`` step as the forge starts it: bash -e, in the clone, as the runner's user."""
        script = "\n".join([
            "set -e",
            f"mount -t proc proc {self.root}/proc",
            *(f"mount --rbind {place} {self.root}{place}" for place in (*BOUND, *folders())),
            f'exec chroot --userspec={UID}:{UID} --groups={UID},{group()} {self.root} bash -ec "cd clone; $STEP"',
        ])  # fmt: skip
        given = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        plain = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": HOME, "USER": "runner", "CI": "true"}
        return subprocess.run(
            ["unshare", "--mount", "bash", "-c", script.replace("cd clone", f"cd {HOME}/clone")],
            env={**plain, **given, **env, "STEP": command},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )


def group() -> int:
    """The group that may speak to the engine."""
    return Path("/run/docker.sock").stat().st_gid


def folders() -> list[str]:
    """Folders on this machine that pip takes packages from."""
    text = Path("/etc/pip.conf").read_text() if Path("/etc/pip.conf").exists() else ""
    user = Path.home() / ".config" / "pip" / "pip.conf"
    text += user.read_text() if user.exists() else ""
    words = [Path(word.removeprefix("file://")) for word in text.split()]
    found = [word for word in words if word.is_absolute() and word.is_dir()]
    # The files of a simple index lie beside it.
    return [str(word.parent if word.name == "simple" else word) for word in found]


def make(root: Path) -> Runner:
    """Bootstraps the file system and clones this checkout, with changes that are not committed yet, into it."""
    # The archive's keys may be missing on another system than Ubuntu; this is a test's throw-away copy.
    insecure = ["Acquire::AllowInsecureRepositories", "APT::Get::AllowUnauthenticated"]
    options = [f'--aptopt={name} "true"' for name in insecure]
    words = ["--variant=minbase", "--mode=root", "--components=main,universe", f"--include={','.join(PACKAGES)}"]
    subprocess.run(["mmdebstrap", *words, *options, SUITE, str(root)], check=True, capture_output=True)
    inside = ["chroot", str(root)]
    subprocess.run([*inside, "useradd", "--create-home", "--uid", str(UID), "runner"], check=True)
    (root / "etc/sudoers.d/runner").write_text("runner ALL=(ALL) NOPASSWD:ALL\n")
    (root / "run/docker.sock").touch()
    for place in folders():
        (root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    home = root / HOME.lstrip("/")
    copied = {"/etc/resolv.conf": "etc", "/etc/pip.conf": "etc", "/etc/ssl/certs/ca-certificates.crt": "etc/ssl/certs"}
    for file, place in copied.items():
        if Path(file).exists():
            shutil.copy(file, root / place)
    if (user := Path.home() / ".config" / "pip").exists():
        shutil.copytree(user, home / ".config" / "pip")
    clone(home / "clone")
    subprocess.run([*inside, "chown", "-R", f"{UID}:{UID}", HOME], check=True)
    return Runner(root)


def clone(place: Path) -> None:
    """The files of this checkout in a repository of their own."""
    git = ["git", "-C", str(paths.ROOT)]
    listed = subprocess.run(
        [*git, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    ).stdout
    for name in filter(lambda name: (paths.ROOT / name).exists(), listed.splitlines()):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(paths.ROOT / name, place / name)
    who = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "a clone"]):
        subprocess.run(["git", *words], cwd=place, check=True)
