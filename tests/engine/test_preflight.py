"""What is refused before a container starts, each with the one line that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from gpuyard.engine.preflight import GpuHost, choose_gpus, missing_for_gpus, probe_gpus, public_key
from gpuyard.engine.start import Gpus
from tests.refusals import refused

FULL = GpuHost(driver=True, toolkit=True, hook=True, runtime=True)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (GpuHost(), "no NVIDIA driver"),
        (GpuHost(toolkit=True, runtime=True), "no NVIDIA driver"),
        (GpuHost(driver=True), "NVIDIA Container Toolkit is not installed"),
        (GpuHost(driver=True, toolkit=True), "does not know the NVIDIA Container Toolkit"),
        (GpuHost(local=False), "on its host run"),
    ],
)
def test_the_first_missing_piece_is_named_on_one_line_with_the_way_out(host: GpuHost, words: str) -> None:
    """--gpus all without a driver, a toolkit or an engine that knows it ends before docker is asked."""
    with refused("gpu-unavailable", words, "--gpus none", "sudo") as refusal:
        choose_gpus("all", host)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "host",
    [FULL, GpuHost(driver=True, runtime=True), GpuHost(driver=True, hook=True), GpuHost(runtime=True, local=False)],
)
def test_nothing_is_missing_where_the_engine_can_hand_out_gpus(host: GpuHost) -> None:
    """A registered runtime, a hook beside the engine and a remote engine's runtime all do."""
    assert missing_for_gpus(host) is None
    assert choose_gpus("all", host) == (Gpus(("all",)), "")


def test_auto_takes_all_gpus_or_says_in_one_line_why_none() -> None:
    """Without a GPU, auto goes on and says so."""
    assert choose_gpus("auto", FULL) == (Gpus(("all",)), "")
    gpus, note = choose_gpus("auto", GpuHost())
    assert gpus == Gpus()
    assert note.startswith("no GPU for the container: no NVIDIA driver")


def test_none_asks_nothing_of_the_host() -> None:
    """--gpus none works everywhere and says nothing."""
    assert choose_gpus("none", GpuHost()) == (Gpus(), "")


def test_cdi_is_used_where_it_is_the_only_way() -> None:
    """An engine with NVIDIA's CDI specification and no runtime gets device names."""
    assert choose_gpus("0", GpuHost(driver=True, cdi=True)) == (Gpus(("0",), cdi=True), "")


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's tools of the machine that runs the tests do not count."""
    monkeypatch.setattr("shutil.which", lambda _name: None)


def test_the_host_is_read_from_devices_and_the_engines_own_words(tmp_path: Path) -> None:
    """A device node, a runtime in docker info and a CDI file each set their fact."""
    specs = tmp_path / "cdi"
    specs.mkdir()
    (specs / "nvidia.yaml").write_text('cdiVersion: "0.5.0"\nkind: "nvidia.com/gpu"\ndevices: []\n')
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidiactl").touch()
    info: dict[str, Any] = {"Runtimes": {"runc": {}, "nvidia": {}}, "CDISpecDirs": [str(specs)]}
    assert probe_gpus(info, root=tmp_path) == GpuHost(driver=True, runtime=True, cdi=True)


def test_another_kind_of_cdi_device_is_no_gpu(tmp_path: Path) -> None:
    """A specification that only resembles NVIDIA's is not taken for it."""
    (tmp_path / "other.json").write_text('{"kind": "nvidia.com/gpu-fake", "devices": []}')
    assert probe_gpus({"CDISpecDirs": [str(tmp_path)]}, root=tmp_path) == GpuHost()


def test_a_newer_engine_lists_its_cdi_devices_itself(tmp_path: Path) -> None:
    """For a remote engine its own list is all there is."""
    info = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}
    assert probe_gpus(info, local=False, root=tmp_path).cdi


def key_pair(folder: Path) -> tuple[Path, Path]:
    """A private key and its public part, made now."""
    key = ed25519.Ed25519PrivateKey.generate()
    private, public = folder / "id", folder / "id.pub"
    private.write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.OpenSSH, s.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(s.Encoding.OpenSSH, s.PublicFormat.OpenSSH) + b" me@here\n")
    return private, public


def test_a_public_key_is_taken_as_it_stands(tmp_path: Path) -> None:
    """Type, key and comment reach the container."""
    public = key_pair(tmp_path)[1]
    assert public_key(public) == public.read_text().strip()


def test_other_kinds_of_public_keys_are_taken_too(tmp_path: Path) -> None:
    """An elliptic key of the older kind is a key."""
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    file = tmp_path / "ec.pub"
    file.write_bytes(key.public_bytes(s.Encoding.OpenSSH, s.PublicFormat.OpenSSH))
    assert public_key(file).startswith("ecdsa-sha2-nistp256 ")


def test_a_private_key_is_refused_and_never_shown(tmp_path: Path) -> None:
    """Somebody who hands over the private part is told the right file, and it stays private."""
    private = key_pair(tmp_path)[0]
    with refused("ssh-key-private", "id.pub") as refusal:
        public_key(private)
    assert private.read_text().splitlines()[1] not in str(refusal.value)


@pytest.mark.parametrize("text", ["", "hello\n", "ssh-ed25519 AAAA\n", "ssh-ed25519 !!!!\n", "ssh-ed25519\n"])
def test_what_is_no_key_is_refused_with_what_makes_one(tmp_path: Path, text: str) -> None:
    """Empty, cut and damaged files end in one line."""
    file = tmp_path / "k.pub"
    file.write_text(text)
    with refused("ssh-key-invalid", file, "ssh-keygen"):
        public_key(file)


def test_a_key_that_names_another_type_than_it_holds_is_refused(tmp_path: Path) -> None:
    """The type in front must be the one inside the blob."""
    public = key_pair(tmp_path)[1]
    public.write_text(public.read_text().replace("ssh-ed25519", "ssh-rsa"))
    with refused("ssh-key-invalid", public):
        public_key(public)


def test_a_key_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """The file and the reason stand on the line."""
    with refused("ssh-key-unreadable", "none.pub", "No such file"):
        public_key(tmp_path / "none.pub")
