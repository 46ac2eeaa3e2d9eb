"""What no layer of an image may contain: the host's driver, and anything secret or unique to a machine."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from gpuyard.acceptance.world import Outside, World
from verify.model import Claims, Facts, Level, Owner, Status, Verdict

DRIVER = re.compile(
    r"/(libcuda\.so[^/]*|libcudadebugger\.so[^/]*|libnvidia-[^/]*\.so[^/]*|libnvcuvid\.so[^/]*|"
    r"nvidia-smi|nvidia-persistenced|nvidia-cuda-mps-[a-z]+|nvidia[^/]*\.ko(\.[a-z]+)?)$"
)
SECRET = (
    (re.compile(r"^/etc/ssh/ssh_host_[^/]+$"), "an SSH host key"),
    (re.compile(r"/\.ssh/(id_[^/]+|authorized_keys2?)$"), "an SSH key or who may log in"),
    (re.compile(r"/var/lib/gpuyard/ssh/"), "an SSH host key"),
    (re.compile(r"/jupyter_cookie_secret$|/jupyter-server-\d+|/jpserver-\d+"), "a Jupyter secret"),
    (
        re.compile(r"^/(root|home/[^/]+)/\.jupyter/(jupyter_(server|notebook)_config\.json|migrated)$"),
        "a Jupyter login",
    ),
    (re.compile(r"/\.(netrc|pypirc|git-credentials|pgpass)$|/\.docker/config\.json$"), "a login"),
    (re.compile(r"/\.(huggingface|cache/huggingface)/(token|stored_tokens)$|/\.aws/credentials$"), "a login"),
    (re.compile(r"/\.(bash|python|zsh)_history$"), "somebody's history"),
)
UNIQUE = re.compile(r"^(/etc/machine-id|/var/lib/dbus/machine-id|/var/lib/systemd/random-seed)$")
# systemd's own word for "not set yet", with its newline.
UNSET_ID_SIZE = len("uninitialized\n")
SHOWN = 5


def probe_files(world: World) -> Facts:
    """Every file of every layer."""
    return {"entries": [dict(vars(entry)) for entry in world.entries()]}


def evaluate_driver(facts: Facts, _claims: Claims) -> Verdict:
    """Fails on a file that belongs to the host's driver: a baked one shadows the real one."""
    found = [(entry, "a driver file") for entry in facts["entries"] if DRIVER.search(entry["path"])]
    return _judge(
        found,
        facts,
        "no libcuda.so, libnvidia-*.so or nvidia-smi: they come from the host when a container starts",
        "leave out the package that brings it (cuda-compat, nvidia-driver, stubs) in the layer that adds it",
    )


def evaluate_secrets(facts: Facts, _claims: Claims) -> Verdict:
    """Fails on keys, logins and machine ids, also where a later layer deletes them again."""
    found = [(entry, why) for entry in facts["entries"] if (why := secret(entry))]
    return _judge(
        found,
        facts,
        "nothing secret and nothing unique to one machine in any layer, deleted files included",
        "delete it in the same RUN that makes it, or make it when a container starts; replace that secret",
    )


def secret(entry: dict[str, Any]) -> str:
    """Why an entry is secret or unique; empty if it is not."""
    path = entry["path"]
    for pattern, why in SECRET:
        if pattern.search(path):
            return why
    if UNIQUE.match(path) and entry["size"] > UNSET_ID_SIZE:
        return "a machine's identity"
    return "a private key" if entry["private"] else ""


def _judge(found: list[tuple[dict[str, Any], str]], facts: Facts, expected: str, remedy: str) -> Verdict:
    counted = Counter(entry["layer"] for entry in facts["entries"])
    if not counted:
        return Verdict(Status.UNKNOWN, "no layer could be read", expected, "run as root or with another engine")
    if not found:
        return Verdict(Status.PASS, f"{sum(counted.values())} files in {len(counted)} layers", expected)
    shown = [f"{entry['path']} ({why}, {entry['layer']})" for entry, why in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return Verdict(Status.FAIL, ", ".join(shown) + more, expected, remedy, Owner.IMAGE)


CHECKS = [
    Outside("layers-no-driver", "content", Level.IMAGE, "No driver files in any layer", probe_files, evaluate_driver),
    Outside("layers-no-secrets", "content", Level.IMAGE, "No secrets in any layer", probe_files, evaluate_secrets),
]
