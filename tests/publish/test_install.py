"""The installer of publishing's programs, on a Debian of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuyard import paths


@pytest.mark.full
def test_an_older_debian_gets_the_clients_and_nothing_else_of_the_newer(tmp_path: Path) -> None:
    """In a Debian 12: oras and cosign come from the next release; libc and all others stay."""
    root = tmp_path / "bookworm"
    made = ["mmdebstrap", "--variant=minbase", "--mode=root", "--include=ca-certificates", "bookworm", str(root)]
    subprocess.run(made, check=True, capture_output=True)
    (root / "scripts").mkdir()
    for name in ("install-publish.sh", "newer-release.sh"):
        (root / "scripts" / name).write_text((paths.DOCKER / name).read_text())
    (root / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    install = ["chroot", str(root), "bash", "/scripts/install-publish.sh"]
    subprocess.run(install, check=True, capture_output=True)
    query = ["chroot", str(root), "dpkg-query", "-W", "-f", "${Package} ${Version}\n"]
    listed = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    packages = dict(line.split() for line in listed.splitlines())
    assert {"oras", "cosign"} <= packages.keys()
    assert "deb12" in packages["libc6"]
    newer = ["chroot", str(root), "apt-get", "-s", "upgrade"]
    assert "Debian:13" not in subprocess.run(newer, check=True, capture_output=True, text=True).stdout
    subprocess.run(["chroot", str(root), "oras", "version"], check=True, capture_output=True)
