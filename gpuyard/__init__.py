"""gpuyard: the host CLI that builds, starts, verifies and reports PyTorch + CUDA images."""

import os
import sys

if not os.environ.get("DOCKER_HOST", "").startswith("ssh://"):
    # The engine's SDK imports an SSH client, half of its own time, for engines behind SSH alone; it allows for
    # the lack of one.
    sys.modules.setdefault("docker.transport.sshconn", None)  # type: ignore[arg-type]
