"""The Kubernetes objects of a training: a Job, an Indexed Job, a JobSet, or Kubeflow Trainer's TrainJob."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import yaml

from gpuyard.catalogue.table import unknown
from gpuyard.errors import UsageError
from gpuyard.render import pods
from gpuyard.render.pods import Cluster, Object
from gpuyard.render.work import PORT, Work, absent_script, check, is_local

_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_ENV = re.compile(r"[A-Za-z_]\w*=[^\n]*")
_SECRET = re.compile(r"[A-Za-z_]\w*=[a-z0-9]([a-z0-9.-]*[a-z0-9])?:[\w.-]+")
_LABEL = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?=([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?")
# A lost machine is retried; a usage error (exit code 2) would repeat on every machine.
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
        raise UsageError("render-choice-unknown", unknown("kind", cluster.kind, KINDS))
    if cluster.kind == "job" and work.nodes > 1:
        raise UsageError(
            "render-job-is-one-pod",
            f"--nodes {work.nodes} with --kind job: a Job is one pod; take indexed-job, jobset or trainjob",
        )
    _check(cluster)
    return KINDS[cluster.kind](work, cluster)


def _check(cluster: Cluster) -> None:
    names = {"namespace": cluster.namespace, "runtime": cluster.runtime, "pull-secret": cluster.pull_secret}
    for option, value in [*names.items(), ("queue", cluster.queue), *cluster.claims]:
        if value and not _CLAIM.fullmatch(value):
            raise UsageError(
                "render-value-invalid", f"--{option} {value!r}: expected a name of your cluster, in lower case"
            )
    shapes = (
        ("--env", cluster.env, _ENV, "NAME=value on one line"),
        ("--secret", cluster.secrets, _SECRET, "NAME=SECRET:KEY, with a secret of the namespace"),
        ("--node-selector", cluster.selector, _LABEL, "LABEL=value"),
    )
    for option, values, shape, expected in shapes:
        if wrong := next((value for value in values if not shape.fullmatch(value)), None):
            raise UsageError("render-value-invalid", f"{option} {wrong!r}: expected {expected}")


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
    """The same as one object: JobSet makes the service, and restarts all pods when one fails."""
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
    """Kubeflow Trainer owns the pods and sets the PET_ variables; patches set the rest."""
    # A patch cannot add a container, so verify runs before the command in the same one.
    judged = ("bash", "-c", f'{shlex.join(work.checks)} >&2 && exec "$@"', "gpuyard", *work.command)
    trainer = {
        "image": work.image,
        "command": list(pods.ENTRYPOINT),
        "args": pods.literal(judged if work.verify else work.command),
        "numNodes": work.nodes,
        "numProcPerNode": work.processes,
        **({"env": env} if (env := pods.own_env(cluster)) else {}),
        "resourcesPerNode": pods.resources(work),
    }
    patch = {
        "terminationGracePeriodSeconds": 60,
        "securityContext": pods.pod_security(),
        **pods.placement(cluster),
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
    queue = {"kueue.x-k8s.io/queue-name": cluster.queue} if cluster.queue and kind != "Service" else {}
    metadata = {"name": work.name, **place, "labels": {**_labels(work), **queue}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def missing_script(work: Work, cluster: Cluster) -> str:
    """The command's script if no claim and no image of the user's can hold it."""
    # Below these an image of this project has nothing; what a user's own image has is not known here.
    ours = is_local(work.image)
    empty = list(pods.PLACES.values()) if ours else [pods.PLACES["data"], pods.PLACES["models"]]
    return absent_script(work.command, [pods.PLACES[name] for name, _ in cluster.claims], empty)


def _head(work: Work, cluster: Cluster) -> str:
    """The file's first lines: how it was made, how to use it, and what it needs."""
    needs = {
        "jobset": "the JobSet controller",
        "trainjob": f"Kubeflow Trainer and its runtime {cluster.runtime}",
    }
    lines = ["Made by gpuyard render k8s. Start it with: kubectl apply -f THIS_FILE"]
    if need := needs.get(cluster.kind):
        lines.append(f"The cluster needs {need}.")
    if cluster.queue:
        lines.append(f"The cluster needs Kueue, and the namespace a LocalQueue named {cluster.queue}.")
    if script := missing_script(work, cluster):
        lines.append(f"{script} is in no volume: give a claim that holds it, or push an image that does.")
    if is_local(work.image):
        lines.append(f"{work.image} is a local name: push the image and render with --image REGISTRY/OWNER/NAME:TAG.")
    if cluster.claims and work.nodes > 1:
        lines.append("Every node mounts the claims: they must be ReadWriteMany.")
    return "".join(f"# {line}\n" for line in lines)
