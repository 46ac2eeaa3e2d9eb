"""What the engine says of itself is understood: too old, rootless, snap, Docker Desktop."""

from __future__ import annotations

from typing import Any

import pytest

from gpuyard.acceptance.host import OLDEST, evaluate, kind, mode
from verify.model import Claims, Owner, Status

NONE = Claims({}, {})
PLAIN: dict[str, Any] = {"version": "99.1.5+dfsg1", "kind": "", "gpus": True, "mode": "CDI"}


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}, "rootless"),
        ({"DockerRootDir": "/var/snap/docker/common/var-lib-docker"}, "snap"),
        ({"OperatingSystem": "Docker Desktop"}, "desktop"),
        ({"SecurityOptions": ["name=seccomp"], "DockerRootDir": "/var/lib/docker"}, ""),
    ],
)
def test_the_kind_of_an_engine_is_read_from_its_info(info: dict[str, Any], name: str) -> None:
    """By the options, the folder and the name that each of them has."""
    assert kind(info) == name


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, Status.PASS, ""),
        ({"version": "20.10.9"}, Status.FAIL, OLDEST),
        ({"version": OLDEST}, Status.PASS, ""),
        ({"kind": "rootless", "mode": "runtime"}, Status.FAIL, "nvidia-ctk cdi generate"),
        ({"kind": "rootless", "mode": "CDI"}, Status.PASS, ""),
        ({"kind": "snap"}, Status.FAIL, "snap remove docker"),
        ({"kind": "desktop"}, Status.FAIL, "WSL 2"),
        ({"kind": "desktop", "gpus": False}, Status.PASS, ""),
    ],
)
def test_an_engine_that_cannot_do_it_is_named_with_the_way_out(
    changes: dict[str, Any], status: Status, words: str
) -> None:
    """Its kind matters only where a GPU is wanted; its age always."""
    verdict = evaluate({**PLAIN, **changes}, NONE)
    assert verdict.status is status
    assert words in verdict.remedy
    assert status is Status.PASS or verdict.owner is Owner.HOST


def test_the_way_of_handing_over_gpus_is_told() -> None:
    """CDI where it is on, else the runtime, else nothing."""
    assert mode({"CDISpecDirs": ["/etc/cdi"]}) == "CDI"
    assert mode({"Runtimes": {"nvidia": {}}}) == "runtime"
    assert mode({}) == ""
