"""devcontainer.json: the image as an editor's container, with a GPU where the machine has one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gpuyard.catalogue.table import unknown
from gpuyard.errors import UsageError
from gpuyard.render.work import NAME, REFERENCE

Gpu = Literal["optional", "required", "none"]
GPUS: tuple[str, ...] = get_args(Gpu)
_REQUIREMENTS: dict[str, dict[str, Any]] = {
    "optional": {"hostRequirements": {"gpu": "optional"}},
    "required": {"hostRequirements": {"gpu": True}},
    "none": {},
}


@dataclass(frozen=True)
class Editor:
    """A container for an editor. ``dockerfile``, from the folder of the file, takes the image's place."""

    image: str
    name: str = "train"
    gpu: str = "optional"
    shm: int = 8
    dockerfile: str = ""


def configuration(editor: Editor) -> str:
    """The file's text. Raises UsageError."""
    _check(editor)
    return json.dumps(build(editor), indent=2) + "\n"


def build(editor: Editor) -> dict[str, Any]:
    """The file as plain data."""
    return {
        "name": editor.name,
        **({"build": {"dockerfile": editor.dockerfile}} if editor.dockerfile else {"image": editor.image}),
        **_REQUIREMENTS[editor.gpu],
        "runArgs": [f"--shm-size={editor.shm}g"],
        # The image's own start: the GPU in words, hooks, and the services named below.
        "overrideCommand": False,
        "containerEnv": {"GPUYARD_SERVICES": "jupyter"},
        "remoteUser": "trainer",
        "workspaceFolder": "/workspace",
        "workspaceMount": "source=${localWorkspaceFolder},target=/workspace,type=bind",
        "mounts": [
            {"type": "volume", "source": f"{editor.name}-{place}", "target": f"/mnt/{place}"}
            for place in ("data", "models")
        ],
        "forwardPorts": [8888],
        "portsAttributes": {"8888": {"label": "JupyterLab", "onAutoForward": "silent"}},
        # Said in the log; a machine without a GPU is no reason to stop.
        "postStartCommand": "verify --quick || true",
        "customizations": {
            "vscode": {
                "extensions": ["ms-python.python", "ms-toolsai.jupyter"],
                "settings": {"python.defaultInterpreterPath": "/opt/venv/bin/python"},
            }
        },
    }


def _check(editor: Editor) -> None:
    if editor.gpu not in GPUS:
        raise UsageError(unknown("--gpu", editor.gpu, GPUS))
    if not NAME.fullmatch(editor.name):
        raise UsageError(f"--name {editor.name!r}: expected lower-case letters, digits and dashes, a letter first")
    if not REFERENCE.fullmatch(editor.image):
        raise UsageError(f"--image {editor.image!r}: expected workbench, runtime or an image's reference")
    if editor.shm < 1:
        raise UsageError(f"--shm {editor.shm}: expected 1 or more")
