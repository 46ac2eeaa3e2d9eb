"""The same environment and the same Python wherever a user comes in: exec, SSH, Jupyter's terminal, a kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.models.containers import Container

from .conftest import KeyPair, greeting, host_port, wait_for

pytestmark = pytest.mark.image
NASTY = {
    "QUOTES": "a \"b\" 'c' \\ end\\",
    "COMMAND": "$(touch /tmp/executed) `touch /tmp/executed` ${HOME} #x; exit 3",
    "SEVERAL_LINES": "one\n$(touch /tmp/executed)\n\n'three'\n",
    "UNICODE": "é 漢字 \t tab",
    "lower_case": "kept",
    "EMPTY": "",
    "LD_LIBRARY_PATH": "/nowhere",
    "BASH_FUNC_id%%": "() { touch /tmp/executed; }",
    "http_proxy": "http://127.0.0.1:9",
    "HF_TOKEN": "passed-on",
    "GPUYARD_PASS": "HF_TOKEN",
    "WANDB_API_KEY": "s3cret",
    "JUPYTER_TOKEN": "s3cret",
}
NEVER = {"WANDB_API_KEY", "JUPYTER_TOKEN", "SSH_PUBLIC_KEY"}
SPENT = {*NEVER, "GPUYARD_PASS"}
WAYS = ("command", "login", "terminal", "kernel")
PYTHON = "import sys, importlib.metadata as m; print(sys.executable, m.version('torch'), sys.flags.no_user_site)"
LOOK = 'env -0 > /tmp/env-{way}; python -c "{python}" > /tmp/python-{way}'
CELL = """
import os, pathlib, sys, importlib.metadata as m
pairs = b"".join(name + b"=" + value + b"\\0" for name, value in os.environb.items())
pathlib.Path("/tmp/env-kernel").write_bytes(pairs)
pathlib.Path("/tmp/python-kernel").write_text(f"{sys.executable} {m.version('torch')} {sys.flags.no_user_site}\\n")
print(pathlib.Path("/proc/self/oom_score_adj").read_text().strip())
"""
OF_A_SESSION = (
    "USER LOGNAME SHELL MAIL TERM PWD SHLVL _ COLUMNS LINES OLDPWD LS_COLORS PYXTERM_DIMENSIONS "
    "CLICOLOR CLICOLOR_FORCE FORCE_COLOR PAGER GIT_PAGER MPLBACKEND PYDEVD_USE_FRAME_EVAL"
)
ASK = Path(__file__).with_name("jupyter") / "ask_jupyter.py"


def ask_jupyter(container: Container, text: str, code: str, token: str = "s3cret", wait: bool = True) -> str:
    """What a cell printed, after the text was typed into a terminal; without ``wait`` it is left running."""
    arguments = ["http://127.0.0.1:8888/", token, text, code, "wait" if wait else "go"]
    code_, output = container.exec_run(["env", "-u", "http_proxy", "python", "-c", ASK.read_text(), *arguments])
    assert code_ == 0, output.decode()
    return str(output.decode())


@pytest.fixture(scope="module")
def visited(run_container: Any, key: KeyPair) -> Iterator[Container]:
    """A container that was entered in every way; each left what it saw in a file."""
    ports = {"2222/tcp": ("127.0.0.1", None), "8888/tcp": ("127.0.0.1", None)}
    with run_container(None, environment={**NASTY, "SSH_PUBLIC_KEY": key.public}, ports=ports) as container:
        port = host_port(container, 2222)
        wait_for(lambda: greeting(port))
        look = {way: LOOK.format(way=way, python=PYTHON) for way in ("exec", *WAYS)}
        container.exec_run(["bash", "-c", look["exec"]])
        subprocess.run(key.ssh(port, look["command"]), check=True, timeout=60)
        typed = f"{look['login']}; exit\n".encode()
        subprocess.run([*key.ssh(port), "-tt"], input=typed, check=True, timeout=60, stdout=subprocess.DEVNULL)
        wait_for(lambda: b"jupyter, ssh answer" in container.exec_run("/opt/gpuyard/entrypoints/health").output, 60)
        score = ask_jupyter(container, f"{look['terminal']}; exit", CELL)
        assert score.strip() == "500"
        yield container


def seen(container: Container, way: str) -> dict[str, str]:
    """The environment that one way in has."""
    data: bytes = container.exec_run(["cat", f"/tmp/env-{way}"]).output
    return dict(pair.split("=", 1) for pair in data.decode().split("\0") if pair)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_sees_the_same_values(visited: Container, way: str) -> None:
    """Quotes, line ends, substitutions, other alphabets, lower case: as they were given."""
    given = {name: value for name, value in NASTY.items() if name not in SPENT and "%%" not in name}
    own = seen(visited, way)
    assert {name: own.get(name) for name in given} == given
    plain = seen(visited, "exec")
    for name in ("PATH", "VIRTUAL_ENV", "LANG", "HOME", "PYTHONNOUSERSITE", "NVIDIA_VISIBLE_DEVICES", "PIP_CONSTRAINT"):
        assert own[name] == plain[name]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_is_told_a_secret_or_a_name_more(visited: Container, way: str) -> None:
    """Credentials are left out; what is added belongs to the session, the terminal or the kernel."""
    own, plain = seen(visited, way), seen(visited, "exec")
    assert NEVER.isdisjoint(own)
    assert "s3cret" not in own.values()
    added = {name for name in own if name not in plain and not name.startswith(("SSH_", "JPY_", "JUPYTER", "KERNEL_"))}
    assert added <= set(OF_A_SESSION.split())


def test_there_is_one_python_everywhere(visited: Container) -> None:
    """The same interpreter, the same torch, and no packages from a home."""
    said = {visited.exec_run(["cat", f"/tmp/python-{way}"]).output.decode() for way in ("exec", *WAYS)}
    assert len(said) == 1
    assert said.pop().startswith("/opt/venv/bin/python ")


def test_no_value_was_executed_on_the_way(visited: Container) -> None:
    """Not by a shell of ours, of sshd's or of Jupyter's."""
    assert visited.exec_run("ls /tmp/executed").exit_code != 0
