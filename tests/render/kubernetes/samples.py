"""What this room's tests render, and the reviewed files that `python -m tests.render.kubernetes.samples` writes."""

from __future__ import annotations

from pathlib import Path

from gpuyard.render.kubernetes import KINDS, manifest
from gpuyard.render.pods import Cluster
from gpuyard.render.work import Work

GOLDEN = Path(__file__).with_name("golden")
CLAIMS = (("workspace", "code"), ("data", "news"), ("models", "weights"))


def sample(kind: str, nodes: int = 2, gpus: int = 4) -> tuple[Work, Cluster]:
    """A training of that kind on the nodes it can have."""
    command = ("torchrun", "train.py", "--note", "it's 5 $HOME")
    work = Work("registry.test/lab/image:9.9.9", command, nodes=1 if kind == "job" else nodes, gpus=gpus)
    return work, Cluster(kind, "lab", CLAIMS)


if __name__ == "__main__":
    for name in KINDS:
        (GOLDEN / f"{name}.yaml").write_text(manifest(*sample(name)))
