"""torch's own libraries, which load and tell their versions without any GPU."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, List

from verify import remedies, versions
from verify.checks.image import loaded
from verify.checks.image.environment import REBUILD
from verify.claims import claimed_version
from verify.engine import torchhost
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes import arch, system
from verify.verdicts import failed, inside, listed, passed, unknown


def probe_import() -> Facts:
    """The host has imported torch already, or kept the reason why it could not."""
    if torchhost.import_error:
        return {"error": torchhost.import_error, **loaded.standard_library(system.read(Path("/proc/self/maps")))}
    import torch

    built = {"git": torch.version.git_version, "cxx11_abi": bool(torch.compiled_with_cxx11_abi())}
    return {"version": torch.__version__, "cuda": torch.version.cuda or "", "file": torch.__file__, "built": built}


def evaluate_import(facts: Facts, claims: Claims) -> Verdict:
    """What cannot be imported cannot be checked: all checks with torch need this one."""
    expected = f"import torch {claimed_version(claims, 'torch')}".strip()
    if "crash" in facts:
        text = f"import torch was killed by {facts['crash']}"
        remedy = "start a fresh container; unset LD_PRELOAD and LD_LIBRARY_PATH"
        return failed(text, expected, remedy, Owner.IMAGE)
    if "error" in facts:
        error = str(facts["error"])
        if facts.get("stdcxx") and any(sign in error for sign in ("GLIBCXX", "CXXABI", "libstdc++")):
            error += f" (found first: {facts['stdcxx']}, up to {facts['glibcxx'] or 'no version at all'})"
        owner = Owner.START if "LD_" in error or "undefined symbol" in error else Owner.IMAGE
        remedy = "unset LD_LIBRARY_PATH and LD_PRELOAD, then put the locked packages back (verify --only lock)"
        return failed(error, expected, remedy, owner)
    text = f"torch {facts['version']}, CUDA {facts['cuda'] or 'none'}, {facts['file']}"
    return passed(text, expected, **facts.get("built", {}))


def probe_archs() -> Facts:
    """The compiled arch list; needs no GPU."""
    import torch

    flags = torch._C._cuda_getArchFlags() if hasattr(torch._C, "_cuda_getArchFlags") else ""
    return {"archs": (flags or "").split()}


def evaluate_archs(facts: Facts, claims: Claims) -> Verdict:
    """A GPU outside this list gets 'no kernel image' although is_available() says True."""
    found = arch.normalised(facts["archs"])
    claimed = arch.normalised(claims.image.get("arch_list") or [])
    if not found:
        return failed("torch has no CUDA code at all", "an arch list", REBUILD, Owner.IMAGE)
    text = " ".join(found)
    if claimed and found != claimed:
        return failed(f"torch has {text}", " ".join(claimed), REBUILD, Owner.IMAGE, archs=found)
    return passed(text, " ".join(claimed) or "an arch list", archs=found)


def probe_cudnn() -> Facts:
    """cuDNN's version when torch was compiled and now."""
    import torch

    cudnn = getattr(torch._C, "_cudnn", None)
    if cudnn is None:
        return {"built": False}
    compiled, now = list(cudnn.getCompileVersion()), list(cudnn.getRuntimeVersion())
    return {"built": True, "compiled": compiled, "runtime": now}


def evaluate_cudnn(facts: Facts, claims: Claims) -> Verdict:
    """The claimed cuDNN must be the one loaded, and one that torch was compiled to accept.

    Equal versions would be too strict: genuine wheels are compiled against an older minor than they
    bring along. torch's own rule is the same major and no older minor.
    """
    remedy = "unset LD_LIBRARY_PATH and LD_PRELOAD; put the locked cuDNN back (verify --only lock)"
    if not facts["built"]:
        return failed("torch was built without cuDNN", "cuDNN", REBUILD, Owner.IMAGE)
    runtime, compiled = list(facts["runtime"]), list(facts["compiled"])
    claimed = list(versions.release(claimed_version(claims, "cudnn"))[:3])
    accepted = runtime[:1] == compiled[:1] and runtime[:2] >= compiled[:2]
    expected = f"{_dotted(claimed)} as claimed" if claimed else f"{compiled[0]}.{compiled[1]} or newer"
    text = f"cuDNN {_dotted(runtime)} at run time, compiled against {_dotted(compiled)}"
    if not accepted or (claimed and runtime != claimed):
        return failed(text, expected, remedy, Owner.START)
    return passed(text, expected)


def _dotted(parts: List[Any]) -> str:
    return ".".join(str(part) for part in parts)


def probe_nccl() -> Facts:
    """NCCL's version as torch has it loaded."""
    import torch

    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        return {"available": False}
    return {"available": True, "version": list(torch.cuda.nccl.version())}


def evaluate_nccl(facts: Facts, claims: Claims) -> Verdict:
    """A second NCCL (of the system, or preloaded) breaks the first collective, not the import."""
    claimed = claimed_version(claims, "nccl")
    expected = f"NCCL {claimed}".strip()
    if not facts["available"]:
        return failed("torch was built without NCCL", expected, REBUILD, Owner.IMAGE)
    found = _dotted([part for part in facts["version"] if isinstance(part, int)])
    if not found:
        return unknown(f"torch tells no version of NCCL: {listed(facts['version'])}")
    if inside(claims) and claimed and not versions.same(found, claimed):
        remedy = "remove other libnccl from LD_LIBRARY_PATH and LD_PRELOAD; put the locked one back"
        return failed(f"NCCL {found}", expected, remedy, Owner.START)
    return passed(f"NCCL {found}", expected)


_check = partial(
    Check,
    explained_by=("decoys", "lock", "user-site"),
    group="torch",
    level=Level.CPU,
    isolation=Isolation.TORCH,
    timeout=60.0,
)

CHECKS: List[Check] = [
    _check(
        id="torch-import",
        title="torch can be imported",
        probe=probe_import,
        evaluate=evaluate_import,
        why=(
            "What cannot be imported cannot be checked; a library found first by LD_LIBRARY_PATH or LD_PRELOAD is"
            " the usual cause."
        ),
        repairs=("unset LD_LIBRARY_PATH LD_PRELOAD", remedies.LOCKED),
    ),
    _check(
        id="arch-list",
        title="torch has the claimed GPU code",
        probe=probe_archs,
        evaluate=evaluate_archs,
        why="A GPU outside the compiled list gets 'no kernel image is available', although is_available() is True.",
        repairs=(remedies.LOCKED, remedies.REBUILD),
    ),
    _check(
        id="cudnn",
        title="cuDNN is the one torch was compiled with",
        probe=probe_cudnn,
        evaluate=evaluate_cudnn,
        why="Another cuDNN than torch was compiled with was found first, or installed over it.",
        repairs=("unset LD_LIBRARY_PATH LD_PRELOAD", remedies.LOCKED),
    ),
    _check(
        id="nccl-version",
        group="nccl",
        title="NCCL is the claimed one",
        probe=probe_nccl,
        evaluate=evaluate_nccl,
        why="A second NCCL breaks the first collective, not the import.",
        repairs=("remove other libnccl from LD_LIBRARY_PATH and LD_PRELOAD", remedies.LOCKED),
    ),
]
