"""A repository on a registry, through oras, and the programs that publishing needs. Each failure is one line."""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.engine.daemon import Host
from gpuyard.errors import UsageError, UserError, warn
from gpuyard.process import log, run
from gpuyard.publish.oras_errors import INSTALL, Absent, Passing, failure

REFERENCE = re.compile(r"^(?P<host>[\w.\-]+(?::\d+)?|\[[\da-fA-F:]+\](?::\d+)?)(?:/(?P<name>[a-z0-9][a-z0-9._/-]*))?$")
INSTALLER = paths.DOCKER / "install-publish.sh"
TRIES = 3
PAUSE = 1.0
SLOWEST = 500_000
"""Bytes a second below which a transfer counts as stuck."""
PATIENCE = 60.0
"""Seconds for a request that moves no layer."""


@dataclass(frozen=True)
class Repository:
    """Where images go: host, name, and how its certificate is trusted."""

    host: str
    name: str
    ca_file: Path | None = None
    plain_http: bool = False
    patience: float = PATIENCE

    @classmethod
    def parse(cls, text: str, name: str, ca_file: Path | None = None, plain_http: bool | None = None) -> Repository:
        """A repository from ``HOST[:PORT][/NAME]``; a name that is left out is ``name``.

        Loopback addresses speak plain HTTP unless a certificate is named. Raises UsageError.
        """
        if "@" in text:
            raise UsageError(
                "registry-address-credentials",
                "--registry takes no user and no password: log in first (oras login HOST)",
            )
        found = REFERENCE.match(text)
        if not found:
            raise UsageError(
                "registry-address-invalid",
                f"--registry {text!r}: expected HOST[:PORT]/NAME in lower case, without a tag",
            )
        if ca_file and not ca_file.is_file():
            raise UsageError("ca-file-missing", f"--ca-file {ca_file}: no such file")
        plain = is_loopback(found["host"]) and not ca_file if plain_http is None else plain_http
        return cls(found["host"], found["name"] or name, ca_file, plain)

    def __str__(self) -> str:
        return f"{self.host}/{self.name}"

    def at(self, digest: str) -> str:
        """The reference of a digest here."""
        return f"{self}@{digest}"

    def options(self, prefix: str = "") -> list[str]:
        """oras's options for this registry; ``prefix`` is ``to-`` where two registries are meant."""
        return [
            *([f"--{prefix}plain-http"] if self.plain_http else []),
            *([f"--{prefix}ca-file", str(self.ca_file)] if self.ca_file else []),
        ]

    def resolve(self, tag: str) -> str | None:
        """The digest that a tag or digest stands for, or None."""
        separator = "@" if tag.startswith("sha256:") else ":"
        try:
            return self.oras("resolve", f"{self}{separator}{tag}").strip()
        except Absent:
            return None

    def manifest(self, digest: str) -> bytes:
        """A manifest's bytes. Raises Absent."""
        return self.oras("manifest", "fetch", self.at(digest)).encode()

    def blob(self, digest: str) -> bytes:
        """A small blob's bytes. Raises Absent."""
        return self.oras("blob", "fetch", "--output", "-", self.at(digest)).encode()

    def tag(self, digest: str, tag: str) -> None:
        """Points a tag at a digest that is there."""
        self.oras("tag", self.at(digest), tag)

    def tags(self) -> list[str]:
        """The tags of images, without those of evidence and signatures."""
        try:
            listed = self.oras("repo", "tags", "--exclude-digest-tags", str(self)).split()
        except Absent:
            return []
        return [tag for tag in listed if not tag.startswith("sha256-")]

    def referrers(self, digest: str) -> list[Mapping[str, Any]]:
        """What refers to a digest: descriptors, by the referrers API or the tag schema."""
        try:
            found = json.loads(self.oras("discover", "--format", "json", self.at(digest)))
        except Absent:
            return []
        # oras 1.3 calls them by another name.
        return list(found.get("manifests") or found.get("referrers") or [])

    def push(self, layout: Path, digest: str, size: int) -> list[str]:
        """Sends an image from a layout, by digest and without a tag. Returns the blobs that were sent, shortened.

        Blobs that are there are not sent again, so an interrupted push resumes.
        """
        words = ["cp", "--verbose", "--from-oci-layout", *self.options("to-"), f"{layout}@{digest}", self.at(digest)]
        limit = self.patience + size / SLOWEST
        # Several failures at once make this oras panic; one at a time, it reports the error.
        said = retried(lambda: self._once(words, limit), lambda: self._once([*words, "--concurrency", "1"], limit))
        return re.findall(r"^Copied\s+([0-9a-f]{12}) ", said, re.MULTILINE)

    def attach(self, digest: str, file: Path, kind: str, annotations: Mapping[str, str]) -> None:
        """Attaches a file, of that media type, to a digest as its referrer. Tried once: see publisher.attach_one."""
        notes = [word for name, value in annotations.items() for word in ("--annotation", f"{name}={value}")]
        words = ["attach", "--artifact-type", kind, *notes, *self.options(), self.at(digest), f"{file.name}:{kind}"]
        # From its folder: oras writes down the path as it was given.
        self._once(words, self.patience, folder=file.parent)

    def oras(self, *words: str) -> str:
        """What oras answers. Raises Absent or UserError, after some tries where the fault may pass."""
        command = [*words, *self.options()]
        return retried(lambda: self._once(command, self.patience))

    def _once(self, words: list[str], limit: float, folder: Path | None = None) -> str:
        code, out, err = execute(["oras", *words, "--no-tty"], limit, folder=folder)
        if code:
            raise failure(str(self), f"{out}\n{err}", limit)
        return out


def retried(attempt: Callable[[], str], later: Callable[[], str] | None = None) -> str:
    """The answer of an attempt; a failure that may pass is retried (with ``later`` if given)."""
    for number in range(TRIES - 1):
        try:
            return (later or attempt)() if number else attempt()
        except Passing as error:
            log.info("%s; trying again", error)
            time.sleep(PAUSE * 2**number)
    return (later or attempt)()


def execute(
    command: list[str], limit: float, env: Mapping[str, str] | None = None, folder: Path | None = None
) -> tuple[int, str, str]:
    """Exit code and output of a program; 124 when it took longer than ``limit`` seconds."""
    if not shutil.which(command[0]):
        raise UserError("client-missing", f"{command[0]} is not installed. {INSTALL}")
    log.debug("$ %s", " ".join(command))
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            env=env,
            cwd=folder,
        )
    except subprocess.TimeoutExpired:
        return 124, "", "timed out"
    return done.returncode, done.stdout, done.stderr


def ensure_clients(programs: Sequence[str]) -> None:
    """Installs missing programs, as root on Debian. Raises UserError with the command anywhere else."""
    if not (absent := [program for program in programs if not shutil.which(program)]):
        return
    host = Host.this()
    names = ", ".join(absent)
    if host.forbidden or not host.root or host.system != "debian":
        raise UserError("client-missing", f"{names}: not installed. {INSTALL}")
    warn("clients-installed", f"installing {names} from Debian's packages")
    run(["bash", str(INSTALLER), *absent], hint=f"{names} could not be installed.")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    name = host.rsplit(":", 1)[0].strip("[]") if not host.endswith("]") else host.strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
