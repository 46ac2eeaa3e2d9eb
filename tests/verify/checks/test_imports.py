"""Packages that cannot be imported are named with their error; warnings are shown, not judged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.verify.checks.test_image import is_failure
from tests.verify.suite import CLAIMS
from verify.checks.image import imports
from verify.model import Status


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules on the path, under the names that the check imports."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(imports, "MODULES", {"pandas": "fake_pandas", "pillow": "fake_pillow"})
    monkeypatch.setattr(imports, "installed", lambda: {"pandas": "9", "other": "1"})
    yield tmp_path
    sys.modules.pop("fake_pandas", None)


def test_a_broken_compiled_part_is_named(packages: Path) -> None:
    """As the loader words it; a package that is not installed is not a fault."""
    (packages / "fake_pandas.py").write_text("raise ImportError('libx.so: undefined symbol: y\\nmore')")
    verdict = imports.evaluate(imports.probe(), CLAIMS)
    assert is_failure(verdict, "pandas (ImportError: libx.so: undefined symbol: y)")
    assert "pillow" not in verdict.observed


def test_a_warning_is_shown_on_a_pass(packages: Path) -> None:
    """Deprecations are for the package's authors."""
    (packages / "fake_pandas.py").write_text(
        "import warnings\nwarnings.warn('built for NumPy 1')\nwarnings.warn('old', DeprecationWarning)\n"
    )
    verdict = imports.evaluate(imports.probe(), CLAIMS)
    assert (verdict.status, verdict.observed) == (Status.PASS, "1 packages: pandas; warned: pandas: built for NumPy 1")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGILL)", "pandas (the import was killed by SIGILL)"),
        ("import time\ntime.sleep(60)", "pandas (the import hung)"),
    ],
)
def test_an_import_that_kills_or_hangs_is_named(
    packages: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    """It takes its side's other packages along, which are then tried alone and pass."""
    monkeypatch.setattr(imports, "SIDES", 1)
    monkeypatch.setattr(imports, "TIMEOUT", 2.0)
    monkeypatch.setattr(imports, "ALONE", 2.0)
    monkeypatch.setattr(imports, "installed", lambda: {"pandas": "9", "pillow": "9"})
    (packages / "fake_pandas.py").write_text(code)
    (packages / "fake_pillow.py").write_text("")
    verdict = imports.evaluate(imports.probe(), CLAIMS)
    assert is_failure(verdict, words)
    assert "pillow" not in verdict.observed


def test_nothing_installed_is_a_skip() -> None:
    """An image without any of them is not ours to judge."""
    assert imports.evaluate({"imported": {}}, CLAIMS).status is Status.SKIP
