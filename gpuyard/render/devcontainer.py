"""devcontainer.json: the image as an editor's container, with a GPU where the machine has one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from gpuyard.catalogue.table import unknown
from gpuyard.errors import UsageError
from gpuyard.render.work import check_image, check_least, check_name

Gpu = Literal["optional", "required", "none"]
GPUS: tuple[str, ...] = get_args(Gpu)
_REQUIREMENTS: dict[str, dict[str, Any]] = {
    "optional": {"hostRequirements": {"gpu": "optional"}},
    "required": {"hostRequirements": {"gpu": True}},
    "none": {},
}


def folder_name(folder: Path) -> str:
    """A folder's name, as a name that volumes may have: projects with other names share nothing."""
    plain = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:38].rstrip("-")
    return plain if plain[:1].isalpha() else f"p-{plain}".rstrip("-")


@dataclass(frozen=True)
class Editor:
    """A container for an editor. ``dockerfile``, relative to the file's folder, replaces the image."""

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
        # Keeps the image's own start: its GPU line, hooks, and the services named below.
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
        # Its result is in the log; a machine without a GPU is not a reason to stop.
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
        raise UsageError("render-choice-unknown", unknown("--gpu", editor.gpu, GPUS))
    check_name(editor.name)
    check_image(editor.image)
    check_least("--shm", editor.shm, 1)
