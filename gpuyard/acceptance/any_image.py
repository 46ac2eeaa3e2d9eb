"""The suite in an image that is not ours: as one zip file, mounted read-only, under the image's own Python."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipapp
from collections.abc import Sequence
from pathlib import Path

from gpuyard import paths
from gpuyard.engine.start import Gpus
from gpuyard.errors import UserError

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


def diagnose(reference: str, gpus: Gpus, shm: str, arguments: Sequence[str]) -> int:
    """Runs the suite in the image and returns its exit code. Raises UserError if it is not there or cannot start."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        suite = zip_suite(Path(folder) / "verify.pyz")
        code = subprocess.run(command(reference, suite, gpus, shm, arguments), check=False).returncode
    if code == REFUSED:
        raise UserError(
            "image-not-runnable",
            f"{reference}: the engine could not run it; see its reason above. List local images: docker images",
        )
    if code in NO_SHELL:
        raise UserError(
            "image-not-runnable",
            f"{reference}: the engine could not start sh in it (exit {code}); is it a Linux image with sh?",
        )
    return code


if __name__ == "__main__":
    print(zip_suite(Path("verify.pyz")))
