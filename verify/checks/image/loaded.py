"""What variables ask the loader for, before torch is imported, and what it really mapped afterwards."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List

from verify import remedies
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import system
from verify.probes.gpu_signs import loader_folders
from verify.verdicts import failed, inside, listed, passed

CUDA_LIBRARY = re.compile(
    r"lib(cudart|cudnn|nccl|cublas|cufft|curand|cusolver|cusparse|nvJitLink|nvrtc|cupti)[\w-]*\.so"
)
DECOY = re.compile(CUDA_LIBRARY.pattern + r"|libstdc\+\+\.so|libgomp\.so")
STANDARD = "libstdc++.so.6"
GLIBCXX = re.compile(rb"GLIBCXX_3\.4\.(\d+)")
UNSET = "unset LD_LIBRARY_PATH LD_PRELOAD (or take these folders and files out of them)"


def probe_decoys() -> Facts:
    """Look for libraries of CUDA and the compilers among what LD_LIBRARY_PATH and LD_PRELOAD put first."""
    folders = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    found = [str(path) for folder in folders if Path(folder).is_dir() for path in sorted(Path(folder).glob("*.so*"))]
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return {"decoys": [path for path in found if DECOY.match(Path(path).name)], "preloaded": preloaded}


def evaluate_decoys(facts: Facts, _claims: Claims) -> Verdict:
    """Older wheels and cuDNN's own parts take what stands first; newer wheels ignore it, until they don't."""
    expected = "no CUDA library and no libstdc++ by LD_LIBRARY_PATH, nothing by LD_PRELOAD"
    parts = [f"LD_LIBRARY_PATH puts first: {listed(facts['decoys'])}"] if facts["decoys"] else []
    parts += [f"LD_PRELOAD loads: {listed(facts['preloaded'])}"] if facts["preloaded"] else []
    if parts:
        return failed("; ".join(parts), expected, UNSET, Owner.START)
    return passed("none", expected)


def probe_loaded() -> Facts:
    """Import torch and read from /proc/self/maps which CUDA libraries and which libstdc++ were mapped."""
    import torch

    home = str(Path(torch.__file__).resolve().parent.parent)
    return {"home": home, **mapped(system.read(Path("/proc/self/maps")))}


def mapped(maps: str) -> Dict[str, Any]:
    """The CUDA libraries and the libstdc++ in the text of /proc/self/maps."""
    paths = sorted({line.split(None, 5)[5] for line in maps.splitlines() if len(line.split(None, 5)) == 6})
    standard = next((path for path in paths if Path(path).name.startswith("libstdc++.so")), "")
    return {
        "cuda": [path for path in paths if CUDA_LIBRARY.match(Path(path).name)],
        "stdcxx": standard,
        "glibcxx": newest_glibcxx(standard),
    }


def standard_library(maps: str) -> Dict[str, str]:
    """The libstdc++ that is mapped; after a failed import, which unmaps it, the first one that the loader finds."""
    places = (folder / STANDARD for folder in loader_folders())
    path = mapped(maps)["stdcxx"] or next((str(place) for place in places if place.exists()), "")
    return {"stdcxx": path, "glibcxx": newest_glibcxx(path)}


def newest_glibcxx(path: str) -> str:
    """The newest symbol version a libstdc++ offers, empty where it cannot be read."""
    try:
        versions = [int(number) for number in GLIBCXX.findall(Path(path).read_bytes())] if path else []
    except OSError:
        versions = []
    return f"GLIBCXX_3.4.{max(versions)}" if versions else ""


def evaluate_loaded(facts: Facts, claims: Claims) -> Verdict:
    """torch is only as right as the libraries beside it: each has to come from its own environment.

    Images of others may take all of them from a toolkit or from conda; there only a mixture is a fault.
    """
    expected = f"CUDA libraries from {facts['home']}"
    strays = _strays(facts["cuda"], facts["home"])
    if strays and strays == facts["cuda"] and not inside(claims):
        folders = sorted({str(Path(path).parent) for path in strays})
        return passed(f"{len(strays)} CUDA libraries, all from {listed(folders, 2)}", expected, mapped=facts["cuda"])
    if strays:
        return failed(f"mapped from elsewhere: {listed(strays)}", expected, UNSET, Owner.START, mapped=facts["cuda"])
    if not facts["cuda"]:
        return failed("torch loaded no CUDA library", expected, "install a CUDA build of torch", Owner.IMAGE)
    standard = f"; {facts['stdcxx']} up to {facts['glibcxx']}" if facts["stdcxx"] else ""
    return passed(f"{len(facts['cuda'])} CUDA libraries, all torch's own{standard}", expected, mapped=facts["cuda"])


def _strays(paths: Iterable[str], home: str) -> List[str]:
    return [path for path in paths if not str(Path(path).resolve()).startswith(home + "/")]


BEFORE_IMPORT: List[Check] = [
    Check(
        id="decoys",
        group="environment",
        level=Level.CONTAINER,
        title="No variable puts other libraries first",
        probe=probe_decoys,
        evaluate=evaluate_decoys,
        why="A toolkit's folder in LD_LIBRARY_PATH puts its cuDNN or libstdc++ before torch's.",
        repairs=("unset LD_LIBRARY_PATH LD_PRELOAD",),
        quick=True,
    ),
]
AFTER_IMPORT: List[Check] = [
    Check(
        id="loaded-libraries",
        explained_by=("decoys", "lock", "user-site"),
        group="torch",
        level=Level.CPU,
        title="The CUDA libraries that were loaded are torch's own",
        probe=probe_loaded,
        evaluate=evaluate_loaded,
        isolation=Isolation.TORCH,
        timeout=60.0,
        why="What counts is what was mapped, not what is installed.",
        repairs=("unset LD_LIBRARY_PATH LD_PRELOAD", remedies.LOCKED),
    ),
]
