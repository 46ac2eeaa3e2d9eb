"""A CDI specification that gives faults to containers: ``docker run --device gpuyard.test/fault=804``.

``python -m tests.faults.cdi`` writes it for trying by hand; ``python -m tests.faults.cdi remove`` takes it away.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gpuyard import paths
from gpuyard.engine import daemon
from tests.faults.faults import COMPAT, FAULTS, LEVELS, WHOLE, Fault
from tests.faults.stubs import compile_stub

KIND = "gpuyard.test/fault"
FILE = "gpuyard-test-fault.json"
LIBRARIES = {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}
LINKED = "/etc/ld.so.conf.d/00-compat-test.conf"
HOOK = """#!/bin/sh
# What the toolkit's hook update-ldcache does: the state on stdin names the bundle.
bundle=$(sed -n 's/.*"bundle":"\\([^"]*\\)".*/\\1/p')
root=$(sed -n 's/.*"root":{[^}]*"path":"\\([^"]*\\)".*/\\1/p' "$bundle/config.json")
case $root in /*) ;; *) root=$bundle/$root ;; esac
exec /sbin/ldconfig -r "$root"
"""


def write(folder: Path, stubs: Path) -> Path:
    """Compiles the stand-ins into ``stubs`` and writes the specification into a folder the engine reads."""
    for name in LIBRARIES.values():
        compile_stub(stubs, name)
    hook = stubs / "ldconfig-hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    (stubs / "compat.conf").write_text(COMPAT + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    file.write_text(json.dumps(specification(stubs), indent=1))
    return file


def specification(stubs: Path) -> dict[str, Any]:
    """The faults as CDI devices."""
    devices = [{"name": fault.name, "containerEdits": edits(fault, stubs)} for fault in (*FAULTS, *LEVELS, WHOLE)]
    return {"cdiVersion": "0.5.0", "kind": KIND, "devices": devices}


def edits(fault: Fault, stubs: Path) -> dict[str, Any]:
    """What the fault does to a container; the nodes are /dev/null's, which is harmless to open."""
    places = {LIBRARIES[kind]: getattr(fault, kind) for kind in LIBRARIES}
    mounts = {f"{place}/{name}": stubs / name for name, place in places.items() if place}
    if fault.linked:
        mounts[LINKED] = stubs / "compat.conf"
    hook = {"hookName": "createContainer", "path": str(stubs / "ldconfig-hook")}
    nodes = [{"path": f"/dev/{name}", "type": "c", "major": 1, "minor": 3, **fault.node} for name in fault.nodes]
    parts: dict[str, Any] = {
        "env": [f"{name}={value}" for name, value in fault.env.items()],
        "mounts": [
            {"hostPath": str(source), "containerPath": target, "options": ["ro", "bind"]}
            for target, source in mounts.items()
        ],
        "deviceNodes": nodes,
        "hooks": [hook] if fault.linked else [],
    }
    return {name: part for name, part in parts.items() if part}


def folder_of_engine() -> Path:
    """The first CDI folder the engine reads. Raises LookupError where CDI is off."""
    folders = daemon.client().info().get("CDISpecDirs") or []
    if not folders:
        raise LookupError('this engine reads no CDI specifications: {"features": {"cdi": true}} in daemon.json')
    return Path(folders[0])


if __name__ == "__main__":
    if sys.argv[1:] == ["remove"]:
        (folder_of_engine() / FILE).unlink(missing_ok=True)
    else:
        print(write(folder_of_engine(), paths.ROOT / "build" / "faults"))
