"""Which libcuda was mapped and how it came there, for the codes that depend on it: 34, 803, 804."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Optional

from verify.codes import Meaning, cuda_meaning
from verify.model import Facts, Owner
from verify.probes import system

BY_PLACE = (34, 803, 804)


def place_facts(mapped: str) -> Dict[str, Any]:
    """The mount that the mapped file lies on (empty: it is the image's) and the loader's variables."""
    points = set(system.mounts(system.read(Path("/proc/self/mountinfo"))))
    mount = system.mounted_at(os.path.realpath(mapped), points) if mapped else ""
    return {"mount": mount, "variable": os.environ.get("LD_LIBRARY_PATH", "")}


def library_place(code: int, facts: Facts) -> Optional[Meaning]:
    """The meaning of the code for this very file: its path, who owns it, and how to remove it."""
    mapped = str(facts.get("mapped") or "")
    folder = str(Path(mapped).parent)
    if code not in BY_PLACE or not mapped:
        return None
    text = cuda_meaning(code).text
    if folder in str(facts.get("variable") or "").split(":"):
        said = f"{text}: {mapped}, found by LD_LIBRARY_PATH"
        return Meaning(said, f"take {folder} out of LD_LIBRARY_PATH", Owner.START)
    if not facts.get("mount"):
        remedy = f"remove it where it was installed (dpkg -S {mapped} names the package) and rebuild the image"
        return Meaning(f"{text}: {mapped}, a file of the image", remedy, Owner.IMAGE)
    return Meaning(f"{text}: {mapped}, mounted from the host", _on_host(code, mapped), Owner.HOST)


def _on_host(code: int, mapped: str) -> str:
    if "/compat/" in mapped:
        return (
            "upgrade the host's driver, so that nothing needs forward compatibility; or keep the toolkit from using "
            "it: nvidia-ctk config --set nvidia-container-runtime.modes.legacy.cuda-compat-mode=disabled --in-place"
        )
    if code == 34:
        return "on the host: reinstall the driver's libcuda (a stub stands in its place: ldconfig -p | grep libcuda)"
    return cuda_meaning(code).remedy
