"""The driver: libcuda, NVML, cuInit, and the CUDA level against the image's need."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Optional

from verify import remedies, versions
from verify.checks.image.torch_files import built_for_cuda
from verify.claims import claimed_version
from verify.codes import Meaning, cuda_meaning, nvml_meaning
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Status, Verdict
from verify.probes.allocation import allocated, open_nodes
from verify.probes.gpu_signs import DRIVER, NVML, any_sign, gpu_nodes, gpu_signs, no_gpu
from verify.probes.libraries import ask_driver, ask_nvml, load
from verify.probes.library_place import library_place, place_facts
from verify.verdicts import failed, inside, listed, passed, unknown

EXCLUSIVE, PROHIBITED = 3, 2
"""NVML's numbers of the compute modes that refuse a process."""

NO_PERMISSION = 4
"""NVML's code for a GPU that this process may not use."""

STARTS = 60.0
"""Seconds for a driver that nobody keeps awake: it starts each of a machine's GPUs, one after the other."""

GRANT = (
    "start with --gpus all and NVIDIA_DRIVER_CAPABILITIES=compute,utility "
    "(docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...)"
)


def probe_libcuda() -> Facts:
    """Load the driver's library as torch would, and NVML beside it."""
    _, cuda = load(DRIVER)
    _, nvml = load(NVML)
    return {**gpu_signs(), **cuda, **place_facts(cuda["mapped"]), "nvml_loaded": nvml["loaded"]}


def evaluate_libcuda(facts: Facts, claims: Claims) -> Verdict:
    """libcuda.so.1 must come from the host's driver: not missing, not a stub, not the image's own."""
    if not any_sign(facts) and not facts["loaded"]:
        return no_gpu(facts)
    expected = "libcuda.so.1 of the host's driver"
    if not facts["loaded"]:
        return _no_libcuda(facts, expected)
    mapped = str(facts["mapped"])
    if "/stubs/" in mapped:
        remedy = "take the stubs folder out of LD_LIBRARY_PATH and /etc/ld.so.conf.d; start with --gpus all"
        return failed(f"{mapped} is the link-time stub", expected, remedy, Owner.START)
    # A compat library is the image's own by its nature; whether it works here is cuInit's to say.
    if inside(claims) and not facts["mount"] and "/compat/" not in mapped:
        remedy = "remove it from the image (the container toolkit mounts the host's); rebuild"
        return failed(f"{mapped} is a file of the image", expected, remedy, Owner.IMAGE)
    return passed(f"{mapped} is mapped", expected, mapped=mapped)


def _no_libcuda(facts: Facts, expected: str) -> Verdict:
    error = str(facts["load_error"])
    elsewhere = (facts.get("elsewhere") or {}).get(DRIVER)
    if elsewhere:
        return _off_path(DRIVER, elsewhere, expected)
    if facts["nvml_loaded"]:
        text = "NVML is here, libcuda.so.1 is not: the capability 'compute' was not granted"
        return failed(text, expected, GRANT, Owner.START)
    if DRIVER in facts["libraries"]:
        return failed(f"libcuda.so.1 is here but cannot be loaded: {error}", expected, GRANT, Owner.HOST)
    return failed(f"device nodes are here, but no libcuda.so.1 ({error})", expected, GRANT, Owner.START)


def _off_path(library: str, folder: str, expected: str) -> Verdict:
    """The platform mounted the driver where the loader does not look (GKE's device plugin does)."""
    remedy = (
        f"add {folder} to LD_LIBRARY_PATH: docker run -e LD_LIBRARY_PATH={folder} ...; "
        f"Kubernetes: env: [{{name: LD_LIBRARY_PATH, value: {folder}}}]"
    )
    return failed(f"{library} is in {folder}, where the loader does not look", expected, remedy, Owner.START)


def probe_driver() -> Facts:
    """Ask the driver itself, and NVML for each GPU's compute and MIG mode; torch is not involved."""
    facts = ask_driver()
    devices = ask_nvml().get("devices") or []
    place = place_facts(facts["mapped"])
    return {**gpu_signs(), **facts, **place, "devices": devices, "torch_cuda": built_for_cuda()}


def evaluate_init(facts: Facts, _claims: Claims) -> Verdict:
    """cuInit returns the driver's own error code, which torch's is_available() hides."""
    if not any_sign(facts) and not facts["loaded"]:
        return no_gpu(facts)
    if not facts["loaded"]:
        return blocked_by_libcuda()
    code = facts["code"]
    if code == 0:
        return passed("cuInit: 0", "0 (success)")
    meaning = _by_mode(code, facts) or library_place(code, facts) or cuda_meaning(code)
    text = f"cuInit answers {code}: {meaning.text}"
    if facts.get("mapped") and str(facts["mapped"]) not in text:
        text += f" ({facts['mapped']})"
    return failed(text, "0 (success)", meaning.remedy, meaning.owner, code=code)


def _by_mode(code: int, facts: Facts) -> Optional[Meaning]:
    """What NVML's modes add to two codes that have several causes."""
    devices: List[Dict[str, Any]] = facts.get("devices") or []
    exclusive = [str(d["index"]) for d in devices if d.get("compute_mode") == EXCLUSIVE]
    prohibited = [str(d["index"]) for d in devices if d.get("compute_mode") == PROHIBITED]
    mig = [str(d["index"]) for d in devices if d.get("mig")]
    if code == 46 and (exclusive or prohibited):
        mode = "exclusive process mode and another process has it" if exclusive else "prohibited mode"
        gpus = ", ".join(exclusive or prohibited)
        return Meaning(f"GPU {gpus} is in {mode}", "on the host: end that process, or nvidia-smi -c 0", Owner.HOST)
    if code == 100 and mig:
        text = f"MIG is on for GPU {', '.join(mig)}, but no MIG device was given to this container"
        remedy = "nvidia-smi -L on the host lists MIG devices (none: nvidia-smi mig -cgi ... -C); --gpus device=0:0"
        return Meaning(text, remedy, Owner.START)
    return None


def blocked_by_libcuda() -> Verdict:
    """The skip of checks that need libcuda."""
    return Verdict(Status.SKIP, "blocked by libcuda", remedy="repair libcuda first", data={"blocked_by": "libcuda"})


def evaluate_level(facts: Facts, claims: Claims) -> Verdict:
    """Docker's CDI path no longer enforces NVIDIA_REQUIRE_CUDA, so the suite compares it itself."""
    if not any_sign(facts) and not facts["loaded"]:
        return no_gpu(facts)
    if not facts["loaded"]:
        return blocked_by_libcuda()
    if facts["level_code"] or not facts["level"]:
        return unknown(f"cuDriverGetVersion answers {facts['level_code']}")
    level = versions.cuda_level(facts["level"])
    need = claimed_version(claims, "cuda") or str(facts.get("torch_cuda") or "")
    driver = f"the driver {facts['host_driver']}".strip() if facts.get("host_driver") else "the driver"
    text = f"{driver} supports CUDA up to {level} (torch's message: found version {facts['level']})"
    if not need:
        return unknown(f"{text}; neither the image nor torch says which CUDA is needed")
    text += f"; torch here was built for CUDA {need}"
    expected = f"CUDA {need}, or {versions.major(need)}.x by minor-version compatibility"
    if versions.at_least(level, need):
        return passed(text, expected, level=level)
    if versions.major(level) == versions.major(need):
        note = "it runs by minor-version compatibility, but nothing that compiles PTX does"
        return passed(f"{text}: {note}", expected, level=level)
    return failed(text, expected, _upgrade(claims, need, level), Owner.HOST, level=level)


def _upgrade(claims: Claims, need: str, level: str) -> str:
    """Which driver is enough, and which published lines the present one can run."""
    floors = claims.tables.get("family_floors") or []
    floor = next((str(row["driver"]) for row in floors if row["major"] == versions.major(need)), "")
    floor = floor or str((claims.image.get("driver") or {}).get("floor") or "")
    remedy = f"upgrade the host's driver to {floor} or newer" if floor else "upgrade the host's driver"
    lines: Dict[str, Dict[str, Any]] = claims.tables.get("lines") or {}
    fitting = [str(row["tag"]) for row in lines.values() if versions.major(str(row["cuda"])) <= versions.major(level)]
    if fitting:
        remedy += f", or use an image for older drivers: {listed(fitting)}"
    return remedy


def probe_nvml() -> Facts:
    """Ask NVML, the library behind nvidia-smi, and open each GPU's node to see which are ours."""
    facts = gpu_signs()
    return {**facts, "opened": open_nodes(gpu_nodes(facts["nodes"])), **ask_nvml()}


def evaluate_nvml(facts: Facts, _claims: Claims) -> Verdict:
    """NVML and the kernel module must be one version; after an upgrade they often are not."""
    if not any_sign(facts) and not facts["loaded"]:
        return no_gpu(facts)
    expected = "nvmlInit: 0, and the kernel module's version"
    elsewhere = (facts.get("elsewhere") or {}).get(NVML)
    if not facts["loaded"] and elsewhere:
        return _off_path(NVML, elsewhere, expected)
    if not facts["loaded"]:
        text = "libnvidia-ml.so.1 is missing: the capability 'utility' was not granted"
        return failed(text, expected, GRANT, Owner.START, explains=False)
    if facts["code"] != 0:
        meaning = nvml_meaning(facts["code"])
        text = f"nvmlInit answers {facts['code']}: {meaning.text}"
        return failed(text, expected, meaning.remedy, meaning.owner, code=facts["code"])
    lost = _lost(facts, expected)
    if lost:
        return lost
    library, module = str(facts.get("driver") or ""), str(facts.get("host_driver") or "")
    if library and module and not versions.same(library, module):
        text = f"NVML is of driver {library}, the kernel module of {module}"
        stale = versions.at_least(module, library)
        remedy = "recreate this container" if stale else "restart the host (its driver was upgraded)"
        return failed(text, expected, remedy, Owner.START if stale else Owner.HOST)
    return passed(f"driver {library or 'unknown'}, {facts.get('count', '?')} GPUs", expected, driver=library)


def _lost(facts: Facts, expected: str) -> Optional[Verdict]:
    """The failure where NVML does not answer for a GPU that was allocated to us."""
    opened: Dict[str, str] = facts.get("opened") or {}
    given = gpu_nodes(facts.get("nodes") or [])
    ours = allocated(opened) if opened else given
    devices: List[Dict[str, Any]] = facts.get("devices") or []
    # A scheduler's other jobs have the rest: NVML may count those GPUs, and answers no permission for each.
    others = len(ours) < len(gpu_nodes(list(opened)))
    silent = [device for device in devices if device.get("code") and not (others and device["code"] == NO_PERMISSION)]
    if silent:
        meaning = nvml_meaning(silent[0]["code"])
        text = f"GPU {silent[0]['index']} does not answer: {meaning.text}"
        return failed(text, "every GPU answers", meaning.remedy, meaning.owner, code=silent[0]["code"])
    if facts.get("count") is not None and facts["count"] < len(ours):
        text = f"{len(ours)} device nodes are here, NVML answers for {facts['count']} GPUs"
        return failed(text, expected, "on the host: nvidia-smi -L; dmesg | grep Xid; then restart it", Owner.HOST)
    return None


BELOW = ("visible-devices", "libcuda")
"""Where one of these is broken, cuInit only repeats it; with broken device nodes its code still adds something."""

_check = partial(Check, group="driver", level=Level.GPU, isolation=Isolation.CHILD, timeout=STARTS)

CHECKS: List[Check] = [
    _check(
        id="libcuda",
        explained_by=("loader-path",),
        title="libcuda.so.1 comes from the host's driver",
        probe=probe_libcuda,
        evaluate=evaluate_libcuda,
        why=(
            "The driver's library must be the host's. With the capability 'utility' only, nvidia-smi works and "
            "torch does not."
        ),
        repairs=(remedies.GIVE_GPU, "docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."),
        quick=True,
    ),
    _check(
        id="nvml",
        explained_by=("device-nodes",),
        title="NVML answers and matches the kernel module",
        probe=probe_nvml,
        evaluate=evaluate_nvml,
        why="After a driver upgrade the libraries and the loaded kernel module differ until the host restarts.",
        repairs=("recreate the container", "restart the host", "on the host: sudo modprobe nvidia"),
        quick=True,
    ),
    _check(
        id="cuda-init",
        explained_by=("loader-path", "device-nodes", "nvml"),
        title="The CUDA driver initialises",
        probe=probe_driver,
        evaluate=evaluate_init,
        needs=BELOW,
        why=(
            "cuInit returns the driver's own error code: 34 stub, 46 busy, 100 no GPU, 304 device node, "
            "802 Fabric Manager, 803 mismatch, 804 forward compatibility, 999 unknown. "
            "torch.cuda.is_available() hides it."
        ),
        repairs=("the finding names the repair for the code",),
    ),
    _check(
        id="cuda-level",
        title="The driver is new enough for this CUDA",
        probe=probe_driver,
        evaluate=evaluate_level,
        why="With CDI, Docker does not enforce NVIDIA_REQUIRE_CUDA, so nothing else notices an old driver.",
        repairs=("upgrade the host's driver", "use an image of an older CUDA line: gpuyard list"),
    ),
]
