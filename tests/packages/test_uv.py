"""uv for builds: from the one fetcher, by the host's lock, extracted once."""

from __future__ import annotations

import zipfile
from pathlib import Path
from unittest.mock import Mock

from gpuyard.catalogue.table import Catalogue
from gpuyard.packages import uv
from gpuyard.packages.fetcher import Fetcher
from gpuyard.store.store import Store
from tests.refusals import refused


def test_the_program_is_extracted_once(table: Catalogue, tmp_path: Path) -> None:
    """From the wheel of the catalogue's version, as a program; the second call asks nobody."""
    with zipfile.ZipFile(tmp_path / "uv.whl", "w") as wheel:
        wheel.writestr("uv-1.data/scripts/uv", "#!/bin/sh\necho uv\n")
    fetcher = Mock(spec=Fetcher, ensure=Mock(return_value=Mock(path=tmp_path / "uv.whl")))
    program = uv.uv_for_images(table.uv, "3.13", Store(tmp_path), fetcher)
    assert program.read_text().endswith("echo uv\n")
    assert program.stat().st_mode & 0o111
    assert fetcher.ensure.call_args.args[0] == uv.locked(table.uv)
    fetcher.ensure.reset_mock()
    assert uv.uv_for_images(table.uv, "3.13", Store(tmp_path), fetcher) == program
    fetcher.ensure.assert_not_called()


def test_a_version_that_the_host_does_not_lock_is_refused() -> None:
    """Its hashes are unknown."""
    with refused("uv-version-mismatch", "0.0.1"):
        uv.locked("0.0.1")
