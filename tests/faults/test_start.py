"""Faults of a container's start and of its machine, given to real containers: limits, memory, devices, network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.containers import Run
from tests.faults.conftest import VerifyWith, finding
from tests.faults.test_containers import SITE, checked

pytestmark = [pytest.mark.image, pytest.mark.full]
FILL = """
import os
children = []
while True:
    try:
        child = os.fork()
    except BlockingIOError:
        break
    if not child:
        os.execvp("sleep", ["sleep", "60"])
    children.append(child)
os.kill(children[-1], 9)
os.waitpid(children[-1], 0)
os.execvp("verify", ["verify", "--only", "threads", "--json", "-"])
"""
"""Takes every process that the limit leaves but one: the probe's own, which then has none for its thread."""
GREEDY = "python -c 'b = []\nwhile True: b.append(bytearray(b\"x\" * (1 << 24)))' || true"
KERNEL_MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {0}  Wed Nov 30 06:00:00 UTC 2026"
VERBS = "/dev/null:/dev/infiniband/uverbs0:rwm"


def as_root(run: Run, script: str, check: str, **options: Any) -> dict[str, Any]:
    """The finding of one check after a script of root's, past the image's own start."""
    ended = run(f"{script}; verify --only {check} --json -", entrypoint=["sh", "-c"], user="0", **options)
    return finding(ended, check)


def test_a_limit_of_processes_is_told_with_its_number_and_its_flag(run: Run) -> None:
    """The last process is the probe's; its thread is refused with EAGAIN, which does not mean an old Docker."""
    found = finding(run("python", "-c", FILL, pids_limit=16), "threads")
    assert (found["status"], found["owner"]) == ("fail", "container start")
    assert found["observed"] == "a thread cannot be started: EAGAIN (pids limit 16)"
    assert "--pids-limit" in found["remedy"]
    assert "a thread was started" in checked(run, "threads", pids_limit=64)["observed"]


def test_a_process_killed_for_memory_is_counted(run: Run) -> None:
    """One process outgrows the container's memory and is killed; the count stays and is told with the limit."""
    limits = {"mem_limit": "512m", "memswap_limit": "512m"}
    found = checked(run, "memory-kills", GREEDY, **limits)
    assert (found["status"], found["owner"]) == ("fail", "container start")
    assert "the kernel killed 1 process" in found["observed"]
    assert "limit 512 MB" in found["observed"]
    assert checked(run, "memory-kills", **limits)["observed"].startswith("no process was killed for memory (limit 512")


def test_little_memory_and_a_quota_of_processors_are_told(run: Run) -> None:
    """512 MB fail with the flag; half a processor comes with the number of threads to set."""
    assert "--memory" in checked(run, "resources", mem_limit="512m")["remedy"]
    found = checked(run, "resources", nano_cpus=500_000_000)
    assert found["status"] == "pass"
    assert found["observed"].startswith("1 CPUs")


def test_shared_memory_on_a_disk_is_found(run: Run, tmp_path: Path) -> None:
    """What somebody mounts where --shm-size cannot be given, as in swarm (E65); a tmpfs there passes."""
    tmp_path.chmod(0o777)
    found = checked(run, "shm-type", volumes={str(tmp_path): {"bind": "/dev/shm", "mode": "rw"}})
    assert (found["status"], found["expected"]) == ("fail", "tmpfs")
    assert checked(run, "shm-size", tmpfs={"/dev/shm": "size=1g"})["status"] == "pass"


def test_small_shared_memory_is_told_in_nccls_words_too(run: Run) -> None:
    """'unhandled system error' is what a user of several GPUs has seen (E63)."""
    assert "NCCL of 'unhandled system error'" in checked(run, "shm-size")["expected"]


def test_infiniband_without_lockable_memory_or_library_is_found(run: Run) -> None:
    """A device node as InfiniBand has it: memlock matters now, and so does libibverbs (E67)."""
    from docker.types import Ulimit

    low = [Ulimit(name="memlock", soft=8 << 20, hard=8 << 20)]
    found = checked(run, "limit-memlock", devices=[VERBS], ulimits=low)
    assert (found["status"], found["observed"]) == ("fail", "8 MB of lockable memory beside /dev/infiniband")
    assert "--ulimit memlock=-1 --cap-add IPC_LOCK" in found["remedy"]
    assert checked(run, "limit-memlock", ulimits=low)["observed"] == "8 MB; no InfiniBand needs more"
    assert "NCCL would go over TCP" in checked(run, "infiniband", devices=[VERBS])["observed"]
    assert checked(run, "infiniband")["observed"] == "no /dev/infiniband"


def test_the_interface_that_nccl_would_take_is_told(run: Run) -> None:
    """A name that is none fails; ^docker0, which brings lo back, is shown as what it does (F74)."""
    assert checked(run, "interface", environment={"NCCL_SOCKET_IFNAME": "ib9"})["status"] == "fail"
    assert "NCCL would take eth0 of" in checked(run, "interface")["observed"]
    assert (
        "NCCL would take lo, eth0 of"
        in checked(run, "interface", environment={"NCCL_SOCKET_IFNAME": "^docker0"})["observed"]
    )


def test_ranks_meet_without_ipv6(run: Run) -> None:
    """With IPv6 switched off the collectives pass, whatever gloo says about it (F75)."""
    off = {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.lo.disable_ipv6": "1"}
    found = checked(run, "gloo-two-ranks", sysctls=off)
    assert found["status"] == "pass", found
    assert found["observed"].startswith("2 ranks met, all values right")


def test_ranks_without_any_network_still_meet_and_the_hostname_is_told(run: Run) -> None:
    """Cut off: the loopback is enough for one container, and other nodes cannot reach it."""
    assert checked(run, "gloo-two-ranks", network_mode="none")["status"] == "pass"
    assert "NCCL would take lo of lo" in checked(run, "interface", network_mode="none")["observed"]


def test_refused_numa_calls_are_seen(run: Run) -> None:
    """Docker's own profile refuses them, SYS_NICE allows them; what NCCL makes of it needs two GPUs (F79)."""
    ask = ("python", "-P", "-c", "from verify.probes.system import numa_refused as n; print(n())")
    assert run(*ask).stdout == "True\n"
    assert run(*ask, cap_add=["SYS_NICE"]).stdout == "False\n"


def test_driver_files_in_the_image_are_found(run: Run) -> None:
    """A library and a program of a driver that nobody mounted (A8, A9)."""
    bake = "touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.999.1; cp /bin/true /usr/bin/nvidia-smi"
    found = as_root(run, bake, "driver-files")
    assert (found["status"], found["owner"]) == ("fail", "image")
    assert "libnvidia-ml.so.999.1" in found["observed"]
    assert "/usr/bin/nvidia-smi" in found["observed"]
    assert as_root(run, "true", "driver-files")["status"] == "pass"


@pytest.mark.parametrize(
    ("module", "words", "owner"),
    [
        ("999.90.1", "recreate this container", "container start"),
        ("999.10.1", "restart the host", "host"),
        ("999.88.77", "", None),
    ],
)
def test_a_kernel_module_of_another_version_is_found(
    with_fault: VerifyWith, module: str, words: str, owner: str | None
) -> None:
    """/proc/driver/nvidia/version says one version, NVML another: older container or host to restart (A13)."""
    text = KERNEL_MODULE.format(module)
    script = (
        "mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && "
        f"echo '{text}' > /proc/driver/nvidia/version && verify --only nvml --json -"
    )
    free = {"cap_add": ["SYS_ADMIN"], "security_opt": ["apparmor=unconfined", "seccomp=unconfined"]}
    ended = with_fault("whole", script, entrypoint=["sh", "-c"], user="0", **free)
    found = finding(ended, "nvml")
    assert (found["status"], found["owner"]) == ("fail" if owner else "pass", owner), ended.stdout
    assert words in found["remedy"]
    assert not owner or f"NVML is of driver 999.88.77, the kernel module of {module}" in found["observed"]


def test_the_rule_that_lacks_is_named_where_the_kernel_shows_it(
    with_fault: VerifyWith, docker_client: docker.DockerClient
) -> None:
    """cgroup v1 lists the devices that may be opened; v2 has no list, and EPERM alone is the sign."""
    found = finding(with_fault("nodes-refused", "verify", "--only", "device-nodes", "--json", "-"), "device-nodes")
    assert found["status"] == "fail"
    version = docker_client.info()["CgroupVersion"]
    assert ("devices.list allows for c 195:0" if version == "1" else "under cgroup v2") in found["observed"]
    good = with_fault("whole", "verify", "--only", "device-nodes", "--json", "-")
    assert finding(good, "device-nodes")["observed"] == "1 GPU nodes open"


def test_a_runtime_image_says_that_it_has_no_nvcc(run: Run) -> None:
    """Not a fault, and what to take instead (C44); without the arch list a build would end in IndexError (C46)."""
    found = checked(run, "nvcc")
    assert found["status"] == "pass"
    assert "this is a runtime image; to compile CUDA code use an image with the toolkit" in found["observed"]
    lacks = checked(run, "nvcc", "unset TORCH_CUDA_ARCH_LIST")
    assert "IndexError" in lacks["observed"]
    assert "export TORCH_CUDA_ARCH_LIST=" in lacks["remedy"]


def test_a_package_without_its_system_library_is_named(run: Run) -> None:
    """What opencv is in an image without a display: a compiled part that needs libGL (C50)."""
    before = (
        f"mkdir {SITE}/cv2; echo | gcc -shared -x c - -o /tmp/libGL.so.1 -Wl,-soname,libGL.so.1; "
        f"echo | gcc -shared -x c - -o {SITE}/cv2/cv2.abi3.so -Wl,--no-as-needed -L/tmp -l:libGL.so.1"
    )
    found = checked(run, "needed-libraries", before)
    assert "cv2/cv2.abi3.so needs libGL.so.1" in found["observed"]


def test_no_cuda_package_comes_by_apt(run: Run) -> None:
    """So none can be held, broken or moved by an upgrade (C41, C42); a package that is there would be seen."""
    listed = run("dpkg-query", "-W", "-f", "${Package}\n").stdout.split()
    assert "gcc" in listed
    assert [name for name in listed if re.match(r"(lib)?(cuda|cudnn|cudart|cublas|nccl|nv|nvidia|npp)", name)] == []


def test_an_older_libstdcxx_first_on_the_path_is_named(run: Run) -> None:
    """The import dies of a missing symbol version; the file that was mapped and what it offers are told (C51)."""
    decoy = "echo | gcc -shared -nostdlib -x c - -o /tmp/libstdc++.so.6 -Wl,-soname,libstdc++.so.6"
    found = checked(run, "decoys", decoy, "LD_LIBRARY_PATH=/tmp")
    assert "/tmp/libstdc++.so.6" in found["observed"]
    broken = checked(run, "torch-import", decoy, "LD_LIBRARY_PATH=/tmp")
    assert broken["status"] == "fail"
    assert "(found first: /tmp/libstdc++.so.6, up to no version at all)" in broken["observed"]
    assert "unset LD_LIBRARY_PATH" in broken["remedy"]


def test_the_whole_report_is_json_by_the_schema(run: Run) -> None:
    """`verify --json -` on a container's stdout, as `python -m json.tool` and the schema read it."""
    import jsonschema

    import verify.report

    ended = run("sh", "-c", "verify --json - | python -m json.tool", shm_size="1g", timeout=300)
    assert ended.code == 0, ended.stderr
    schema = json.loads((Path(verify.report.__file__).parent / "schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(ended.stdout))
