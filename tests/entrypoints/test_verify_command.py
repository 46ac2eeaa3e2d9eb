"""'docker run IMAGE verify' runs the image's own suite, whatever lies around."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers import Run

from .services.test_services_running import HARD

pytestmark = pytest.mark.image


def test_a_users_own_verify_is_not_taken_for_the_suite(run: Run, tmp_path: Path) -> None:
    """Neither in the working folder nor on PYTHONPATH."""
    tmp_path.chmod(0o755)
    (tmp_path / "verify").mkdir()
    (tmp_path / "verify" / "__init__.py").touch()
    (tmp_path / "verify" / "__main__.py").write_text("print('trap')")
    (tmp_path / "torch.py").write_text("print('trap')")
    volumes = {str(tmp_path): {"bind": "/workspace", "mode": "ro"}}
    ended = run("verify", "--list", volumes=volumes, environment={"PYTHONPATH": "/workspace"})
    assert ended.code == 0
    assert "trap" not in ended.stdout
    assert len(ended.stdout.splitlines()) > 10


def test_the_suite_runs_with_as_little_as_possible(run: Run) -> None:
    """No network, no capability, nothing to write to but memory."""
    ended = run("verify", "--quick", network_mode="none", **HARD)
    assert ended.code == 0, ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr


def test_the_suites_exit_code_is_the_containers(run: Run) -> None:
    """2 is its code for a usage error."""
    assert run("verify", "--no-such-option").code == 2
