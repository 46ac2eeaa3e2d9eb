"""BuildKit, asked for an image as an OCI layout in a tar file."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from gpuyard.engine import daemon
from gpuyard.errors import UserError


def bake_oci(definition: dict[str, Any], target: str, out: Path, no_cache: bool = False, options: str = "") -> None:
    """Builds one target of a bake definition into ``out``. Raises UserError; BuildKit's own output is above it."""
    daemon.ensure_buildx()
    definition["target"][target]["output"] = [f"type=oci,dest={out}{options}"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "docker-bake.json")
        file.write_text(json.dumps(definition))
        command = ["docker", "buildx", "bake", "--file", str(file), target, *(["--no-cache"] if no_cache else [])]
        env = {**os.environ, "BUILDX_NO_DEFAULT_LOAD": "1"}
        code = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, env=env).returncode
    if code:
        raise UserError("build-failed", f"the build of {target} failed (docker buildx bake, exit {code}); see above")
