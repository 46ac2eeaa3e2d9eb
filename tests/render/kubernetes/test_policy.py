"""What holds for every kind of job: never root, within limits, shared memory that is memory, words as typed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from gpuyard import paths
from gpuyard.render import pods as pods_
from gpuyard.render.kubernetes import KINDS, build, manifest
from tests.render.kubernetes.samples import GOLDEN, sample
from tests.render.kubernetes.walk import Object, containers, expanded, objects, pods

ALL = pytest.mark.parametrize("kind", KINDS)


@ALL
def test_nothing_runs_as_root(kind: str) -> None:
    """Every pod has a user, and every container of it can become no other."""
    found = build(*sample(kind))
    assert pods(found)
    for pod in pods(found):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == 1000
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(found):
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@ALL
def test_nothing_reaches_for_the_host(kind: str) -> None:
    """No privileged container, host namespace or folder of the host, and no token of the cluster's API."""
    keys = {key for found in objects(build(*sample(kind))) for key in found}
    assert not keys & {"privileged", "hostNetwork", "hostIPC", "hostPID", "hostPath"}
    if kind != "trainjob":
        assert all(pod["automountServiceAccountToken"] is False for pod in pods(build(*sample(kind))))


@ALL
def test_limits_are_set(kind: str) -> None:
    """Processors, memory and GPUs of every container, equal to what is requested."""
    resources = [found for found in objects(build(*sample(kind))) if "limits" in found]
    assert len(resources) == (1 if kind == "trainjob" else 2)
    for found in resources:
        assert found["limits"] == found["requests"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "4"}


@ALL
def test_without_gpus_none_are_asked_for(kind: str) -> None:
    """A cluster without GPUs would leave the pod pending for ever."""
    assert "nvidia.com" not in manifest(*sample(kind, gpus=0))


@ALL
def test_shared_memory_is_memory(kind: str) -> None:
    """/dev/shm is a volume of memory with a size, in every container."""
    found = build(*sample(kind))
    for pod in pods(found):
        assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in pod["volumes"]
    for container in containers(found):
        assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]


@ALL
def test_claims_are_mounted_where_the_image_expects_them(kind: str) -> None:
    """Code, data and models, each once."""
    for container in containers(build(*sample(kind))):
        places = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert places == {"shm": "/dev/shm", "workspace": "/workspace", "data": "/mnt/data", "models": "/mnt/models"}


@ALL
@pytest.mark.parametrize("verify", [True, False])
def test_a_commands_words_stay_words(kind: str, verify: bool) -> None:
    """Kubernetes expands dollars in arguments; what arrives is what was typed."""
    work, cluster = sample(kind)
    command = ("python", "-c", "$(PET_NNODES) $$(x) $ $HOME $$ `ls` 'q' \"d\"\n- x: y")
    text = manifest(replace(work, command=command, verify=verify), cluster)
    (args,) = [
        found["args"]
        for found in objects(list(yaml.safe_load_all(text)))
        if "args" in found and found.get("name") != "verify"
    ]
    assert tuple(expanded(word, {"PET_NNODES": "9"}) for word in args[-3:]) == command


@ALL
def test_the_node_is_judged_before_the_command(kind: str) -> None:
    """verify comes first: as an init container, or in a TrainJob, whose patches can add none, before the command."""
    work, cluster = sample(kind)
    found = build(work, cluster)
    if kind == "trainjob":
        assert found[0]["spec"]["trainer"]["args"][2].startswith("verify --only driver,")
    else:
        assert [first["args"][0] for pod in pods(found) for first in pod["initContainers"]] == ["verify"]
    assert "verify" not in manifest(replace(work, verify=False), cluster)


@pytest.mark.parametrize("kind", ["job", "indexed-job", "jobset"])
def test_the_images_own_health_check_is_the_probe(kind: str) -> None:
    """A lost GPU ends the pod; the program is the one that the image's HEALTHCHECK names."""
    probes = [found["livenessProbe"] for found in containers(build(*sample(kind))) if "livenessProbe" in found]
    assert [probe["exec"]["command"] for probe in probes] == [[pods_.HEALTH]]
    assert f'CMD ["{pods_.HEALTH}"]' in (paths.IMAGES / "workbench" / "Dockerfile").read_text()


@pytest.mark.parametrize("image", ["workbench", "runtime"])
def test_the_start_of_a_trainjob_is_the_images(image: str) -> None:
    """A TrainJob's command takes the entry point's place, so it names the same program."""
    (words,) = re.findall(r"^ENTRYPOINT \[(.*)\]$", (paths.IMAGES / image / "Dockerfile").read_text(), re.MULTILINE)
    assert re.findall(r'"([^"]*)"', words) == list(pods_.ENTRYPOINT)


def env_of(kind: str) -> dict[str, Object]:
    """The variables of the container that trains."""
    (train,) = [found for found in containers(build(*sample(kind))) if "env" in found]
    return {item["name"]: item for item in train["env"]}


def test_the_ranks_of_an_indexed_job_meet_at_the_first_pod() -> None:
    """The service selects the job's pods, their subdomain is its name, and its port is the one they meet at."""
    service, job = build(*sample("indexed-job"))
    env = env_of("indexed-job")
    assert env["PET_MASTER_ADDR"]["value"] == f"{job['metadata']['name']}-0.{service['metadata']['name']}"
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    assert str(service["spec"]["ports"][0]["port"]) == env["PET_MASTER_PORT"]["value"]
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)


def test_the_ranks_of_a_jobset_meet_at_the_first_pod() -> None:
    """Its name is what JobSet gives it: set, job, replica and index, below the set's own service."""
    (found,) = build(*sample("jobset"))
    (replicated,) = found["spec"]["replicatedJobs"]
    name = found["metadata"]["name"]
    assert env_of("jobset")["PET_MASTER_ADDR"]["value"] == f"{name}-{replicated['name']}-0-0.{name}"
    assert found["spec"]["network"]["enableDNSHostnames"] is True


@pytest.mark.parametrize("kind", ["indexed-job", "jobset"])
def test_each_pod_is_one_node(kind: str) -> None:
    """As many pods at once as nodes, each with its own rank."""
    (spec,) = [found for found in objects(build(*sample(kind, nodes=3))) if "completions" in found]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert "job-completion-index" in str(env_of(kind)["PET_NODE_RANK"])


@ALL
def test_the_reviewed_file_is_what_is_rendered(kind: str) -> None:
    """A change shows in the file that people read; `python -m tests.render.kubernetes.samples` writes it."""
    assert (GOLDEN / f"{kind}.yaml").read_text() == manifest(*sample(kind))
