"""The part of the Dev Container format that we use, closed: containers.dev/implementors/json_reference."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
WORDS = {"type": "array", "items": TEXT}
LIFECYCLE = {"type": ["string", "array", "object"]}


def closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object with these keys and no other."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


MOUNT = closed(("type", "target"), type={"enum": ["bind", "volume"]}, source=TEXT, target=TEXT)
AMOUNT = {"type": "string", "pattern": r"^\d+([tgmk]b)?$"}
GPU = {
    "oneOf": [
        {"type": "boolean"},
        {"const": "optional"},
        closed(cores={"type": "integer", "minimum": 1}, memory=AMOUNT),
    ]
}
PORT = closed(
    label=TEXT,
    protocol={"enum": ["http", "https"]},
    onAutoForward={"enum": ["notify", "openBrowser", "openBrowserOnce", "openPreview", "silent", "ignore"]},
)
_KEYS = closed(
    ("name",),
    name=TEXT,
    image=TEXT,
    build=closed(("dockerfile",), dockerfile=TEXT, context=TEXT, args={"type": "object"}),
    hostRequirements=closed(cpus={"type": "integer"}, memory=AMOUNT, storage=AMOUNT, gpu=GPU),
    runArgs=WORDS,
    overrideCommand={"type": "boolean"},
    containerEnv={"type": "object", "additionalProperties": TEXT},
    remoteUser=TEXT,
    workspaceFolder=TEXT,
    workspaceMount=TEXT,
    mounts={"type": "array", "items": {"anyOf": [MOUNT, TEXT]}},
    forwardPorts={"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65535}},
    portsAttributes={"type": "object", "additionalProperties": PORT},
    postStartCommand=LIFECYCLE,
    customizations=closed(vscode=closed(extensions=WORDS, settings={"type": "object"})),
)
# One of the two ways to say what the container is made of; a workspaceMount needs its folder.
SCHEMA = {
    **_KEYS,
    "oneOf": [{"required": ["image"]}, {"required": ["build"]}],
    "dependentRequired": {"workspaceMount": ["workspaceFolder"]},
}
