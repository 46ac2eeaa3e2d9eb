"""What the operating system of the image brings: programs, locales, a place for screen, and nothing left over."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest
from docker.models.containers import Container

from gpuyard.catalogue.claims import LICENSES
from gpuyard.render.troubleshooting import WAV
from tests.containers import Run, Runner

pytestmark = pytest.mark.image
USERS = ["1000:1000", "0:0", "23456:23456", "12345:0"]
PROGRAMS = "curl g++ gcc git git-lfs jupyter make ninja rsync screen ssh /usr/sbin/sshd tmux unzip uv wget"
FLAGS = {"/usr/sbin/sshd": "-V", "ssh": "-V", "tmux": "-V", "unzip": "-v"}
BEFORE = """
import numpy, torch, torchaudio, scipy.io.wavfile as wav
sound = torch.sin(torch.arange(1600) / 16000 * 440 * 6.2832).unsqueeze(1).repeat(1, 2).numpy()
wav.write("in.wav", 16000, sound)
"""
AFTER = """
assert numpy.array_equal(wav.read("out.wav")[1], sound)
print(rate, tuple(torchaudio.transforms.MelSpectrogram(rate, n_fft=400)(waveform).shape))
"""
INLINE = """
from torch.utils.cpp_extension import load_inline
source = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
import torch
print(load_inline("twice", cpp_sources=source, functions=["twice"]).twice(torch.ones(2)).tolist())
"""


@pytest.fixture(scope="module")
def shell(run_container: Runner) -> Iterator[Container]:
    """A container that only waits."""
    with run_container(["sleep", "infinity"]) as container:
        yield container


def said(container: Container, command: str, user: str = "1000:1000") -> str:
    """What a command printed, both streams together; it succeeded."""
    code, output = container.exec_run(["bash", "-c", command], user=user)
    assert code == 0, output.decode()
    return str(output.decode())


@pytest.mark.parametrize("program", PROGRAMS.split())
def test_a_promised_program_starts(shell: Container, program: str) -> None:
    """It is on the PATH, or in sbin for sshd, and its libraries are there."""
    assert said(shell, f"{program} {FLAGS.get(program, '--version')}")


def test_python_makes_environments_with_a_pip(shell: Container) -> None:
    """python -m venv needs ensurepip, which Debian packages apart."""
    assert said(shell, "python -m venv /tmp/own && /tmp/own/bin/pip --version").startswith("pip ")


@pytest.mark.parametrize("name", ["zh_CN.UTF-8", "en_US.UTF-8", "de_DE.UTF-8", "C.UTF-8"])
def test_a_usual_locale_is_taken_without_a_warning(shell: Container, name: str) -> None:
    """By bash and by Python, with UTF-8 letters; a locale that is not there is still warned of."""
    ask = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.nl_langinfo(locale.CODESET))"
    assert said(shell, f'export LC_ALL={name}; bash -c true; python -c "{ask}"') == "UTF-8\n"
    assert "cannot change locale" in said(shell, "LC_ALL=xx_YY.UTF-8 bash -c true")


@pytest.mark.parametrize("user", USERS)
def test_screen_starts_for_every_user(run: Run, user: str) -> None:
    """Its folder is open to all, and each has one of its own there."""
    # The session's socket appears a moment after the command has returned.
    script = "screen -dmS work sleep 60; timeout 20 sh -c 'until screen -ls | grep .work; do sleep 0.1; done'"
    ended = run("bash", "-c", script, user=user, environment={"GPUYARD_ALLOW_ROOT": "yes"})
    assert (ended.code, ".work" in ended.stdout) == (0, True), ended.stdout + ended.stderr


def test_nothing_is_left_of_the_installation(shell: Container) -> None:
    """Neither locks nor package lists, and no static libraries of Python."""
    unwanted = "-path '/var/*' -name 'lock*' -o -path '/var/lib/apt/lists/*' -o -name 'libpython*.a'"
    assert said(shell, f"find / -xdev -type f \\( {unwanted} \\)", user="0:0") == ""


def test_a_wav_file_is_read_and_written_as_documented(run: Run) -> None:
    """By SciPy: torchaudio.load needs TorchCodec and FFmpeg. torchaudio's transforms take what SciPy reads."""
    page = WAV.removeprefix("```python\n").removesuffix("```\n")
    ended = run("python", "-c", BEFORE + page + AFTER, working_dir="/tmp")
    assert (ended.code, ended.stdout) == (0, "16000 (2, 128, 9)\n"), ended.stderr


@pytest.mark.full
def test_torch_compiles_an_extension_from_a_string(run: Run) -> None:
    """load_inline refuses to work without ninja."""
    ended = run("python", "-c", INLINE, timeout=300)
    assert (ended.code, ended.stdout) == (0, "[2.0, 2.0]\n"), ended.stderr


def test_the_command_is_an_empty_list(docker_client: docker.DockerClient, image: str) -> None:
    """DockerSpawner adds its arguments to it, which fails on null."""
    assert docker_client.images.get(image).attrs["Config"]["Cmd"] == []


def test_the_labels_name_licences(docker_client: docker.DockerClient, image: str) -> None:
    """A registry's page and a licence scanner read them."""
    assert docker_client.images.get(image).labels["org.opencontainers.image.licenses"] == LICENSES
