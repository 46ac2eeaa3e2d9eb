"""The Kubernetes objects of a training: a Job, an Indexed Job, a JobSet, or a TrainJob of Kubeflow Trainer."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import yaml

from gpuyard.catalogue.table import unknown
from gpuyard.errors import UsageError
from gpuyard.render import pods
from gpuyard.render.pods import Cluster, Object
from gpuyard.render.work import PORT, Work, check

_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
# Losing a machine is nobody's fault; wrong words would be wrong on every machine.
_FAULTS: Object = {
    "rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": pods.CONTAINER, "operator": "In", "values": [2]}},
    ]
}


def manifest(work: Work, cluster: Cluster) -> str:
    """The objects as YAML for kubectl. Raises UsageError for what the API would refuse."""
    objects = build(work, cluster)
    documents = yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True, width=1000)
    return f"{_head(work, cluster)}{documents}"


def build(work: Work, cluster: Cluster) -> list[Object]:
    """The objects as plain data."""
    check(work)
    if cluster.kind not in KINDS:
        raise UsageError(unknown("kind", cluster.kind, KINDS))
    if cluster.kind == "job" and work.nodes > 1:
        raise UsageError(
            f"--nodes {work.nodes} with --kind job: a Job is one pod; take indexed-job, jobset or trainjob"
        )
    for option, value in [("namespace", cluster.namespace), ("runtime", cluster.runtime), *cluster.claims]:
        if value and not _CLAIM.fullmatch(value):
            raise UsageError(f"--{option} {value!r}: expected a name of your cluster, in lower case")
    return KINDS[cluster.kind](work, cluster)


def job(work: Work, cluster: Cluster) -> list[Object]:
    """One pod. torchrun finds its processes in the same variables as on many nodes."""
    env = pods.rendezvous(work, "127.0.0.1", pods.ALONE)
    return [_object("batch/v1", "Job", work, cluster, _job(work, cluster, env, {"backoffLimit": 3}))]


def indexed_job(work: Work, cluster: Cluster) -> list[Object]:
    """One pod a node, and the service by which they find the first."""
    service = {
        "clusterIP": "None",
        # The ranks look for each other before any of them is ready.
        "publishNotReadyAddresses": True,
        "selector": {"batch.kubernetes.io/job-name": work.name},
        "ports": [{"name": "rendezvous", "port": PORT}],
    }
    more = {"completionMode": "Indexed", "completions": work.nodes, "parallelism": work.nodes}
    spec = _job(
        work,
        cluster,
        pods.rendezvous(work, f"{work.name}-0.{work.name}", pods.INDEX),
        {**more, "backoffLimit": 3 * work.nodes},
    )
    # Gives each pod the name that the service knows it by.
    spec["template"]["spec"]["subdomain"] = work.name
    return [
        _object("v1", "Service", work, cluster, service),
        _object("batch/v1", "Job", work, cluster, spec),
    ]


def jobset(work: Work, cluster: Cluster) -> list[Object]:
    """The same as one object: JobSet makes the service, and starts all pods anew when one fails."""
    more = {
        "completionMode": "Indexed",
        "completions": work.nodes,
        "parallelism": work.nodes,
        "backoffLimit": 0,
    }
    env = pods.rendezvous(work, f"{work.name}-{pods.CONTAINER}-0-0.{work.name}", pods.INDEX)
    template = {"spec": _job(work, cluster, env, more)}
    spec = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 3},
        "replicatedJobs": [{"name": pods.CONTAINER, "replicas": 1, "template": template}],
    }
    return [_object("jobset.x-k8s.io/v1alpha2", "JobSet", work, cluster, spec)]


def trainjob(work: Work, cluster: Cluster) -> list[Object]:
    """Kubeflow Trainer owns the pods and sets the PET_ variables; it is told the rest by patches."""
    # A patch cannot add a container, so verify runs before the command in the same one.
    judged = ("bash", "-c", f'{shlex.join(work.checks)} >&2 && exec "$@"', "gpuyard", *work.command)
    trainer = {
        "image": work.image,
        "command": list(pods.ENTRYPOINT),
        "args": pods.literal(judged if work.verify else work.command),
        "numNodes": work.nodes,
        "numProcPerNode": work.processes,
        "resourcesPerNode": pods.resources(work),
    }
    patch = {
        "terminationGracePeriodSeconds": 60,
        "securityContext": pods.pod_security(),
        "containers": [
            {"name": pods.CONTAINER, "securityContext": pods.security(), "volumeMounts": pods.mounts(cluster)}
        ],
        "volumes": pods.volumes(work, cluster),
    }
    jobs = [{"name": pods.CONTAINER, "template": {"spec": {"template": {"spec": patch}}}}]
    spec = {
        "runtimeRef": {"kind": "ClusterTrainingRuntime", "name": cluster.runtime},
        "trainer": trainer,
        "runtimePatches": [
            {"manager": "gpuyard.io/render", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        ],
    }
    return [_object("trainer.kubeflow.org/v1alpha1", "TrainJob", work, cluster, spec)]


KINDS: dict[str, Callable[[Work, Cluster], list[Object]]] = {
    "job": job,
    "indexed-job": indexed_job,
    "jobset": jobset,
    "trainjob": trainjob,
}


def _job(work: Work, cluster: Cluster, env: list[Object], more: Object) -> Object:
    return {
        **more,
        "podFailurePolicy": _FAULTS,
        "template": {"metadata": {"labels": _labels(work)}, "spec": pods.pod(work, cluster, env)},
    }


def _labels(work: Work) -> dict[str, str]:
    return {"app.kubernetes.io/name": work.name, "app.kubernetes.io/managed-by": "gpuyard"}


def _object(version: str, kind: str, work: Work, cluster: Cluster, spec: Object) -> Object:
    place = {"namespace": cluster.namespace} if cluster.namespace else {}
    metadata = {"name": work.name, **place, "labels": _labels(work)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _head(work: Work, cluster: Cluster) -> str:
    """The file's first lines: what makes it, how to use it, and what it needs of the cluster."""
    needs = {
        "jobset": "the JobSet controller",
        "trainjob": f"Kubeflow Trainer and its runtime {cluster.runtime}",
    }
    lines = ["Made by gpuyard render k8s. Start it with: kubectl apply -f THIS_FILE"]
    if need := needs.get(cluster.kind):
        lines.append(f"The cluster needs {need}.")
    if "/" not in work.image:
        lines.append(f"{work.image} is a local name: push the image and render with --image REGISTRY/OWNER/NAME:TAG.")
    if cluster.claims and work.nodes > 1:
        lines.append("Every node mounts the claims: they must be ReadWriteMany.")
    return "".join(f"# {line}\n" for line in lines)
