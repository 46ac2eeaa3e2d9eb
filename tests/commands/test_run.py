"""`gpuyard run` as it is typed."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.catalogue import table as catalogue
from gpuyard.cli import main
from gpuyard.commands.using.run import remapped, volumes
from gpuyard.engine import mounts
from gpuyard.indexes import CA_VARIABLES
from tests.engine.test_preflight import key_pair
from tests.refusals import refused


@dataclass(frozen=True)
class Done:
    """What a call of the CLI ended with."""

    code: int
    out: str
    err: str


Call = Callable[..., Done]
Line = Callable[..., list[str]]


@pytest.fixture
def gpuyard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the CLI as the shell would, in the checkout, without an engine or certificates of a company's."""
    for variable in CA_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(paths.ROOT)
    monkeypatch.setattr("gpuyard.engine.daemon.answers", lambda: False)

    def call(*words: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        captured = capsys.readouterr()
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def line(gpuyard: Call) -> Line:
    """The docker line that a dry run prints, as words."""

    def dry(*words: str) -> list[str]:
        done = gpuyard("run", "--gpus", "none", "--dry-run", *words)
        assert done.code == 0, done.err
        return shlex.split(done.out)

    return dry


def test_a_plain_run_opens_jupyter_on_this_machine_only(line: Line) -> None:
    """No key, so no SSH port; the default image; nothing bound to other addresses."""
    words = line()
    table = catalogue.load()
    assert words[-1] == table.tag(table.default_line, "workbench")
    assert [word for word in words if word.startswith("--publish")] == ["--publish=127.0.0.1:8888:8888"]


def test_a_key_opens_the_ssh_port_too(line: Line, tmp_path: Path) -> None:
    """The public key goes along by variable and 2222 is published."""
    public = key_pair(tmp_path)[1]
    words = line("--ssh-key", str(public), "--ssh-port", "2200")
    assert "--publish=127.0.0.1:2200:2222" in words
    assert f"--env=SSH_PUBLIC_KEY={public.read_text().strip()}" in words


def test_after_two_dashes_stands_the_command_and_no_service_port(line: Line) -> None:
    """A command is not taken for a line, and its options are not ours."""
    words = line("--", "python", "train.py", "--gpus", "8")
    assert words[-4:] == ["python", "train.py", "--gpus", "8"]
    assert not [word for word in words if word.startswith("--publish")]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["python", "train.py", "--epochs", "3"], ["python", "train.py", "--epochs", "3"]),
        (["2.9", "python", "train.py", "--gpus", "8"], ["python", "train.py", "--gpus", "8"]),
        (["2.9", "--shm-size", "1g", "bash"], ["bash"]),
        (["torchrun", "x.py", "--", "-v"], ["torchrun", "x.py", "--", "-v"]),
    ],
)
def test_a_command_needs_no_dashes_before_it(line: Line, words: list[str], command: list[str]) -> None:
    """As in docker run: the first word that is neither an option nor a line begins it."""
    found = line(*words)
    assert found[-len(command) :] == command
    assert found[-len(command) - 1] == catalogue.load().tag("2.9", "workbench")


def test_a_line_may_stand_before_options(line: Line) -> None:
    """What follows it is not taken for a command."""
    found = line("2.9", "--shm-size", "1g")
    assert "--shm-size=1g" in found
    assert found[-1] == catalogue.load().tag("2.9", "workbench")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--jupyter-port", "8888", "--", "true"], "--jupyter-port"),
        (["--ssh-port", "2222"], "--ssh-port"),
        (["--image", "runtime", "--bind", "0.0.0.0"], "--bind"),
        (["--ssh-key", "KEY", "true"], "--ssh-key"),
    ],
)
def test_an_option_of_a_service_that_will_not_run_is_refused(
    gpuyard: Call, tmp_path: Path, words: list[str], option: str
) -> None:
    """Also where its value is the default's: it was asked for and would change nothing."""
    key = str(key_pair(tmp_path)[1])
    done = gpuyard("run", "--dry-run", "--gpus", "none", *(key if word == "KEY" else word for word in words))
    assert done.code == 2
    assert f"error[option-without-effect]: {option} " in done.err


def test_words_after_dashes_are_refused_where_no_command_takes_them(gpuyard: Call) -> None:
    """`gpuyard verify -- x` would drop them."""
    done = gpuyard("verify", "--", "x")
    assert (done.code, "error[words-after-dashes]" in done.err) == (2, True)


def test_the_memory_limit_is_dockers(line: Line) -> None:
    """--memory reaches docker's line; what is not a size is refused with the option's name."""
    assert "--memory=4g" in line("--memory", "4g", "--shm-size", "1g")


def test_a_missing_folder_is_refused_in_a_dry_run_too(gpuyard: Call) -> None:
    """The printed line would not do what it says: docker makes an empty folder of root's."""
    done = gpuyard("run", "--dry-run", "-v", "/no/such:/mnt/data")
    assert done.code == 1
    assert "error[mount-source-missing]: -v /no/such" in done.err


def test_the_runtime_image_has_no_service_port(line: Line) -> None:
    """The catalogue knows which image has services."""
    words = line("--image", "runtime")
    assert words[-1].endswith("-runtime")
    assert not [word for word in words if word.startswith("--publish")]


def test_a_token_is_in_no_printed_line(line: Line) -> None:
    """The name is passed through, the value is not on the line."""
    words = line("-e", "JUPYTER_TOKEN=hush-hush")
    assert "--env=JUPYTER_TOKEN" in words
    assert "hush-hush" not in shlex.join(words)


def test_here_mounts_the_folder_where_jupyter_starts(line: Line) -> None:
    """--here is this folder at /workspace."""
    assert f"--volume={paths.ROOT}:/workspace" in line("--here")


def test_two_mounts_at_the_workspace_are_refused() -> None:
    """--here beside a -v at the same place is a contradiction; one elsewhere is not."""
    with refused("workspace-mounted-twice", code=2):
        volumes(["/a:/workspace:ro"], Path("/b"), True, None)
    assert volumes(["/a:/mnt/data"], Path("/b"), True, None) == (("/a:/mnt/data", "/b:/workspace"), [])


def test_the_log_inside_is_told_another_port_of_this_host(line: Line) -> None:
    """The link that the container shows must be one that works here; a user's own word comes later and wins."""
    assert "--env=JUPYTER_LINK=http://127.0.0.1:9999" in line("--jupyter-port", "9999")
    assert not [word for word in line() if "JUPYTER_LINK" in word]
    assert "--env=JUPYTER_LINK=http://[::1]:8888" in line("--bind", "::1")


@pytest.mark.parametrize("source", ["./data", "data/raw", "~/data", "../x/data"])
def test_a_relative_folder_is_mounted_by_its_full_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    """Docker would take some of these for a volume's name and refuse others."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x").mkdir()
    for folder in ("data", "x/data", "x/data/raw"):
        (tmp_path / folder).mkdir(exist_ok=True)
    mount = mounts.resolved(f"{source}:/mnt/data:ro", tmp_path / "x")
    assert Path(mount.split(":")[0]).is_dir()
    assert mount.endswith("data:/mnt/data:ro") or mount.endswith("data/raw:/mnt/data:ro")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A typing error would become an empty volume or a folder of root's."""
    with refused("mount-source-missing", tmp_path / "dta", code=2):
        mounts.resolved("./dta:/x", tmp_path)
    with refused("mount-source-missing", "mkdir -p /no/such"):
        mounts.refuse_missing(("data:/x", "/no/such:/x"))
    mounts.refuse_missing(("data:/x", f"{tmp_path}:/x", "/anonymous"))


def test_a_volume_with_a_folders_name_is_told(tmp_path: Path) -> None:
    """It is docker's volume that is mounted; names of no folder are nobody's concern."""
    (tmp_path / "data").mkdir()
    said = mounts.notice("data:/mnt/data", tmp_path)
    assert said is not None
    assert said.endswith("for the folder write -v ./data:/mnt/data")
    assert mounts.notice("models:/mnt/models", tmp_path) is None


def certificate(folder: Path) -> Path:
    """A certificate as a company's authority has it."""
    file = folder / "ca.pem"
    ends = ["-keyout", "/dev/null", "-out", str(file)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Example", "-days", "2"]
    subprocess.run([*command, *ends], check=True, capture_output=True)
    return file


def test_a_companys_certificates_are_handed_on(line: Line, tmp_path: Path) -> None:
    """Mounted read-only, and named by the variable that the container's start reads."""
    file = certificate(tmp_path)
    words = line("--ca", str(file))
    assert f"--volume={file}:/etc/gpuyard/ca.pem:ro" in words
    assert "--env=GPUYARD_CA=/etc/gpuyard/ca.pem" in words


@pytest.mark.parametrize(
    "text", ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", None], ids=str
)
def test_a_file_of_no_certificates_is_refused(gpuyard: Call, tmp_path: Path, text: str | None) -> None:
    """Empty, other text, damaged, missing: in one line."""
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    done = gpuyard("run", "--dry-run", "--ca", str(file))
    assert (done.code, done.out) == (1, "")
    assert "error[ca-not-pem]" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["0.1"], 2, "0.1"),
        (["--image", "base"], 2, "base"),
        (["--image", "workbnch"], 2, "workbench"),
        (["--gpus", "some"], 2, "error[gpus-invalid]"),
        (["--shm-size", "lots"], 2, "error[size-invalid]: --shm-size"),
        (["--memory", "lots"], 2, "error[size-invalid]: --memory"),
        (["--ssh-key", "/none.pub"], 1, "error[ssh-key-unreadable]"),
        (["--jupyter-port", "99999"], 2, "error[port-invalid]"),
    ],
)
def test_wrong_words_end_in_one_line(gpuyard: Call, words: list[str], code: int, said: str) -> None:
    """What was wrong and what is expected, on one line, without a traceback."""
    done = gpuyard("run", "--dry-run", *words)
    assert done.code == code
    assert done.out == ""
    assert done.err.startswith("gpuyard: ")
    assert len(done.err.splitlines()) == 1
    assert said in done.err


def test_a_folder_of_another_user_becomes_that_users_container(tmp_path: Path) -> None:
    """`--here` in somebody's folder: the container's user takes its ids, so that both can write."""
    os.chown(tmp_path, 1234, 2345)
    assert remapped(tmp_path) == ("root", ["GPUYARD_UID=1234", "GPUYARD_GID=2345"])


@pytest.mark.parametrize("owner", [0, 1000])
def test_a_folder_of_roots_or_trainers_needs_no_other_user(tmp_path: Path, owner: int) -> None:
    """Ours already fits, and root's ids are given to nobody."""
    os.chown(tmp_path, owner, owner)
    assert remapped(tmp_path) == (None, [])
