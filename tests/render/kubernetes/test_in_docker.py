"""The pod's rules, given to a real container of the image: no cluster was at hand, but the engine knows them too."""

from __future__ import annotations

from typing import Any

import pytest
from docker.models.containers import Container

from gpuyard.render import pods as pods_
from gpuyard.render.kubernetes import build
from gpuyard.render.pods import Cluster
from gpuyard.render.work import Work
from gpuyard.waiting import until
from tests.containers import Runner
from tests.render.kubernetes.walk import Object, containers, pods

pytestmark = pytest.mark.image


def options(container: Object, pod: Object) -> dict[str, Any]:
    """What Kubernetes would do with this container, in Docker's words."""
    security, wide = container["securityContext"], pod["securityContext"]
    (shm,) = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == "shm"]
    return {
        "user": f"{wide['runAsUser']}:{wide['runAsGroup']}",
        "cap_drop": security["capabilities"]["drop"],
        "security_opt": [] if security["allowPrivilegeEscalation"] else ["no-new-privileges"],
        "mem_limit": container["resources"]["limits"]["memory"].replace("Gi", "g"),
        "shm_size": shm["sizeLimit"].replace("Gi", "g"),
        "environment": {item["name"]: item["value"] for item in container.get("env", ())},
    }


def logs(container: Container) -> list[str]:
    """The words on its standard output so far."""
    said: bytes = container.logs(stderr=False)
    return said.decode().split()


def test_the_image_runs_under_the_pods_rules(run_container: Runner, image: str) -> None:
    """Without any capability, without a way to become root: verify judges, the command runs, the probe answers."""
    command = ("sh", "-c", "id -u; echo $PET_NNODES $PET_NPROC_PER_NODE; while :; do sleep 1; done")
    found = build(Work(image, command, cpus=1, memory=3, shm=1), Cluster())
    (pod,) = pods(found)
    judge, train = containers(found)
    with run_container(judge["args"], image, **options(judge, pod)) as container:
        assert container.wait(timeout=60)["StatusCode"] == 0, container.logs().decode()
    with run_container(train["args"], image, **options(train, pod)) as container:
        said = until(lambda: logs(container) if len(logs(container)) > 2 else [], seconds=30)
        assert (said, container.exec_run([pods_.HEALTH]).exit_code) == (["1000", "1", "1"], 0)
