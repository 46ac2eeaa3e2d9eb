"""Folders that a run writes to: they exist, this user may write there, and there is room."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Iterable, List, Mapping

from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import storage, system
from verify.verdicts import NOT_AN_IMAGE, failed, inside, listed, passed, skipped

CACHES = ("XDG_CACHE_HOME", "HF_HOME", "MPLCONFIGDIR", "TRITON_CACHE_DIR", "TORCH_HOME")
MORE_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH")
WORKSPACE = "/workspace"
VOLUMES = ("/mnt/data", "/mnt/models")
FULL = ("ENOSPC", "EDQUOT")


def probe_caches() -> Facts:
    """Write some kB where libraries keep their caches, to the home and to the folder of temporary files."""
    named = [(name, os.environ[name]) for name in (*CACHES, *MORE_CACHES) if os.environ.get(name)]
    home = os.environ.get("HOME") or "~"
    folders = [("HOME", home), ("HOME/.cache", f"{home}/.cache"), *named]
    folders.append(("temporary files", os.environ.get("TMPDIR") or "/tmp"))
    tried = {path: storage.try_folder(path) for path in {path for _, path in folders}}
    return {"folders": {f"{name} {path}": tried[path] for name, path in folders}}


def _notes(folders: Iterable[Facts]) -> str:
    """What is nearly full, each disk once."""
    notes = list(dict.fromkeys(filter(None, map(storage.scarcity, folders))))
    return f"; {listed(notes, 3)}" if notes else ""


def evaluate_caches(facts: Facts, _claims: Claims) -> Verdict:
    """Compilers, model hubs and plots fail late when their cache cannot be written."""
    folders: Mapping[str, Facts] = facts["folders"]
    wrong = {name: found for name, found in folders.items() if found["error"]}
    if wrong:
        text = listed(f"{name} ({storage.fault(found)})" for name, found in wrong.items())
        other = "mount a writable folder there, or -e HOME=/tmp (also HF_HOME, TRITON_CACHE_DIR, MPLCONFIGDIR)"
        remedy = storage.repair(next(iter(wrong.values()))) or other
        return failed(f"not writable: {text}", "all writable, with room", remedy, Owner.START)
    return passed(f"{len(folders)} folders are writable{_notes(folders.values())}", "all writable, with room")


def probe_workspace() -> Facts:
    """Write some kB into the working folder."""
    exists = Path(WORKSPACE).is_dir()
    return {"exists": exists, "uid": os.getuid(), **(storage.try_folder(WORKSPACE) if exists else {})}


def evaluate_workspace(facts: Facts, claims: Claims) -> Verdict:
    """A folder mounted from the host belongs to the host's user, and its disk may be full."""
    expected = "writable, with room"
    if not inside(claims):
        return skipped(NOT_AN_IMAGE)
    if not facts["exists"]:
        return failed(f"{WORKSPACE} is missing", expected, "rebuild the image", Owner.IMAGE)
    if facts["error"] in FULL:
        return failed(storage.fault(facts), expected, storage.repair(facts), Owner.START)
    if facts["error"]:
        remedy = f"on the host: chown -R {facts['uid']} the mounted folder, or docker run --user $(id -u):$(id -g)"
        return failed(f"uid {facts['uid']} cannot write: {storage.fault(facts)}", expected, remedy, Owner.START)
    return passed(f"{WORKSPACE} is writable for uid {facts['uid']}{_notes([facts])}", expected)


def probe_volumes() -> Facts:
    """Write some kB to the folders for data and models, where they are mounts and may be written."""
    points = set(system.mounts(system.read(Path("/proc/self/mountinfo"))))
    mounted = [path for path in VOLUMES if path in points]
    return {"folders": {path: storage.try_folder(path) for path in mounted}}


def evaluate_volumes(facts: Facts, _claims: Claims) -> Verdict:
    """A volume may be read-only or somebody else's on purpose; a full one takes no checkpoint."""
    folders: Mapping[str, Facts] = facts["folders"]
    expected = "no volume is full"
    if not folders:
        return passed(f"nothing is mounted on {' or '.join(VOLUMES)}", expected)
    full = [found for found in folders.values() if found["error"] in FULL]
    if full:
        remedy = "; ".join(map(storage.repair, full))
        return failed(listed(map(storage.fault, full)), expected, remedy, Owner.START)
    texts = [storage.fault(found) or f"{path}: {system.size(found['free'])} free" for path, found in folders.items()]
    return passed(listed(texts) + _notes(folders.values()), expected)


_check = partial(Check, group="container", level=Level.CONTAINER, isolation=Isolation.CHILD, timeout=60.0)

CHECKS: List[Check] = [
    _check(
        id="caches",
        title="Caches can be written",
        probe=probe_caches,
        evaluate=evaluate_caches,
        why="Compilers, model hubs and plots fail late when their cache cannot be written (another uid, full disk).",
        repairs=("mount a writable folder there", "make room, or raise the quota", "docker run -e HOME=/tmp ..."),
    ),
    _check(
        id="workspace",
        title="The working folder can be written",
        probe=probe_workspace,
        evaluate=evaluate_workspace,
        why="A folder mounted from the host belongs to the host's user, and its disk or quota may be full.",
        repairs=("chown it on the host", "docker run --user $(id -u):$(id -g) ...", "make room, or raise the quota"),
        needs_claims=True,
    ),
    _check(
        id="volumes",
        group="environment",
        title="Volumes for data and models have room",
        probe=probe_volumes,
        evaluate=evaluate_volumes,
        why="A checkpoint or a download fails at its end where the disk, its inodes or a quota are full.",
        repairs=("make room, or mount a larger volume", "have the quota raised"),
    ),
]
