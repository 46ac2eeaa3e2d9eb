"""One definition of a secret, as its three users apply it: the host's docker line, SSH sessions, `verify env`."""

from __future__ import annotations

import pytest

from entrypoints.gpuyard_start import secret_names as copied
from entrypoints.gpuyard_start.ssh import sessions
from gpuyard import paths
from gpuyard.engine.start import split_secrets
from verify import environment, secret_names

SECRET_TEXT = """
    DB_PASS WANDB_KEY HF_PAT SSH_PASSPHRASE BASIC_AUTH PGPASSWORD AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID
    AWS_SESSION_TOKEN HF_TOKEN HUGGING_FACE_HUB_TOKEN GITHUB_TOKEN GITLAB_TOKEN NPM_AUTHTOKEN WANDB_API_KEY
    OPENAI_API_KEY OPENAIAPIKEY COMET_API_KEY NEPTUNE_API_TOKEN MLFLOW_TRACKING_PASSWORD MYSQL_PWD DATABASE_PASSWD
    db_password SENTRY_DSN SLACK_WEBHOOK_URL SESSION_COOKIE CLIENT_SECRET GOOGLE_CREDENTIALS DB_PASS_1 TOKEN2
    DEPLOY_PRIVATE_KEY SSHPASS JWT GH_PAT KAGGLE_KEY NGC_API_KEY
"""
PLAIN_TEXT = """
    PATH HOME KEYBOARD SSH_PUBLIC_KEY PUBLIC_KEY TOKENIZERS_PARALLELISM MONKEY PASSENGER_COUNT GPUYARD_HOST_KEYS
    GPUYARD_PASS HF_TOKEN_FILE JUPYTER_TOKEN_FILE AWS_SHARED_CREDENTIALS_FILE HF_TOKEN_PATH SSH_AUTH_SOCK MAX_TOKENS
    NUM_KEY_VALUE_HEADS TOKENS_PER_BATCH PGPASSFILE GIT_ASKPASS AUTHOR XAUTHORITY BYPASS COMPASS PATTERN PATIENCE
    NVIDIA_VISIBLE_DEVICES NCCL_IB_PKEY PYTORCH_VERSION OMP_NUM_THREADS XDG_SESSION_ID TORCH_HOME PASSES KEYNOTE
"""
SECRET, PLAIN = SECRET_TEXT.split(), PLAIN_TEXT.split()
OF_EACH_SESSION = {"SSH_PUBLIC_KEY", "PUBLIC_KEY", "JUPYTER_TOKEN_FILE", "GPUYARD_HOST_KEYS", "GPUYARD_PASS"}
"""What the start never passes on, secret or not."""


@pytest.mark.parametrize(("name", "secret"), [*((name, True) for name in SECRET), *((name, False) for name in PLAIN)])
def test_the_three_rooms_agree(name: str, secret: bool) -> None:
    """Off the docker line, out of the sessions, masked in the page; or in all three as it is."""
    value = "plain"
    words, kept_back = split_secrets([f"{name}={value}"])
    assert (words, bool(kept_back)) == ((name,) if secret else (f"{name}={value}",), secret)
    assert (environment.masked({name: value})[name] == secret_names.MASK) is secret
    if name not in OF_EACH_SESSION:
        variables, secrets = sessions.select({name: value})
        assert (name in secrets, name in variables) == (secret, not secret)


def test_the_table_is_large_enough() -> None:
    """Thirty names each way."""
    assert min(len(set(SECRET)), len(set(PLAIN))) >= 30


def test_the_starts_copy_is_the_suites_file() -> None:
    """A container's start must not depend on the suite, so it has the same file beside it."""
    there = paths.ROOT / "entrypoints" / "gpuyard_start" / "secret_names.py"
    assert there.read_text() == (paths.ROOT / "verify" / "secret_names.py").read_text()
    assert copied.is_secret("HF_TOKEN")


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("http://me:hush@proxy:3128", True),
        ("postgresql://me:hush@db/x", True),
        ("use hf_hushhushhush here", True),
        ("http://proxy:3128", False),
        ("a=b", False),
    ],
)
def test_a_secret_is_known_by_its_form_too(value: str, secret: bool) -> None:
    """A plain name with a password in its value goes by environment, and is masked in the page."""
    words, kept_back = split_secrets([f"SOMETHING={value}"])
    assert (words == ("SOMETHING",), "SOMETHING" in kept_back) == (secret, secret)
    assert (environment.masked({"SOMETHING": value})["SOMETHING"] == value) is not secret
