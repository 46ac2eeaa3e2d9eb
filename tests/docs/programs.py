"""Whether a command is one that its program takes: asked of the program's own parser, without running the command."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from gpuyard import messages, paths
from gpuyard.commands.tree import application
from verify.cli import parser as verify_parser
from verify.engine import registry

CLI: Any = typer.main.get_command(application())
MODES = ("jupyter", "ssh", "licenses")
"""What the image's start takes for a mode of its own."""
UNPARSED = {
    "apt": "changes the system",
    "apt-get": "changes the system",
    "ubuntu-drivers": "changes the system, and exists on Ubuntu only",
    "dkms": "changes the kernel's modules",
    "modprobe": "changes the kernel's modules",
    "nvidia-modprobe": "comes with NVIDIA's driver",
    "nvidia-smi": "comes with NVIDIA's driver",
    "nvidia-ctk": "comes with NVIDIA's container toolkit",
    "nvidia-persistenced": "comes with NVIDIA's driver",
    "systemctl": "needs systemd",
    "journalctl": "needs systemd",
    "snap": "changes the system",
    "sbatch": "needs a Slurm cluster",
    "squeue": "needs a Slurm cluster",
    "srun": "needs a Slurm cluster",
    "scontrol": "needs a Slurm cluster",
    "enroot": "is not in Debian",
    "apptainer": "is not in Debian",
    "podman": "was not tried",
    "nvitop": "is in the image, and takes a terminal",
    "tensorboard": "is in the image; the page's own test runs it",
    "tmux": "is in the image; the page's own test runs it",
    "torchrun": "is in the image; the page's own test runs it",
    "jupyter": "is in the image; the tests of the start run it",
    "ssh-keygen": "writes a key, and has no option that only parses",
    "chown": "changes files", "chmod": "changes files", "mkdir": "changes files", "rm": "changes files",
    "cp": "changes files", "touch": "changes files",
    "cd": "is the shell's", "export": "is the shell's", "unset": "is the shell's",
    "echo": "is the shell's", "printf": "is the shell's", "ls": "reads", "cat": "reads", "df": "reads", "du": "reads",
    "stat": "reads", "tail": "reads", "grep": "reads", "ss": "reads", "ip": "reads", "id": "reads", "dmesg": "reads",
    "which": "reads", "ulimit": "is the shell's", "nproc": "reads", "lspci": "reads", "date": "reads",
    "true": "does nothing", "sh": "its own commands are the page's", "bash": "its own commands are the page's",
    "timeout": "its own commands are the page's", "curl": "asks a server", "gunzip": "reads", "openssl": "reads a file",
    "sysctl": "changes the kernel's settings", "mount": "changes the system", "reboot": "changes the system",
    "kill": "ends a process", "iconv": "reads", "gzip": "reads", "split-window": "is tmux's own",
}  # fmt: skip
"""Programs whose commands are only checked for the shell's syntax, and why."""


def fault(words: list[str]) -> str:
    """What is wrong with a command; empty if its program takes it. Raises KeyError for a program of no class."""
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if words[:1] == ["sudo"]:
        words = words[1:]
    if not words:
        return ""
    name = words[0].removeprefix(".venv/bin/")
    if name in PARSERS:
        return PARSERS[name](words[1:])
    if name.startswith(("./", "/")) or name in UNPARSED:
        return ""
    raise KeyError(f"{name} is neither parsed nor listed in UNPARSED")


def _gpuyard(words: list[str]) -> str:
    command, rest = CLI, words
    name = "gpuyard"
    try:
        while hasattr(command, "commands"):
            if not rest or rest[0].startswith("-"):
                return "" if rest in ([], ["--help"], ["--version"]) else f"no command: gpuyard {shlex.join(words)}"
            name, *rest = rest
            if name == "COMMAND":
                return ""
            command = command.commands[name]
        command.make_context(name, rest[: rest.index("--")] if "--" in rest else list(rest))
    except KeyError:
        return f"no such command: {name}"
    except typer.Exit:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {getattr(error, 'message', error)}"
    return ""


def _verify(words: list[str]) -> str:
    if words[:1] == ["env"]:
        return ""
    if words[:1] == ["explain"]:
        known = {check.id for check in registry.CHECKS} | set(messages.load())
        unknown = [word for word in words[1:] if word.islower() and word not in known]
        return f"nothing to explain: {unknown}" if unknown else ""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            found = verify_parser().parse_args(words)
        for names in [*(found.only or []), *(found.require or [])]:
            if names.islower():
                registry.resolve(registry.CHECKS, names.split(","))
    except SystemExit as ended:
        return said.getvalue() if ended.code else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@functools.cache
def _asked(*command: str) -> tuple[int, str]:
    # No engine and no cluster is behind these programs here: whatever is asked, nothing can be run.
    env = {**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:1", "KUBECONFIG": os.devnull}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL, env=env
    )
    return done.returncode, done.stdout + done.stderr


@functools.cache
def switches(*command: str) -> set[str]:
    """The options of a docker command that take no value, from its help."""
    _, said = _asked(*command, "--help")
    found = re.findall(r"^\s+(?:(-\w), )?\s*(--[\w-]+)(  +| *$)", said, re.MULTILINE)
    return {name for short, long, _ in found for name in (short, long) if name}


def taken(*command: str) -> set[str]:
    """Every option of a docker command."""
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", _asked(*command, "--help")[1]))


def _docker(words: list[str]) -> str:
    verb = next((at for at, word in enumerate(words) if word in ("run", "exec", "create")), None)
    if verb is not None and (verb == 0 or words[0] == "compose"):
        return _container(words[: verb + 1], words[verb + 1 :])
    code, said = _asked("docker", *words, "--help")
    # An unknown command prints the help of the command above it.
    plain = [word for word in words if not word.startswith("-")]
    known = code == 0 and (not plain or re.search(rf"^Usage:  docker .*\b{re.escape(plain[0])}\b", said, re.MULTILINE))
    return "" if known else said.strip()[:200]


def _container(verb: list[str], words: list[str]) -> str:
    """Options up to the image or container by docker's parser, and what follows by its own program's."""
    at, bare = 0, switches("docker", *verb)
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        cluster = option[:2] != "--" and all(f"-{letter}" in bare for letter in option[1:])
        at += 1 if "=" in option or option in bare or cluster else 2
    code, said = _asked("docker", *verb, *words[:at], "--help")
    if code:
        return said.strip().splitlines()[0]
    inner = words[at + 1 :]
    if not inner or inner[0] in MODES:
        return ""
    try:
        return fault(inner)
    except KeyError:
        # A command of an image may be any program in it.
        return "" if re.fullmatch(r"[A-Za-z][\w.-]*", inner[0]) else f"not a program: {inner[0]}"


def _make(words: list[str]) -> str:
    targets = re.findall(r"^([\w.-]+):", (paths.ROOT / "Makefile").read_text(), re.MULTILINE)
    unknown = [word for word in words if "=" not in word and word not in targets]
    return f"no target: {unknown}" if unknown else ""


def _python(words: list[str]) -> str:
    if words[:1] != ["-m"] or not words[1:]:
        return ""
    module, rest = words[1], words[2:]
    if module.endswith(".NAME"):
        return ""
    if module == "verify":
        return _verify(rest)
    if module == "pip":
        return _pip(rest)
    if not module.startswith("examples."):
        return "" if importlib.util.find_spec(module) else f"no module {module}"
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            importlib.import_module(module).options(rest)
    except ModuleNotFoundError as error:
        return f"no module {error.name}" if error.name == module else ""
    except SystemExit as ended:
        return said.getvalue() if ended.code else ""
    return ""


def _pip(words: list[str]) -> str:
    code, said = _asked(sys.executable, "-m", "pip", *words, "--help")
    return "" if code == 0 else said.strip()[:200]


def _own(name: str) -> Callable[[list[str]], str]:
    """A program of Go's usual parser, which reads every option before it prints its help."""

    def ask(words: list[str]) -> str:
        code, said = _asked(name, *words, "--help")
        return "" if code == 0 else said.strip()[:200]

    return ask


def _ssh(words: list[str]) -> str:
    code, said = _asked("ssh", "-G", *words)
    return "" if code == 0 else said.strip()[:200]


def _git(words: list[str]) -> str:
    code, said = _asked("git", words[0], "-h") if words else (1, "git alone")
    return "" if code in (0, 129) and "is not a git command" not in said else said.strip()[:200]


PARSERS: dict[str, Callable[[list[str]], str]] = {
    "gpuyard": _gpuyard,
    "verify": _verify,
    "docker": _docker,
    "make": _make,
    "python": _python,
    "python3": _python,
    "pip": _pip,
    "uv": _own(str(Path(sys.executable).parent / "uv")),
    "oras": _own("oras"),
    "cosign": _own("cosign"),
    "skopeo": _own("skopeo"),
    "kubectl": _own("kubectl"),
    "ssh": _ssh,
    "git": _git,
}
"""Programs whose commands are parsed, and by what."""
