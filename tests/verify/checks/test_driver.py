"""Each broken driver is named: by its facts, and by real stand-ins for its libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.stubs import compile_stub
from tests.verify.suite import CLAIMS, NO_CLAIMS, verify
from verify.checks.driver import devices, driver
from verify.codes import CUDA, cuda_meaning, nvml_meaning
from verify.model import Owner, Status
from verify.probes.gpu_signs import DRIVER_FOLDERS, any_sign, driver_version, gpu_signs
from verify.probes.libraries import mapped_file

NOTHING: dict[str, Any] = {
    "nodes": [],
    "libraries": [],
    "elsewhere": {},
    "host_driver": "",
    "visible": "all",
    "loaded": False,
    "nvml_loaded": False,
    "load_error": "libcuda.so.1: cannot open shared object file",
    "mapped": "",
    "mount": "",
    "opened": {},
    "numbers": dict.fromkeys(["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"], "c 195:0"),
    "rules": None,
}
NODES = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]
GIVEN = {
    **NOTHING,
    "nodes": NODES,
    "libraries": ["libcuda.so.1", "libnvidia-ml.so.1"],
    "loaded": True,
    "nvml_loaded": True,
    "mapped": "/usr/lib/libcuda.so.1",
    "mount": "/usr/lib/libcuda.so.1",
    "opened": dict.fromkeys(NODES, "ok"),
    "code": 0,
    "level": 99080,
    "level_code": 0,
}
ALL = (
    devices.evaluate_nodes,
    devices.evaluate_visible,
    driver.evaluate_libcuda,
    driver.evaluate_init,
    driver.evaluate_level,
    driver.evaluate_nvml,
)


@pytest.mark.parametrize("evaluate", ALL)
def test_without_a_sign_of_a_gpu_every_driver_check_is_skipped(evaluate: Any) -> None:
    """The baked NVIDIA_VISIBLE_DEVICES=all is not a sign; the message says how to give a GPU."""
    verdict = evaluate(NOTHING, CLAIMS)
    assert verdict.status is Status.SKIP
    assert "--gpus all" in verdict.remedy


@pytest.mark.parametrize("evaluate", ALL)
def test_a_whole_driver_passes(evaluate: Any) -> None:
    """With everything in place no driver check fails."""
    assert evaluate(GIVEN, CLAIMS).status is Status.PASS


def test_a_loaded_host_driver_is_named_in_the_skip() -> None:
    """The kernel shows the host's driver in every container: the GPU was just not given."""
    verdict = driver.evaluate_init({**NOTHING, "host_driver": "999.1", "visible": "void"}, CLAIMS)
    assert "the host has driver 999.1" in verdict.observed
    assert "'void'" in verdict.observed


def test_a_library_without_nodes_is_a_partial_sign() -> None:
    """libcuda.so.1 alone is no GPU: the missing link is the device node."""
    verdict = devices.evaluate_nodes({**NOTHING, "libraries": ["libcuda.so.1"]}, CLAIMS)
    assert verdict.status is Status.FAIL
    assert verdict.owner is Owner.START


@pytest.mark.parametrize(
    ("opened", "words", "remedy"),
    [
        ({**GIVEN["opened"], "/dev/nvidia0": "EPERM"}, "systemd reload", "recreate the container"),
        ({**GIVEN["opened"], "/dev/nvidia0": "EACCES"}, "no permission", "--group-add video"),
        ({**GIVEN["opened"], "/dev/nvidiactl": "EIO"}, "EIO", "dmesg"),
        ({**GIVEN["opened"], "/dev/nvidia-uvm": "EIO"}, "cannot open /dev/nvidia-uvm (EIO)", "dmesg"),
        ({**GIVEN["opened"], "/dev/nvidia-uvm": "EPERM"}, "cannot open /dev/nvidia-uvm (EPERM)", "recreate"),
        ({"/dev/nvidia0": "ok", "/dev/nvidiactl": "ok"}, "/dev/nvidia-uvm", "nvidia-modprobe -u -c 0"),
    ],
)
def test_a_node_that_does_not_open_is_named(opened: dict[str, str], words: str, remedy: str) -> None:
    """Revoked, forbidden, broken and missing nodes are told apart."""
    verdict = devices.evaluate_nodes({**GIVEN, "opened": opened}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.HOST)
    assert words in verdict.observed
    assert remedy in verdict.remedy


def test_a_node_that_nothing_needs_may_stay_closed() -> None:
    """nvidia-modeset is for displays."""
    opened = {**GIVEN["opened"], "/dev/nvidia-modeset": "EPERM"}
    assert devices.evaluate_nodes({**GIVEN, "opened": opened}, CLAIMS).status is Status.PASS


EIGHT = [f"/dev/nvidia{number}" for number in range(8)]
SLURM = {
    **GIVEN,
    "nodes": [*EIGHT, *NODES[1:]],
    "opened": {**dict.fromkeys(EIGHT, "EPERM"), "/dev/nvidia3": "ok", **dict.fromkeys(NODES[1:], "ok")},
    "numbers": dict.fromkeys([*EIGHT, *NODES[1:]], "c 195:0"),
    "cuda_visible": "0",
}
"""One of eight GPUs was allocated; the device cgroup refuses the others (Slurm's ConstrainDevices)."""


def test_gpus_of_other_jobs_are_not_a_fault() -> None:
    """Slurm shows all nodes and lets one be opened; NVML answers for that one, or says no permission for the others."""
    verdict = devices.evaluate_nodes(SLURM, CLAIMS)
    assert verdict.status is Status.PASS
    assert verdict.observed == "1 GPU nodes open; 7 more are not allocated to this job (EPERM)"
    one = {**SLURM, "count": 1, "devices": [{"index": 0, "code": 0}]}
    assert driver.evaluate_nvml(one, CLAIMS).status is Status.PASS
    counted = [{"index": number, "code": 0 if number == 3 else 4} for number in range(8)]
    assert driver.evaluate_nvml({**SLURM, "count": 8, "devices": counted}, CLAIMS).status is Status.PASS


def test_an_allocation_smaller_than_what_is_named_fails() -> None:
    """Two are named and one opens: whoever started the job has to act. NVML must answer for what was allocated."""
    verdict = devices.evaluate_nodes({**SLURM, "cuda_visible": "0,1"}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "CUDA_VISIBLE_DEVICES=0,1 names 2" in verdict.observed
    assert "srun --gpus 2" in verdict.remedy
    lost = driver.evaluate_nvml({**SLURM, "count": 0}, CLAIMS)
    assert (lost.status, lost.owner) == (Status.FAIL, Owner.HOST)


def test_gpus_that_are_all_refused_are_a_fault() -> None:
    """A systemd reload takes all of them away: nobody else has them."""
    opened = {**SLURM["opened"], **dict.fromkeys(EIGHT, "EPERM")}
    verdict = devices.evaluate_nodes({**SLURM, "opened": opened}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.HOST)


@pytest.mark.parametrize(("check", "library"), [("libcuda", "libcuda.so.1"), ("nvml", "libnvidia-ml.so.1")])
def test_a_driver_where_the_loader_does_not_look_gets_its_own_remedy(check: str, library: str) -> None:
    """GKE's device plugin mounts it in /usr/local/nvidia/lib64; more capabilities would not help."""
    place = "/usr/local/nvidia/lib64"
    facts = {**NOTHING, "nodes": NODES, "elsewhere": {library: place}}
    verdict = {"libcuda": driver.evaluate_libcuda, "nvml": driver.evaluate_nvml}[check](facts, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert verdict.observed == f"{library} is in {place}, where the loader does not look"
    assert f"LD_LIBRARY_PATH={place}" in verdict.remedy
    assert "--gpus" not in verdict.remedy


@pytest.mark.parametrize("folder", DRIVER_FOLDERS)
def test_a_driver_off_the_loaders_path_is_a_sign_with_its_place(tmp_path: Path, folder: str) -> None:
    """Where platforms mount it; with ld.so.conf naming the folder it is on the path."""
    place = tmp_path / folder.lstrip("/")
    place.mkdir(parents=True)
    (place / "libcuda.so.1").touch()
    signs = gpu_signs(tmp_path)
    assert signs["elsewhere"] == {"libcuda.so.1": folder}
    assert signs["libraries"] == []
    assert any_sign(signs)
    (tmp_path / "etc").mkdir(exist_ok=True)
    (tmp_path / "etc/ld.so.conf").write_text(folder + "\n")
    assert gpu_signs(tmp_path)["libraries"] == ["libcuda.so.1"]
    assert gpu_signs(tmp_path)["elsewhere"] == {}


@pytest.mark.parametrize("value", ["", "-1", "7", "0,1"])
def test_a_variable_that_hides_gpus_fails(value: str) -> None:
    """Empty, negative and out of range hide GPUs that are there."""
    verdict = devices.evaluate_visible({**GIVEN, "cuda_visible": value}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "CUDA_VISIBLE_DEVICES" in verdict.remedy


def test_void_is_right_under_cdi() -> None:
    """The toolkit sets void itself when it injects the nodes by CDI; without nodes void is the fault."""
    void = {**GIVEN, "visible": "void", "cuda_visible": None}
    assert devices.evaluate_visible(void, CLAIMS).status is Status.PASS
    assert devices.evaluate_visible({**void, "nodes": []}, CLAIMS).status is Status.FAIL


def test_nvml_without_libcuda_is_a_missing_capability() -> None:
    """nvidia-smi works and torch does not when only 'utility' was granted."""
    facts = {**NOTHING, "libraries": ["libnvidia-ml.so.1"], "nvml_loaded": True}
    verdict = driver.evaluate_libcuda(facts, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "capability 'compute'" in verdict.observed
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in verdict.remedy


def test_nodes_without_libcuda_fail() -> None:
    """Device nodes alone are a partial sign, too."""
    verdict = driver.evaluate_libcuda({**NOTHING, "nodes": NODES}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, Owner.START)
    assert "no libcuda.so.1" in verdict.observed
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in verdict.remedy


@pytest.mark.parametrize(
    ("changes", "owner"),
    [({"mapped": "/usr/local/cuda/lib64/stubs/libcuda.so.1"}, Owner.START), ({"mount": ""}, Owner.IMAGE)],
)
def test_a_libcuda_that_is_not_the_hosts_fails(changes: dict[str, str], owner: Owner) -> None:
    """A stub is the caller's fault, a file of the image is the image's."""
    verdict = driver.evaluate_libcuda({**GIVEN, **changes}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, owner)


@pytest.mark.parametrize("code", [3, 34, 35, 46, 100, 101, 304, 801, 802, 803, 804, 805, 999])
def test_every_known_code_has_words_and_a_remedy(code: int) -> None:
    """No known code falls through to the text for unknown ones."""
    verdict = driver.evaluate_init({**GIVEN, "code": code}, CLAIMS)
    assert verdict.status is Status.FAIL
    assert f"cuInit answers {code}: {CUDA[code].text}" in verdict.observed
    assert verdict.remedy
    assert verdict.owner


def test_an_unknown_code_fails_as_one() -> None:
    """A code from the future still fails, with where to look."""
    assert "unknown code" in cuda_meaning(4242).text
    assert "unknown code" in nvml_meaning(4242).text


@pytest.mark.parametrize(
    ("level", "status", "words"),
    [
        (99080, Status.PASS, "up to 99.8"),
        (100000, Status.PASS, "up to 100.0"),
        (99010, Status.PASS, "minor-version compatibility"),
        (98090, Status.FAIL, "up to 98.9 (torch's message: found version 98090); torch here was built for CUDA 99.8"),
    ],
)
def test_the_cuda_level_is_compared_with_the_need(level: int, status: Status, words: str) -> None:
    """The same major is enough; an older one is not."""
    verdict = driver.evaluate_level({**GIVEN, "level": level}, CLAIMS)
    assert verdict.status is status
    assert words in verdict.observed


def test_an_old_driver_gets_a_floor_and_a_tag_that_fits() -> None:
    """The remedy names the driver to upgrade to and the published line that the present one runs."""
    verdict = driver.evaluate_level({**GIVEN, "level": 98090}, CLAIMS)
    assert "999.60.13" in verdict.remedy
    assert "v-old" in verdict.remedy


def test_without_claims_torchs_own_cuda_is_the_need() -> None:
    """On bare metal the need is read from torch's files; without torch there is none."""
    assert driver.evaluate_level({**GIVEN, "torch_cuda": "100.1"}, NO_CLAIMS).status is Status.FAIL
    assert driver.evaluate_level({**GIVEN, "torch_cuda": ""}, NO_CLAIMS).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "words", "owner", "remedy"),
    [
        ({"code": 18}, "different versions", Owner.HOST, "restart the host"),
        ({"code": 999}, "systemd reload", Owner.HOST, "recreate the container"),
        ({"loaded": False}, "capability 'utility'", Owner.START, "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
        ({"count": 0}, "1 device nodes are here, NVML answers for 0", Owner.HOST, "nvidia-smi -L"),
        ({"driver": "999.1", "host_driver": "999.2"}, "kernel module of 999.2", Owner.START, "recreate"),
        ({"driver": "999.3", "host_driver": "999.2"}, "kernel module of 999.2", Owner.HOST, "restart the host"),
    ],
)
def test_nvml_and_the_kernel_module_must_fit(changes: dict[str, Any], words: str, owner: Owner, remedy: str) -> None:
    """A stale container is started again; a stale module needs a restart of the host."""
    verdict = driver.evaluate_nvml({**GIVEN, **changes}, CLAIMS)
    assert (verdict.status, verdict.owner) == (Status.FAIL, owner)
    assert words in verdict.observed
    assert remedy in verdict.remedy


def test_the_modules_version_is_read_from_both_forms() -> None:
    """The proprietary and the open module word /proc/driver/nvidia/version differently."""
    closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  999.60.13  Wed Nov 30 06:00:00 UTC 2026"
    opened = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  999.82.07  Release Build"
    assert [driver_version(text) for text in (closed, opened, "")] == ["999.60.13", "999.82.07", ""]


def test_the_mapped_file_is_read_from_maps() -> None:
    """A versioned file behind the link counts; another library with a longer name does not."""
    maps = "7f00-7f01 r-xp 0 00:1 1 /usr/lib/libcudart.so.9\n7f02-7f03 r-xp 0 00:1 2 /usr/lib/libcuda.so.999.1"
    assert mapped_file("libcuda.so.1", maps) == "/usr/lib/libcuda.so.999.1"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stand-in for libcuda.so.1."""
    return compile_stub(tmp_path_factory.mktemp("cuda")).parent


def ask(folder: Path, check: str, **environment: str) -> dict[str, Any]:
    """The finding of one check with the folder on the loader's path, and the run's exit code."""
    done = verify("--only", check, "--json", "-", LD_LIBRARY_PATH=str(folder), **environment)
    report = json.loads(done.stdout)
    found: dict[str, Any] = next(f for f in report["findings"] if f["check"] == check)
    return {**found, "exit_code": done.returncode}


@pytest.mark.parametrize("code", [34, 46, 100, 304, 802, 803, 804, 999])
def test_a_real_library_that_answers_a_code_is_understood(stub: Path, code: int) -> None:
    """The suite loads the stand-in through the loader, asks it, and fails with the code's meaning."""
    found = ask(stub, "cuda-init", STUB_CUINIT=str(code))
    assert found["exit_code"] == 1
    assert CUDA[code].text in found["observed"]
    assert str(stub / "libcuda.so.1") in found["observed"]
    by_path = code in (34, 803, 804)
    assert found["owner"] == (Owner.START if by_path else CUDA[code].owner).value
    assert found["remedy"] == (f"take {stub} out of LD_LIBRARY_PATH" if by_path else CUDA[code].remedy)


def test_a_real_library_tells_its_cuda_level(stub: Path, tmp_path: Path) -> None:
    """12040 is CUDA 12.4, too old for a claim of 99.8."""
    claims = tmp_path / "image.json"
    claims.write_text(json.dumps({"versions": {"cuda": "99.8"}}))
    found = ask(stub, "cuda-level", STUB_DRVVER="12040", GPUYARD_IMAGE_JSON=str(claims))
    assert (found["exit_code"], found["owner"]) == (1, "host")
    assert "supports CUDA up to 12.4" in found["observed"]
    assert "upgrade the host's driver" in found["remedy"]


def test_a_driver_that_crashes_is_an_answer(stub: Path) -> None:
    """SIGBUS inside libcuda ends the probe, not the suite; a required unknown is exit 3."""
    found = ask(stub, "cuda-init", STUB_CRASH="1")
    assert (found["status"], found["exit_code"]) == ("unknown", 3)
    assert "SIGBUS" in found["observed"]


def test_nvml_alone_is_a_missing_capability(tmp_path: Path) -> None:
    """A real libnvidia-ml.so.1 without libcuda.so.1 is what 'utility' alone gives."""
    compile_stub(tmp_path, "libnvidia-ml.so.1")
    found = ask(tmp_path, "libcuda")
    assert found["exit_code"] == 1
    assert "capability 'compute'" in found["observed"]


def test_nvml_answers_its_driver(tmp_path: Path) -> None:
    """The version and the count come from the library itself, and so does a refusal."""
    compile_stub(tmp_path, "libnvidia-ml.so.1")
    assert ask(tmp_path, "nvml")["observed"] == "driver 999.88.77, 1 GPUs"
    assert "nvmlInit answers 18" in ask(tmp_path, "nvml", STUB_NVML="18")["observed"]


@pytest.mark.parametrize(
    ("environment", "words", "owner"),
    [
        ({"STUB_CONTEXT": "999"}, "GPU 0: cuDevicePrimaryCtxRetain answers 999", Owner.HOST),
        ({"STUB_CONTEXT": "46"}, "busy or unavailable", Owner.HOST),
        ({"STUB_ALLOC": "2"}, "GPU 0: cuMemAlloc_v2 answers 2: the GPU has no memory left", Owner.HOST),
        ({"STUB_GPUS": "0"}, "the driver lists no GPU", Owner.START),
        ({"STUB_LOSES": "1"}, "GPU 0: memory does not hold what was written", Owner.HOST),
    ],
)
def test_a_driver_that_starts_and_cannot_be_used_fails(
    stub: Path, environment: dict[str, str], words: str, owner: Owner
) -> None:
    """The group that a prologue runs sees it: without a context and memory no program works."""
    found = ask(stub, "cuda-context", STUB_CUINIT="0", **environment)
    assert (found["status"], found["owner"], found["exit_code"]) == ("fail", owner.value, 1)
    assert words in found["observed"]
    assert "verify --only driver" not in found["remedy"]


def test_every_gpu_is_used_once(stub: Path) -> None:
    """Three GPUs, three contexts."""
    found = ask(stub, "cuda-context", STUB_CUINIT="0", STUB_GPUS="3")
    assert (found["status"], found["observed"]) == ("pass", "a context and 16 MB on each of 3 GPUs")


def test_a_driver_that_starts_passes(stub: Path) -> None:
    """cuInit 0 is shown on a pass, too."""
    assert ask(stub, "cuda-init", STUB_CUINIT="0")["observed"] == "cuInit: 0"
