"""Each object is one that the API accepts: Kubernetes' own schemas, and Kubeflow's models for JobSet and TrainJob."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest
from kubeflow_trainer_api import models

from gpuyard.render.kubernetes import KINDS, build
from tests.render.kubernetes.samples import sample
from tests.render.kubernetes.walk import Object, pods

MODELS = {"JobSet": models.JobsetV1alpha2JobSet, "TrainJob": models.TrainerV1alpha1TrainJob}
SIZES = [(1, 0), (2, 4)]


def validate(found: Object) -> None:
    """Strictly: a key that the API does not know fails."""
    kubernetes_validate.validate(found, kubernetes_validate.latest_version(), strict=True)


def round_trip(model: Any, found: Object) -> Object:
    """What the model keeps of an object: it drops keys that it does not know."""
    return dict(model.from_dict(found).to_dict())


@pytest.mark.parametrize(("nodes", "gpus"), SIZES)
@pytest.mark.parametrize("kind", ["job", "indexed-job"])
def test_kubernetes_accepts_jobs_and_services(kind: str, nodes: int, gpus: int) -> None:
    """The schemas of Kubernetes' own release, in which unknown keys are errors."""
    for found in build(*sample(kind, nodes, gpus)):
        validate(found)


@pytest.mark.parametrize(("nodes", "gpus"), SIZES)
@pytest.mark.parametrize("kind", ["jobset", "trainjob"])
def test_kubeflows_models_keep_every_key(kind: str, nodes: int, gpus: int) -> None:
    """What went through the model equals what was rendered, so no key is unknown and no value of a wrong type."""
    (found,) = build(*sample(kind, nodes, gpus))
    assert round_trip(MODELS[found["kind"]], found) == found


def test_the_job_in_a_jobset_is_one_that_kubernetes_accepts() -> None:
    """Kubeflow's models are lenient about it; Kubernetes' schema is not."""
    (found,) = build(*sample("jobset"))
    for inner in found["spec"]["replicatedJobs"]:
        validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, **inner["template"]})


OPTIONS = {
    "env": ("LR=0.1", "NOTE=a=b"),
    "secrets": ("HF_TOKEN=tokens:hf",),
    "pull_secret": "pull",
    "selector": ("nvidia.com/gpu.product=H100", "zone=a"),
    "queue": "lab",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_reaches_the_pods(kind: str) -> None:
    """Variables, secrets, the pull secret and the node selector in each pod, the queue on the object; all valid."""
    work, cluster = sample(kind)
    found = build(work, replace(cluster, **OPTIONS))  # type: ignore[arg-type]
    for one in found:
        if one["kind"] in MODELS:
            assert round_trip(MODELS[one["kind"]], one) == one
        else:
            validate(one)
    text = json.dumps(found)
    for part in (
        {"name": "LR", "value": "0.1"},
        {"name": "NOTE", "value": "a=b"},
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "hf"}}},
        {"nvidia.com/gpu.product": "H100", "zone": "a"},
        [{"name": "pull"}],
    ):
        assert json.dumps(part) in text
    assert found[-1]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"


def kept(model: Any, found: Object) -> bool:
    """Whether the model takes the object as it is."""
    try:
        return round_trip(model, found) == found
    except (AttributeError, TypeError, ValueError):
        return False


@pytest.mark.parametrize("change", [{"restartPolcy": "Never"}, {"volumes": "none"}])
def test_the_validators_see_a_wrong_pod(change: Object) -> None:
    """A misspelt key and a wrong type are found in a Job, and by the model of a TrainJob."""
    (job,) = build(*sample("job"))
    job["spec"]["template"]["spec"].update(change)
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(job)
    (train,) = build(*sample("trainjob"))
    pods(train)[0].update(change)
    assert not kept(MODELS["TrainJob"], train)


def test_every_kind_is_validated_here() -> None:
    """A kind added later fails until one of the tests above knows it."""
    assert {*KINDS} == {"job", "indexed-job", "jobset", "trainjob"}
