"""The suite in an image that is not ours: as one zip file, mounted read-only, under the image's own Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import zipapp
from collections.abc import Sequence
from pathlib import Path

from gpuyard import paths
from gpuyard.engine.start import Gpus
from gpuyard.errors import UserError
from verify.engine.verdict import NOT_RUN
from verify.report.report import Report

INSIDE = "/gpuyard-verify.pyz"
PYTHONS = "python python3 /opt/venv/bin/python /opt/conda/bin/python /usr/bin/python3"
FIND = (
    f'for python in {PYTHONS}; do if command -v "$python" >/dev/null 2>&1; then '
    f'exec "$python" -B {INSIDE} "$@"; fi; done; echo "verify: this image has no Python (3.9 or newer)" >&2; exit 2'
)
REFUSED, NO_SHELL = 125, (126, 127)
"""What docker run itself ends with; the suite never does."""
MAIN = "import sys\nfrom verify.cli import main\nsys.exit(main(sys.argv[1:]))\n"


def is_reference(word: str) -> bool:
    """Whether the word names an image by tag, digest or registry, not one of the catalogue."""
    return any(sign in word for sign in ":/@")


def zip_suite(target: Path) -> Path:
    """The suite as one file that any Python from 3.9 on runs: ``python3 verify.pyz``."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(paths.ROOT / "verify", root / "verify", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "__main__.py").write_text(MAIN)
        target.parent.mkdir(parents=True, exist_ok=True)
        zipapp.create_archive(root, target, interpreter="/usr/bin/env python3", compressed=True)
    target.chmod(0o755)
    return target


def command(reference: str, suite: Path, gpus: Gpus, shm: str, arguments: Sequence[str]) -> list[str]:
    """The `docker run` line that diagnoses the image; nothing of the image is started or changed."""
    mount = f"{suite}:{INSIDE}:ro"
    options = ["docker", "run", "--rm", *gpus.words(), "--shm-size", shm, "--volume", mount, "--entrypoint", "sh"]
    return [*options, reference, "-c", FIND, "sh", *arguments]


def diagnose(reference: str, gpus: Gpus, shm: str, arguments: Sequence[str]) -> Report:
    """The suite's report about the image. Raises UserError if the image is not there, cannot start or has no Python."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        line = command(reference, zip_suite(Path(folder) / "verify.pyz"), gpus, shm, ["--json", "-", *arguments])
        done = subprocess.run(line, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode == REFUSED:
        raise UserError(
            "image-not-runnable",
            f"{reference}: the engine could not run it; see its reason above. List local images: docker images",
        )
    if done.returncode in NO_SHELL:
        raise UserError(
            "image-not-runnable",
            f"{reference}: the engine could not start sh in it (exit {done.returncode}); is it a Linux image with sh?",
        )
    try:
        return Report.from_dict(json.loads(done.stdout))
    except ValueError:
        raise UserError(
            "suite-without-report",
            f"{reference}: the suite ended without a report (exit {done.returncode}); see its message above",
            exit_code=done.returncode or NOT_RUN,
        ) from None


if __name__ == "__main__":
    print(zip_suite(Path("verify.pyz")))
