"""The docker line: one description of a start, checked as words and as SDK options."""

from __future__ import annotations

import pytest

from gpuyard.engine.start import GIB, Gpus, Port, Start, default_shm, parse_gpus, size, split_secrets
from tests.refusals import refused


def test_the_line_carries_every_flag_before_the_image_and_the_command_after_it() -> None:
    """A full start is one docker line in docker's own order."""
    start = Start(
        image="repo:tag",
        gpus=Gpus(("all",)),
        shm="4g",
        name="n",
        ports=(Port(8888, 9999),),
        volumes=("/a:/b",),
        env=("A=1", "TOKEN"),
        labels={"l": "v"},
        command=("python", "-c", "print(1)"),
    )
    line = start.line()
    assert line[:2] == ["docker", "run"]
    assert line[-4:] == ["repo:tag", "python", "-c", "print(1)"]
    flags = line[2:-4]
    for word in ("--rm", "--gpus", "--shm-size=4g", "--name=n", "--publish=127.0.0.1:9999:8888"):
        assert word in flags
    assert {"--volume=/a:/b", "--env=A=1", "--env=TOKEN", "--label=l=v", "--ulimit=memlock=-1"} <= set(flags)


def test_without_a_gpu_no_limit_is_raised() -> None:
    """An engine that runs in a container may not raise limits, so a start without GPUs asks for none."""
    assert not [word for word in Start("i").line() if word.startswith(("--ulimit", "--gpus"))]
    assert Start("i").options()["ulimits"] == []


def test_a_detached_container_keeps_its_log() -> None:
    """--detach leaves out --rm and the terminal."""
    line = Start("i", detach=True, keep=True, terminal=True).line()
    assert "--detach" in line
    assert not {"--rm", "-it"} & set(line)


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        (Gpus(), []),
        (Gpus(("all",)), ["--gpus", "all"]),
        (Gpus(("0", "1")), ["--gpus", '"device=0,1"']),
        (Gpus(("all",), cdi=True), ["--device", "nvidia.com/gpu=all"]),
        (Gpus(("0", "1"), cdi=True), ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]),
    ],
)
def test_gpus_become_the_words_that_docker_reads(gpus: Gpus, words: list[str]) -> None:
    """Several devices keep docker's inner quotes, without which its CSV reader splits them."""
    assert gpus.words() == words


def test_the_sdk_gets_the_same_gpus() -> None:
    """The device requests name the same devices as the words."""
    assert Gpus(("all",)).requests()[0]["Count"] == -1
    assert Gpus(("0", "1")).requests()[0]["DeviceIDs"] == ["0", "1"]
    assert Gpus(("2",), cdi=True).requests()[0]["DeviceIDs"] == ["nvidia.com/gpu=2"]
    assert Gpus().requests() == []


def test_the_sdk_gets_sizes_and_ports_as_values() -> None:
    """Sizes are bytes, a port without a host number lets the engine choose."""
    options = Start("i", shm="1g", ports=(Port(22, None),)).options()
    assert options["shm_size"] == GIB
    assert options["ports"] == {"22/tcp": ("127.0.0.1", None)}


@pytest.mark.parametrize("text", ["alle", "0,", "0;1", "-1", "", "gpu0"])
def test_an_unknown_word_for_gpus_is_refused(text: str) -> None:
    """Anything but all, none, auto and device names is a usage error that says what is expected."""
    with refused("gpus-invalid", repr(text), code=2):
        parse_gpus(text)


def test_devices_may_be_indices_uuids_and_mig_instances() -> None:
    """All the names that NVIDIA's tools print are taken."""
    assert parse_gpus("0,1") == ("0", "1")
    assert parse_gpus("GPU-1a2b,MIG-3c") == ("GPU-1a2b", "MIG-3c")
    assert parse_gpus("auto") is None
    assert parse_gpus("none") == ()


@pytest.mark.parametrize("text", ["8x", "g", "", "-1g", "0", "1.5g"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    """A wrong --shm-size is named before anything starts."""
    with refused("size-invalid", repr(text), code=2):
        size(text)


def test_sizes_are_read_as_docker_reads_them() -> None:
    """Units are binary, in either case, with or without a b."""
    assert (size("8g"), size("512M"), size("1gb"), size("7")) == (8 * GIB, 512 << 20, GIB, 7)


@pytest.mark.parametrize(("memory", "text"), [(64 * GIB, "8g"), (6 * GIB, "3g"), (GIB, "512m"), (0, "8g")])
def test_the_default_leaves_half_of_a_small_host(memory: int, text: str) -> None:
    """8 GiB where there is room, half the memory otherwise, 8 GiB where the memory is unknown."""
    assert default_shm(memory) == text


def test_a_secret_is_taken_off_the_command_line() -> None:
    """What is called a token goes by environment; a public key and plain values stay."""
    words, secrets = split_secrets(["JUPYTER_TOKEN=abc", "HF_TOKEN", "SSH_PUBLIC_KEY=k", "A=b=c"])
    assert words == ("JUPYTER_TOKEN", "HF_TOKEN", "SSH_PUBLIC_KEY=k", "A=b=c")
    assert secrets == {"JUPYTER_TOKEN": "abc"}


def test_a_variable_without_a_name_is_refused() -> None:
    """-e needs a name that a shell would take."""
    with refused("env-name-invalid", code=2):
        split_secrets(["=x"])


def test_an_ipv6_address_is_bracketed() -> None:
    """Docker reads the port after the last bracket."""
    assert Port(22, 2222, "::1").words == "[::1]:2222:22"
