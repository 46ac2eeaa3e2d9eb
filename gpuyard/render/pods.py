"""The pod that every kind of Kubernetes job runs: not as root, with limits, and /dev/shm in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpuyard.render.work import PORT, Work

Object = dict[str, Any]

USER = 1000
"""trainer, the image's user."""
ENTRYPOINT = ("/usr/bin/tini", "-g", "--", "/opt/gpuyard/entrypoints/start")
HEALTH = "/opt/gpuyard/entrypoints/health"
CONTAINER = "node"
"""What Kubeflow Trainer calls it."""
PLACES = {"workspace": "/workspace", "data": "/mnt/data", "models": "/mnt/models"}

ALONE: Object = {"value": "0"}
INDEX: Object = {
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
}
"""The rank of a pod of an indexed job."""


@dataclass(frozen=True)
class Cluster:
    """Options of Kubernetes alone. ``claims`` maps workspace, data and models to volume claims."""

    kind: str = "job"
    namespace: str = ""
    claims: tuple[tuple[str, str], ...] = ()
    runtime: str = "torch-distributed"
    env: tuple[str, ...] = ()
    """NAME=value."""
    secrets: tuple[str, ...] = ()
    """NAME=SECRET:KEY."""
    pull_secret: str = ""
    selector: tuple[str, ...] = ()
    """LABEL=value of the nodes that may run it."""
    queue: str = ""
    """Kueue's LocalQueue."""


def pod(work: Work, cluster: Cluster, env: list[Object]) -> Object:
    """The pod template's spec."""
    judge = container("verify", work, cluster, work.checks, [])
    train = {
        **container(CONTAINER, work, cluster, work.command, [*env, *own_env(cluster)]),
        "livenessProbe": liveness(),
    }
    return {
        "restartPolicy": "Never",
        # A command that saves on SIGTERM gets the time for it.
        "terminationGracePeriodSeconds": 60,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        **placement(cluster),
        **({"initContainers": [judge]} if work.verify else {}),
        "containers": [train],
        "volumes": volumes(work, cluster),
    }


def own_env(cluster: Cluster) -> list[Object]:
    """The user's variables; a secret's value stays in the cluster."""
    plain = [{"name": name, "value": value} for name, _, value in (item.partition("=") for item in cluster.env)]
    secret: list[Object] = []
    for item in cluster.secrets:
        name, _, place = item.partition("=")
        holder, _, key = place.partition(":")
        secret.append({"name": name, "valueFrom": {"secretKeyRef": {"name": holder, "key": key}}})
    return [*plain, *secret]


def placement(cluster: Cluster) -> Object:
    """Which nodes may run the pod, and the secret that pulls its image."""
    labels = dict(item.split("=", 1) for item in cluster.selector)
    return {
        **({"nodeSelector": labels} if labels else {}),
        **({"imagePullSecrets": [{"name": cluster.pull_secret}]} if cluster.pull_secret else {}),
    }


def container(name: str, work: Work, cluster: Cluster, command: tuple[str, ...], env: list[Object]) -> Object:
    """A container of the image. The command is its arguments, so that the image's own start stays before it."""
    return {
        "name": name,
        "image": work.image,
        "args": literal(command),
        **({"env": env} if env else {}),
        "resources": resources(work),
        "securityContext": security(),
        "volumeMounts": mounts(cluster),
    }


def literal(command: Iterable[str]) -> list[str]:
    """The words, so that Kubernetes, which expands ``$(NAME)`` and halves ``$$``, leaves them as they are."""
    return [re.sub(r"\$(?=[$(])", "$$", word) for word in command]


def liveness() -> Object:
    """The image's own health check: it fails when a GPU is lost, and the pod then ends."""
    return {"exec": {"command": [HEALTH]}, "initialDelaySeconds": 30, "periodSeconds": 30, "timeoutSeconds": 10}


def resources(work: Work) -> Object:
    """Requests and limits are the same, so that nobody is throttled or evicted first."""
    amount = {"cpu": str(work.cpus), "memory": f"{work.memory}Gi"}
    if work.gpus:
        amount["nvidia.com/gpu"] = str(work.gpus)
    return {"requests": dict(amount), "limits": dict(amount)}


def pod_security() -> Object:
    """The user of the image, whose group may write to the volumes."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def security() -> Object:
    """Nothing that Kubernetes' restricted policy refuses."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def volumes(work: Work, cluster: Cluster) -> list[Object]:
    """Shared memory for DataLoader workers and NCCL, and the claims."""
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{work.shm}Gi"}}
    return [shm, *({"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in cluster.claims)]


def mounts(cluster: Cluster) -> list[Object]:
    """Where the volumes lie in the container."""
    return [
        {"name": "shm", "mountPath": "/dev/shm"},
        *({"name": name, "mountPath": PLACES[name]} for name, _ in cluster.claims),
    ]


def rendezvous(work: Work, master: str, rank: Object) -> list[Object]:
    """The variables that torchrun reads; Kubeflow Trainer sets the same."""
    plain = {
        "PET_NNODES": str(work.nodes),
        "PET_NPROC_PER_NODE": str(work.processes),
        "PET_MASTER_ADDR": master,
        "PET_MASTER_PORT": str(PORT),
    }
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        {"name": "PET_NODE_RANK", **rank},
    ]
