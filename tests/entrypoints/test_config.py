"""What the environment and the arguments ask for, and every way to ask for something impossible."""

from __future__ import annotations

from pathlib import Path

import pytest

from entrypoints.gpuyard_start import config
from entrypoints.gpuyard_start.errors import Refusal
from entrypoints.gpuyard_start.jupyter import config as jupyter_config

WORKBENCH: dict[str, object] = {"services": ["jupyter", "ssh"]}
RUNTIME: dict[str, object] = {"services": []}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
HASH = "argon2:$argon2id$v=19$m=10240,t=10,p=8$c2FsdA$aGFzaA"


def read(env: dict[str, str], *argv: str, image: dict[str, object] = WORKBENCH) -> config.Config:
    """The configuration for an environment, with no key file anywhere."""
    return config.read(argv, env, image, Path("/nonexistent"))


def test_no_command_means_the_services_of_the_image() -> None:
    """Without a key SSH stays off; with one it is on."""
    assert read({}).services == ("jupyter",)
    assert read({"SSH_PUBLIC_KEY": KEY}).services == ("jupyter", "ssh")
    assert read({}, image=RUNTIME).services == ()


def test_a_command_starts_no_service_unless_asked() -> None:
    """The key alone turns nothing on; GPUYARD_SERVICES does."""
    assert read({"SSH_PUBLIC_KEY": KEY}, "python", "train.py").services == ()
    asked = {"SSH_PUBLIC_KEY": KEY, "GPUYARD_SERVICES": "ssh, jupyter"}
    assert read(asked, "python", "train.py").services == ("jupyter", "ssh")


def test_a_command_without_services_does_not_look_at_their_settings() -> None:
    """A bad token or port can't stop a training run that has no use for it."""
    assert read({"JUPYTER_TOKEN": "", "JUPYTER_PORT": "x", "SSH_PUBLIC_KEY": "x"}, "true").services == ()


def test_two_starts_have_different_tokens() -> None:
    """The random token is made per start and long enough not to be guessed."""
    first, second = read({}).jupyter, read({}).jupyter
    assert first is not None
    assert second is not None
    assert first.token_is_random
    assert first.token != second.token
    assert len(first.token) == 2 * jupyter_config.TOKEN_BYTES


def test_a_given_token_is_kept_and_a_files_line_end_is_not(tmp_path: Path) -> None:
    """JUPYTER_TOKEN_FILE is for secrets that Docker or Kubernetes mount."""
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    for env in ({"JUPYTER_TOKEN": "s3cret"}, {"JUPYTER_TOKEN_FILE": str(file), "JUPYTER_TOKEN": ""}):
        jupyter = read(env).jupyter
        assert jupyter is not None
        assert (jupyter.token, jupyter.token_is_random) == ("s3cret", False)


def test_no_login_is_possible_only_when_said_in_words() -> None:
    """An empty token together with JUPYTER_ALLOW_NO_AUTH=yes; the permission alone changes nothing."""
    opened = read({"JUPYTER_TOKEN": "", "JUPYTER_ALLOW_NO_AUTH": "yes"}).jupyter
    allowed = read({"JUPYTER_ALLOW_NO_AUTH": "yes"}).jupyter
    assert opened is not None
    assert allowed is not None
    assert opened.token == ""
    assert allowed.token_is_random


@pytest.mark.parametrize("given", ["lab/alice", "/lab/alice", "lab/alice/", "//lab/alice//"])
def test_a_base_url_is_one_path_however_it_is_written(given: str) -> None:
    """Unset and / mean the root."""
    asked, plain = read({"JUPYTER_BASE_URL": given}).jupyter, read({"JUPYTER_BASE_URL": "/"}).jupyter
    assert asked is not None
    assert plain is not None
    assert (asked.base_url, plain.base_url) == ("/lab/alice/", "/")


def test_a_password_hash_takes_the_place_of_a_token() -> None:
    """There is no random token beside it that the log would have to show."""
    found = read({"JUPYTER_PASSWORD_HASH": HASH}).jupyter
    assert found is not None
    assert (found.password_hash, found.token, found.token_is_random) == (HASH, "", False)


@pytest.mark.parametrize(
    ("env", "id", "named"),
    [
        ({"JUPYTER_TOKEN": ""}, "token-empty", "JUPYTER_TOKEN"),
        ({"JUPYTER_TOKEN": "", "JUPYTER_ALLOW_NO_AUTH": "no"}, "token-empty", "JUPYTER_TOKEN"),
        ({"JUPYTER_ALLOW_NO_AUTH": "perhaps"}, "setting-invalid", "JUPYTER_ALLOW_NO_AUTH"),
        ({"JUPYTER_TOKEN": "a b"}, "token-invalid", ""),
        ({"JUPYTER_TOKEN": "é"}, "token-invalid", ""),
        ({"JUPYTER_TOKEN_FILE": "/nonexistent/t"}, "token-file-unusable", "JUPYTER_TOKEN_FILE"),
        ({"JUPYTER_TOKEN_FILE": "/dev"}, "token-file-unusable", "JUPYTER_TOKEN_FILE"),
        ({"JUPYTER_TOKEN_FILE": "/dev/null"}, "token-file-unusable", "JUPYTER_TOKEN_FILE"),
        ({"JUPYTER_TOKEN_FILE": "/dev/null", "JUPYTER_TOKEN": "x"}, "settings-conflict", "JUPYTER_TOKEN"),
        ({"JUPYTER_PORT": "80a"}, "setting-invalid", "JUPYTER_PORT"),
        ({"JUPYTER_PORT": "0"}, "setting-invalid", "JUPYTER_PORT"),
        ({"JUPYTER_PORT": "65536"}, "setting-invalid", "JUPYTER_PORT"),
        ({"JUPYTER_PORT": "-1"}, "setting-invalid", "JUPYTER_PORT"),
        ({"JUPYTER_PORT": "٣"}, "setting-invalid", "JUPYTER_PORT"),
        ({"GPUYARD_SSH_PORT": "99999"}, "setting-invalid", "GPUYARD_SSH_PORT"),
        ({"JUPYTER_PORT": "2222", "SSH_PUBLIC_KEY": KEY}, "settings-conflict", "JUPYTER_PORT"),
        ({"JUPYTER_PORT": "22", "SSH_PUBLIC_KEY": KEY}, "settings-conflict", "JUPYTER_PORT"),
        ({"SSH_PUBLIC_KEY": "nonsense"}, "login-key-invalid", "SSH_PUBLIC_KEY"),
        ({"PUBLIC_KEY": f"{KEY}\nnonsense"}, "login-key-invalid", "PUBLIC_KEY"),
        ({"GPUYARD_SERVICES": "jupyter,vnc"}, "setting-invalid", "GPUYARD_SERVICES"),
        ({"GPUYARD_SERVICES": "ssh"}, "login-key-missing", "SSH_PUBLIC_KEY"),
        ({"GPUYARD_SSH_STRICT": "a bit", "SSH_PUBLIC_KEY": KEY}, "setting-invalid", "GPUYARD_SSH_STRICT"),
        ({"JUPYTER_PASSWORD_HASH": "letmein"}, "password-hash-invalid", "JUPYTER_PASSWORD_HASH"),
        ({"JUPYTER_PASSWORD_HASH": "argon2:=19,t=10"}, "password-hash-invalid", "JUPYTER_PASSWORD_HASH"),
        ({"JUPYTER_PASSWORD_HASH": HASH, "JUPYTER_TOKEN": "x"}, "settings-conflict", "JUPYTER_PASSWORD_HASH"),
        ({"JUPYTER_BASE_URL": "http://host/lab"}, "setting-invalid", "JUPYTER_BASE_URL"),
        ({"JUPYTER_BASE_URL": "/a/../b"}, "setting-invalid", "JUPYTER_BASE_URL"),
        ({"JUPYTER_BASE_URL": "/a b"}, "setting-invalid", "JUPYTER_BASE_URL"),
        ({"JUPYTER_ALLOW_ORIGIN": "*"}, "setting-invalid", "JUPYTER_ALLOW_ORIGIN"),
        ({"JUPYTER_ALLOW_ORIGIN": "https://a.example,lab"}, "setting-invalid", "JUPYTER_ALLOW_ORIGIN"),
        ({"JUPYTER_KEYFILE": "/k"}, "settings-conflict", "JUPYTER_KEYFILE"),
        ({"GPUYARD_HOST_KEYS": "keys", "SSH_PUBLIC_KEY": KEY}, "setting-invalid", "GPUYARD_HOST_KEYS"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(env: dict[str, str], id: str, named: str) -> None:
    """With its id, the variable's name and the usage code."""
    with pytest.raises(Refusal) as refusal:
        read(env)
    assert refusal.value.id == id
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert refusal.value.code == 2


def test_a_service_that_the_image_lacks_is_refused() -> None:
    """The runtime image ships none, and says which image does."""
    with pytest.raises(Refusal) as refusal:
        read({"GPUYARD_SERVICES": "jupyter"}, "true", image=RUNTIME)
    assert refusal.value.id == "service-not-in-image"
    assert "jupyter" in str(refusal.value)


def test_damaged_claims_are_refused_and_missing_ones_offer_nothing(tmp_path: Path) -> None:
    """A broken image.json is the image's fault and is called that."""
    file = tmp_path / "image.json"
    assert config.offered_services(config.claims(file)) == ()
    file.write_text("{")
    with pytest.raises(Refusal) as refusal:
        config.claims(file)
    assert refusal.value.id == "image-damaged"
