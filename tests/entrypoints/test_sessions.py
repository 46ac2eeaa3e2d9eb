"""What SSH sessions see of the container's environment, and that no value is ever executed or shown."""

from __future__ import annotations

import pytest

from entrypoints.gpuyard_start import sessions


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "db_password", "AWS_SECRET_ACCESS_KEY", "GH_PAT", "APIKEY"]
)
def test_a_name_that_says_secret_is_one(name: str) -> None:
    """Credentials are known by a word of their name, in any case."""
    assert sessions.is_secret(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "PATH", "KEYBOARD", "NVIDIA_VISIBLE_DEVICES"])
def test_a_name_that_only_resembles_a_secret_is_none(name: str) -> None:
    """Whole words count, so that a setting which users rely on is not dropped."""
    assert not sessions.is_secret(name)


def test_the_environment_is_sorted_into_passed_secret_and_unfit() -> None:
    """What sshd sets itself is not passed; a value with a newline can't be and is named."""
    env = {"PATH": "/x", "SHLVL": "1", "HF_TOKEN": "t", "TWO": "a\nb", "a-b": "c", "PUBLIC_KEY": "k"}
    found = sessions.select(env)
    assert found.variables == {"PATH": "/x"}
    assert found.secrets == ("HF_TOKEN",)
    assert found.unfit == ("TWO", "a-b")


def test_quotes_and_backslashes_are_escaped_and_nothing_else_is() -> None:
    """sshd reads the rest literally."""
    line = sessions.set_env_line({"A": 'x "y" \\ $(z) `w` #', "b": ""})
    assert line == 'SetEnv "A=x \\"y\\" \\\\ $(z) `w` #" "b="'


def test_a_newline_never_reaches_the_settings_file() -> None:
    """It would begin a setting of its own."""
    with pytest.raises(ValueError, match="TWO can't stand on one line"):
        sessions.set_env_line({"TWO": "a\nPermitRootLogin yes"})
