"""Typing the commands of a page into one shell, as a reader would."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Command
from tests.render.slurm.cluster import free_port

# The reader's machine may have a configuration of its own; a page must not depend on it, or change it.
DROPPED = re.compile(r"^(GPUYARD|JUPYTER|SSH|PIP|UV|COMPOSE|XDG)_")

# What a container says of itself on standard error; its readers see both, a page shows the command's words.
_LOG = re.compile(r"^\S+Z (?:INFO|WARNING) start(?:\[[a-z0-9-]+\])?: .*\n?", re.MULTILINE)
NAMES = re.compile(r"\b(desk|training|board)\b")
"""Containers of the pages."""
PORTS = ("8888", "2222", "6006")


@dataclass(frozen=True)
class Typed:
    """What a command did."""

    command: Command
    code: int
    output: str


@dataclass(frozen=True)
class Desk:
    """A folder, a home with an SSH key, and names and ports that nobody else on this machine uses."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "work").mkdir(mode=0o777)
        (self.folder / "work").chmod(0o777)
        (self.folder / "home" / ".ssh").mkdir(parents=True, mode=0o700)
        key = self.folder / "home" / ".ssh" / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        # ssh goes by the account's home, whatever HOME says.
        (self.folder / "bin").mkdir()
        ssh = self.folder / "bin" / "ssh"
        ssh.write_text(
            f'#!/bin/sh\nexec {shutil.which("ssh")} -F none -o UserKnownHostsFile={key}.known -i {key} "$@"\n'
        )
        ssh.chmod(0o755)

    def type(self, commands: list[Command]) -> list[Typed]:
        """Runs them one after the other in one shell; a command that fails does not end it."""
        mark = f"::{os.urandom(6).hex()}"
        lines = [
            f"{{ {self._own(command.text)}\n}} 2>&1 </dev/null\nprintf '\\n{mark} %s\\n' $?" for command in commands
        ]
        done = subprocess.run(
            ["bash"],
            input="\n".join(lines),
            cwd=self.folder / "work",
            env=self._env(),
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        parts = re.split(rf"\n{mark} (\d+)\n", done.stdout)
        assert len(parts) == 2 * len(commands) + 1, done.stdout + done.stderr
        outputs = [_LOG.sub("", part) for part in parts[::2]]
        outputs = [re.sub(rf"{self.prefix}-(?={NAMES.pattern})", "", output) for output in outputs]
        return [Typed(command, int(parts[2 * at + 1]), outputs[at]) for at, command in enumerate(commands)]

    def _env(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not DROPPED.match(name)}
        path = f"{self.folder}/bin:{Path(sys.executable).parent}:{env['PATH']}"
        return {**env, "HOME": str(self.folder / "home"), "PATH": path, "NO_COLOR": "1", "COLUMNS": "200"}

    def _own(self, text: str) -> str:
        """The command with names and ports of this desk in place of the page's."""
        text = re.sub(r"-v ([a-z]+):/", rf"-v {self.prefix}-\1:/", text)
        if "docker " in text:
            text = NAMES.sub(rf"{self.prefix}-\1", text)
        for port, own in self.ports.items():
            # The host's side of a port only; the container's stays.
            text = re.sub(rf"(127\.0\.0\.1:|-p ){port}\b", rf"\g<1>{own}", text)
        return text

    @property
    def prefix(self) -> str:
        return f"gpuyard-docs-{os.getpid()}"

    @property
    def ports(self) -> dict[str, str]:
        known: dict[str, str] = self.__dict__.setdefault("_ports", {})
        if not known:
            known.update({port: str(free_port()) for port in PORTS})
        return known
