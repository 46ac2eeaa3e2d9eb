"""The commands of docs/publish.md about a registry do what it says; tests/docs/test_printed.py parses the others."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from gpuyard.catalogue.table import Catalogue
from gpuyard.publish import publisher
from gpuyard.publish.signing import Signer
from tests.docs.pages import Command, blocks
from tests.publish.conftest import Ordering, gpuyard, quiet

PAGE = "publish.md"
EXAMPLE = "127.0.0.1:5000/pytorch-cuda"


def commands(need: str) -> list[Command]:
    """The page's commands of a kind."""
    return [command for block in blocks(PAGE) if block.need == need for command in block.commands]


def test_the_commands_about_a_registry_do_what_the_page_says(
    host: str, name: str, ordering: Ordering, keys: dict[str, Path], tmp_path: Path, table: Catalogue
) -> None:
    """Each of them, on the small image, signed."""
    publisher.publish(ordering(f"{host}/{name}", Signer.of(keys["ours"])), quiet)
    (tmp_path / "cosign.pub").write_bytes(keys["ours"].with_suffix(".pub").read_bytes())
    for command in commands("registry"):
        text = " ".join(command.words).replace(EXAMPLE, f"{host}/{name}").replace(f"v{table.default_line}", "v9.9")
        words = shlex.split(text)
        if words[0] == "gpuyard":
            done = gpuyard(*words[1:], folder=tmp_path)
        else:
            words += ["--plain-http"] if words[0] == "oras" else []
            done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, (text, done.stderr)
