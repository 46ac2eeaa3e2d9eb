"""The benchmark of the suite times checks that run, not an error."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.bench import verify as bench
from tests.bench.verify import WITHOUT, seconds, small
from tests.verify.suite import verify
from verify.engine.registry import CHECKS


def test_it_takes_required_checks_out_of_the_list_and_nothing_else() -> None:
    """Head and foot of the table are not checks; training, compilers and ranks are left out."""
    found = small(verify("--profile", "cpu", "--list").stdout)
    by_id = {check.id: check for check in CHECKS}
    assert len(found) > 20
    assert {"torch-import", "matmul-cpu"} <= set(found) <= set(by_id)
    assert not [name for name in found if by_id[name].group in WITHOUT]


def test_words_that_fail_have_no_time() -> None:
    """A command that ends at once with an error would be the fastest of all."""
    assert seconds(sys.executable, "-c", "", runs=1) > 0
    with pytest.raises(SystemExit, match="exit code 3"):
        seconds(sys.executable, "-c", "raise SystemExit(3)", runs=1)


def test_it_imports_nothing_of_the_host_where_it_measures() -> None:
    """The file is mounted into a container, which has no gpuyard."""
    tree = ast.parse(Path(str(bench.__file__)).read_text())
    imported = {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not [module for module in imported if module.startswith(("gpuyard", "tests"))]
