"""The GPU's device nodes, and the variables that hide GPUs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Dict, List

from verify import remedies
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.probes.allocation import allocated, asked_for, open_nodes
from verify.probes.cgroup_events import device_rules, refusal
from verify.probes.gpu_signs import ADD_GPU, any_sign, gpu_nodes, gpu_signs, no_gpu
from verify.verdicts import failed, listed, passed

OTHER_KINDS = ("dxg", "nvhost-gpu", "nvmap")
CONTROL = ("nvidiactl", "nvidia-uvm")
"""Nodes that every call of the driver needs beside the GPU's own."""


def probe_nodes() -> Facts:
    """Open each device node as the driver's libraries would."""
    facts = gpu_signs()
    opened = open_nodes(facts["nodes"])
    return {
        **facts,
        "opened": opened,
        "numbers": {node: _number(node) for node in opened},
        "rules": device_rules(),
        "cuda_visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
    }


def _number(node: str) -> str:
    """The device's number as rules write it: c 195:0."""
    number = os.stat(node).st_rdev  # noqa: PTH116 - a string at hand
    return f"c {os.major(number)}:{os.minor(number)}"


def evaluate_nodes(facts: Facts, _claims: Claims) -> Verdict:
    """GPU, control and memory nodes must be here and open, or every call of the driver fails."""
    if not any_sign(facts):
        return no_gpu(facts)
    opened: Dict[str, str] = facts["opened"]
    names = {Path(node).name for node in opened}
    if names & set(OTHER_KINDS):
        return passed(f"device nodes: {listed(opened)}", "a GPU's device node")
    if not gpu_nodes(list(opened)):
        seen = f"{listed(facts['libraries'])} is here" if facts["libraries"] else listed(opened)
        text = f"no /dev/nvidia0 in this container, although {seen}"
        return failed(text, "one /dev/nvidiaN per GPU", ADD_GPU, Owner.START)
    ours = allocated(opened)
    vital = {*ours, *(node for node in opened if Path(node).name in CONTROL)}
    closed = {node: code for node, code in opened.items() if code not in ("ok", "folder") and node in vital}
    if closed:
        return _closed(closed, facts)
    absent = [node for node in CONTROL if node not in names]
    if absent:
        remedy = "on the host: nvidia-modprobe -u -c 0 (loads nvidia-uvm), then recreate the container"
        return failed(f"missing: /dev/{', /dev/'.join(absent)}", "control and memory nodes", remedy, Owner.HOST)
    return _allocation(ours, facts)


def _allocation(ours: List[str], facts: Facts) -> Verdict:
    """The nodes that open are the allocation; it must not be smaller than what the variable names."""
    others = len(gpu_nodes(list(facts["opened"]))) - len(ours)
    text = f"{len(ours)} GPU nodes open" + (f"; {others} more are not allocated to this job (EPERM)" if others else "")
    asked = asked_for(facts.get("cuda_visible"))
    if others and asked is not None and asked > len(ours):
        text += f", but CUDA_VISIBLE_DEVICES={facts['cuda_visible']} names {asked}"
        remedy = f"unset CUDA_VISIBLE_DEVICES, or ask the scheduler for {asked} GPUs: srun --gpus {asked} ..."
        return failed(text, "every GPU that is named opens", remedy, Owner.START, nodes=facts["opened"])
    return passed(text, "every GPU that was given opens", nodes=facts["opened"])


def _closed(closed: Dict[str, str], facts: Facts) -> Verdict:
    codes = set(closed.values())
    text = "cannot open " + listed(f"{node} ({code})" for node, code in closed.items())
    if "EPERM" in codes:
        refused = {node: facts["numbers"][node] for node, code in closed.items() if code == "EPERM"}
        why = refusal(facts["rules"], refused)
        text += f": the device rules of this container do not allow it (a systemd reload takes them away; {why})"
        remedy = "recreate the container; for good: CDI, or native.cgroupdriver=cgroupfs in the engine"
        return failed(text, "open() works", remedy, Owner.HOST)
    if "EACCES" in codes:
        remedy = "docker run --group-add video, or on SELinux hosts: setsebool -P container_use_devices on"
        return failed(text + ": no permission", "open() works", remedy, Owner.HOST)
    return failed(text, "open() works", "check dmesg for NVRM and Xid on the host; restart it", Owner.HOST)


def probe_visible() -> Facts:
    """Read the two variables that hide GPUs."""
    return {**gpu_signs(), "cuda_visible": os.environ.get("CUDA_VISIBLE_DEVICES")}


def evaluate_visible(facts: Facts, _claims: Claims) -> Verdict:
    """An empty, void or out-of-range list hides GPUs that were given."""
    if not any_sign(facts):
        return no_gpu(facts)
    asked, nodes = facts.get("cuda_visible"), gpu_nodes(facts["nodes"])
    unset = "unset CUDA_VISIBLE_DEVICES, or name GPUs that nvidia-smi -L lists"
    expected = "variables that leave a GPU visible"
    if asked is not None and asked.strip() in ("", "-1", "NoDevFiles", "void", "none"):
        return failed(f"CUDA_VISIBLE_DEVICES={asked!r} hides every GPU", expected, unset, Owner.START)
    wrong = [n for n in _numbers(asked or "") if nodes and n >= len(nodes)]
    if wrong:
        text = f"CUDA_VISIBLE_DEVICES={asked!r} names GPU {listed(wrong)}, but there are {len(nodes)} (from 0)"
        return failed(text, expected, unset, Owner.START)
    given = facts.get("visible")
    # Under CDI the toolkit itself sets void and injects the nodes, so void is wrong only without nodes.
    if given in ("", "void", "none") and not facts["nodes"]:
        remedy = "start with --gpus all, or -e NVIDIA_VISIBLE_DEVICES=all under the NVIDIA runtime"
        return failed(f"NVIDIA_VISIBLE_DEVICES={given!r} asks for no GPU", expected, remedy, Owner.START)
    both = {"NVIDIA_VISIBLE_DEVICES": given, "CUDA_VISIBLE_DEVICES": asked}
    return passed(listed(f"{name} {value or 'unset'}" for name, value in both.items()), expected)


def _numbers(text: str) -> List[int]:
    return [int(part) for part in text.split(",") if part.strip().isdigit()]


_check = partial(Check, group="driver", level=Level.GPU, isolation=Isolation.CHILD)

CHECKS: List[Check] = [
    _check(
        id="visible-devices",
        title="No variable hides the GPUs",
        probe=probe_visible,
        evaluate=evaluate_visible,
        why="An empty or wrong CUDA_VISIBLE_DEVICES, or NVIDIA_VISIBLE_DEVICES=void, hides GPUs that were given.",
        repairs=("unset CUDA_VISIBLE_DEVICES", "docker run --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all ..."),
        quick=True,
    ),
    _check(
        id="device-nodes",
        explained_by=("visible-devices",),
        title="The GPU's device nodes are here and open",
        probe=probe_nodes,
        evaluate=evaluate_nodes,
        why="Every driver call opens the GPU's device nodes; it fails where they are missing or may not be opened.",
        repairs=(
            remedies.GIVE_GPU,
            "on the host: sudo nvidia-modprobe -u -c 0",
            "recreate the container after a systemd reload",
        ),
        quick=True,
    ),
]
