"""Commands that stand for a service, and those that only look like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from entrypoints.gpuyard_start import config, modes
from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.modes import Mode

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def read(env: dict[str, str], *argv: str, services: tuple[str, ...] = ("jupyter", "ssh")) -> config.Config:
    """The configuration for a command line, with no key file anywhere."""
    return config.read(argv, env, {"services": list(services)}, Path("/nonexistent"))


@pytest.mark.parametrize(
    ("typed", "mode"),
    [
        ("ssh", Mode((), "ssh")),
        ("jupyter", Mode((), "jupyter")),
        ("jupyter lab", Mode((), "jupyter")),
        ("jupyter-lab --debug", Mode((), "jupyter", ("--debug",))),
        ("jupyter lab --ip=0.0.0.0 --port=9999 --no-browser", Mode((), "jupyter", ("--no-browser",), "9999")),
        ("jupyter lab --ip 0.0.0.0 --port 9999", Mode((), "jupyter", (), "9999")),
        ("jupyter lab --ServerApp.port=9", Mode((), "jupyter", (), "9")),
        ("jupyter lab --ServerApp.root_dir=/mnt", Mode((), "jupyter", ("--ServerApp.root_dir=/mnt",))),
    ],
)
def test_a_word_stands_for_a_service(typed: str, mode: Mode) -> None:
    """As tutorials write it; the address of the server is the start's own affair."""
    assert modes.read(tuple(typed.split())) == mode


@pytest.mark.parametrize(
    "typed",
    [
        *("ssh host", "ssh -V", "verify", "bash", "python train.py", "jupyter nbconvert x.ipynb", "jupyter --paths"),
        *("jupyter lab --version", "jupyter lab list", "jupyter lab --help", "jupyter-lab -h", "jupyter labextension"),
    ],
)
def test_any_other_command_is_run_as_it_is(typed: str) -> None:
    """Jupyter's other programs and the SSH client among them."""
    assert modes.read(tuple(typed.split())) == Mode(tuple(typed.split()))


@pytest.mark.parametrize(
    ("argv", "env", "id", "named"),
    [
        ("jupyter lab --ServerApp.token=", {}, "option-is-setting", "JUPYTER_TOKEN"),
        ("jupyter lab --NotebookApp.password=x", {}, "option-is-setting", "JUPYTER_PASSWORD_HASH"),
        ("jupyter lab --ServerApp.base_url=/x", {}, "option-is-setting", "JUPYTER_BASE_URL"),
        ("jupyter lab --ip=127.0.0.1", {}, "jupyter-address", "-p 127.0.0.1:"),
        ("jupyter lab --ip ::1", {}, "jupyter-address", "::1"),
        ("jupyter lab --port=x", {}, "setting-invalid", "JUPYTER_PORT is 'x'"),
        ("jupyter lab --port=1", {"JUPYTER_PORT": "2"}, "settings-conflict", "JUPYTER_PORT=2"),
        ("ssh", {"GPUYARD_SERVICES": "jupyter"}, "settings-conflict", "GPUYARD_SERVICES=jupyter"),
        ("ssh", {}, "login-key-missing", "SSH_PUBLIC_KEY"),
    ],
)
def test_a_word_that_contradicts_is_refused(argv: str, env: dict[str, str], id: str, named: str) -> None:
    """In one line, with the variable or option to use."""
    with pytest.raises(Refusal) as refusal:
        read(env, *argv.split())
    assert refusal.value.id == id
    assert named in str(refusal.value)
    assert refusal.value.code == 2


def test_a_word_starts_its_service_alone() -> None:
    """The key does not turn SSH on beside it, and there is no command left to run."""
    jupyter, ssh = (read({"SSH_PUBLIC_KEY": KEY}, word) for word in ("jupyter", "ssh"))
    assert (jupyter.services, jupyter.command) == (("jupyter",), ())
    assert (ssh.services, ssh.command) == (("ssh",), ())


def test_an_image_without_services_says_so() -> None:
    """In place of an SSH client that prints its usage."""
    with pytest.raises(Refusal) as refusal:
        read({"SSH_PUBLIC_KEY": KEY}, "ssh", services=())
    assert refusal.value.id == "service-not-in-image"


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("http://127.0.0.1:9999", "http://127.0.0.1:9999/lab/a/lab"),
        ("https://lab.example.org/", "https://lab.example.org/lab/a/lab"),
        ("http://0.0.0.0:9999", "http://127.0.0.1:9999/lab/a/lab"),
        ("http://[::1]:9999", "http://[::1]:9999/lab/a/lab"),
    ],
)
def test_the_log_links_to_the_address_that_people_use(link: str, shown: str) -> None:
    """The host's port, or the proxy's name, before the server's own path."""
    from entrypoints.gpuyard_start.jupyter import server

    found = read({"JUPYTER_LINK": link, "JUPYTER_BASE_URL": "/lab/a"}).jupyter
    assert found is not None
    assert server.notice(found) == f"JupyterLab: {shown}?token={found.token}"


@pytest.mark.parametrize("link", ["127.0.0.1:9999", "http://h/path", "javascript:x", "http://a b"])
def test_a_link_that_is_no_address_is_refused(link: str) -> None:
    """A path is the base URL's affair."""
    with pytest.raises(Refusal) as refusal:
        read({"JUPYTER_LINK": link})
    assert refusal.value.id == "setting-invalid"
    assert "JUPYTER_LINK" in str(refusal.value)
