"""What a start puts around a command: caches, certificates, folders in place of those that are closed."""

from __future__ import annotations

import os
import ssl
import subprocess
from pathlib import Path

import pytest

from entrypoints.gpuyard_start.additions import ca, caches, overlay
from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.user import homes, runtime


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The start's private folder, in a place of this test."""
    folder = tmp_path / "start"
    folder.mkdir()
    for module in (ca, homes, runtime):
        monkeypatch.setattr(module, "make_folder", lambda: folder)
    return folder


def close(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Makes folders unwritable, for root as well, who runs these tests."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in folders and real(path, mode))


def test_every_cache_lies_in_the_one_folder(tmp_path: Path) -> None:
    """A variable of the user's own stays."""
    folder = caches.wanted({"GPUYARD_CACHE": str(tmp_path / "new")})
    assert folder is not None
    found = caches.entered({"HF_HOME": "/mine"}, folder)
    assert folder.is_dir()
    assert found.pop("HF_HOME") == "/mine"
    assert all(value.startswith(str(folder)) for value in found.values())
    assert {"TORCH_HOME", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"} == set(found)


@pytest.mark.parametrize(
    ("value", "id", "named"),
    [
        ("cache", "setting-invalid", "'cache'"),
        ("/mnt/../x", "setting-invalid", "'/mnt/../x'"),
        ("/a:b", "setting-invalid", "'/a:b'"),
        ("/etc/passwd", "setting-folder-unwritable", "/etc/passwd"),
        ("/proc/x", "setting-folder-unwritable", "/proc "),
    ],
)
def test_a_folder_that_can_hold_no_cache_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str, id: str, named: str
) -> None:
    """Before anything is made."""
    close(monkeypatch, Path("/proc"))
    with pytest.raises(Refusal) as refusal:
        caches.wanted({"GPUYARD_CACHE": value})
    assert refusal.value.id == id
    assert "GPUYARD_CACHE" in str(refusal.value)
    assert named in str(refusal.value)


def test_a_folder_that_will_be_the_users_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Root gives it away before anything is made in it; what is not given stays refused."""
    close(monkeypatch, tmp_path, Path("/proc"))
    env = {"GPUYARD_CACHE": f"{tmp_path}/cache", "GPUYARD_VENV": f"{tmp_path}/venv"}
    for module in (caches, overlay):
        with pytest.raises(Refusal) as refusal:
            module.wanted(env)
        assert refusal.value.id == "setting-folder-unwritable"
        assert module.wanted(env, (tmp_path,)) is not None
    with pytest.raises(Refusal):
        caches.wanted({"GPUYARD_CACHE": "/proc/x"}, (Path("/of-no-one"),))


def test_a_closed_folder_in_a_home_is_stepped_around(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_folder: Path
) -> None:
    """Docker makes ~/.cache as root's for a mount below it; what lies there is still found."""
    for name in (".cache", ".jupyter"):
        (tmp_path / name).mkdir()
    close(monkeypatch, tmp_path / ".cache", tmp_path / ".jupyter")
    env, said = homes.moved({"HOME": str(tmp_path), "JUPYTER_CONFIG_PATH": "/more"})
    assert env["XDG_CACHE_HOME"] == f"{own_folder}/home/.cache"
    assert env["JUPYTER_CONFIG_DIR"] == f"{own_folder}/home/.jupyter"
    assert env["JUPYTER_CONFIG_PATH"] == f"{tmp_path}/.jupyter:/more"
    assert "IPYTHONDIR" not in env
    assert said is not None
    assert said.id == "home-folders-unwritable"
    assert "(.jupyter, .cache)" in said.message
    assert f"{own_folder}/home" in said.message


def test_an_open_home_and_a_users_own_word_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is said where nothing is done."""
    env = {"HOME": str(tmp_path)}
    assert homes.moved(env) == (env, None)
    close(monkeypatch, tmp_path / ".cache")
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": "/c"}
    assert homes.moved(env) == (env, None)


def test_without_a_writable_tmp_there_is_another(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    """And the option that gives a better one; a TMPDIR of the user's stays."""
    assert runtime.temporary({}) == ({}, None)
    close(monkeypatch, Path("/tmp"))
    env, said = runtime.temporary({})
    assert env["TMPDIR"] == env["TMUX_TMPDIR"] == f"{own_folder}/tmp"
    assert said is not None
    assert said.id == "tmp-unwritable"
    assert "--tmpfs /tmp:exec" in said.message
    assert runtime.temporary({"TMPDIR": "/mine"}) == ({"TMPDIR": "/mine"}, None)


def authority(folder: Path) -> Path:
    """A certificate authority as a company has it."""
    file = folder / "company.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Company", "-days", "2"]
    subprocess.run([*command, "-keyout", "/dev/null", "-out", str(file)], check=True, capture_output=True)
    return file


def test_a_companys_certificates_are_trusted_beside_the_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By one file that holds both; a variable of the user's own stays."""
    system = tmp_path / "system.pem"
    system.write_bytes(authority(tmp_path).read_bytes())
    monkeypatch.setattr(ca, "SYSTEM", system)
    given = ca.wanted({"GPUYARD_CA": str(authority(tmp_path))})
    assert given is not None
    env = ca.trusted({"PIP_CERT": "/mine"}, given)
    assert env["PIP_CERT"] == "/mine"
    assert len({env[name] for name in ca.READ_BY if name != "PIP_CERT"}) == 1
    assert len(ssl.create_default_context(cafile=env["SSL_CERT_FILE"]).get_ca_certs()) == 2


@pytest.mark.parametrize("content", [None, b"", b"\x30\x82", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_file_of_no_certificate_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Missing, empty, in the other form, cut short."""
    file = tmp_path / "ca"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Refusal) as refusal:
        ca.wanted({"GPUYARD_CA": str(file)})
    assert refusal.value.id == ("certificates-unreadable" if content is None else "certificates-invalid")
    assert str(file) in str(refusal.value)
