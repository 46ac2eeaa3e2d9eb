"""What a session starts is gone after it, however it ends; images are read layer by layer."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace

import docker
import pytest
from docker.errors import NotFound

from gpuyard import paths
from gpuyard.acceptance.content import evaluate_driver, evaluate_secrets
from gpuyard.engine.session import SESSION, Owner, session, sweep
from gpuyard.engine.start import Start
from gpuyard.layers.reading import Stream, overlay_folders, read_save, walk
from gpuyard.waiting import until
from tests.refusals import refused
from verify.model import Claims, Status

SLEEP = ("/bin/sleep", "300")
STARTS_AND_WAITS = f"""
import docker, sys, time
from gpuyard.engine.session import session
from gpuyard.engine.start import Start
with session(docker.from_env()) as opened:
    opened.volume("test")
    opened.start(Start(sys.argv[1], shm="64m", command={SLEEP!r}))
    print(opened.owner, flush=True)
    time.sleep(300)
"""


def test_an_owner_is_read_back_from_its_label() -> None:
    """The label says which process it was, and a living one is not dead."""
    me = Owner.me()
    assert Owner.parse(str(me)) == me
    assert not me.dead()
    assert replace(me, born="1").dead()
    assert not replace(me, born="1", host="elsewhere").dead()
    assert Owner.parse("tests") is None


@pytest.fixture(scope="module")
def small(docker_client: docker.DockerClient) -> Iterator[str]:
    """A small image that can sleep: the statically linked programs of this machine in one layer each.

    Its first layer holds a host key, which its second deletes, and its third a driver library.
    """
    base, name = "gpuyard-test/base:latest", "gpuyard-test/small:latest"
    programs = io.BytesIO()
    with tarfile.open(fileobj=programs, mode="w", dereference=True) as tar:
        for file in needed("/bin/sleep", "/bin/sh", "/bin/rm"):
            tar.add(file)
    docker_client.api.import_image_from_data(programs.getvalue(), repository="gpuyard-test/base", tag="latest")
    recipe = f"""FROM {base}
COPY key /etc/ssh/ssh_host_rsa_key
RUN ["/bin/rm", "/etc/ssh/ssh_host_rsa_key"]
COPY key /usr/lib/libnvidia-ml.so.1
"""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for file, text in (("Dockerfile", recipe), ("key", "not a real one\n")):
            member = tarfile.TarInfo(file)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    context.seek(0)
    docker_client.images.build(fileobj=context, custom_context=True, tag=name, rm=True)
    yield name
    for image in (name, base):
        docker_client.images.remove(image, force=True)


def needed(*programs: str) -> set[str]:
    """The programs and the libraries that they are linked with."""
    found = set(programs)
    for program in programs:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        found |= {word for word in listed.split() if word.startswith("/")}
    return found


@pytest.mark.engine
def test_a_session_leaves_nothing(docker_client: docker.DockerClient, small: str) -> None:
    """Container and volume are gone after it, also after an error."""
    with pytest.raises(ZeroDivisionError), session(docker_client) as opened:
        container, volume = opened.start(Start(small, shm="64m", command=SLEEP)), opened.volume("test")
        raise ZeroDivisionError
    assert gone(docker_client, str(opened.owner))
    with pytest.raises(NotFound):
        docker_client.containers.get(container.id)
    with pytest.raises(NotFound):
        docker_client.volumes.get(volume.name)


def gone(client: docker.DockerClient, owner: str) -> bool:
    """Whether nothing of the session is left."""
    filters = {"label": f"{SESSION}={owner}"}
    return not client.containers.list(all=True, filters=filters) and not client.volumes.list(filters=filters)


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_session_leaves_nothing(
    docker_client: docker.DockerClient, small: str, number: signal.Signals
) -> None:
    """Ctrl-C, a kill and a lost terminal all clean up before the process ends."""
    command = [sys.executable, "-c", STARTS_AND_WAITS, small]
    with subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as it:
        assert it.stdout
        owner = it.stdout.readline().strip()
        assert not gone(docker_client, owner)
        it.send_signal(number)
        assert it.wait(timeout=30) != 0
    assert gone(docker_client, owner)


@pytest.mark.engine
def test_what_a_killed_session_left_is_swept_at_the_next_start(docker_client: docker.DockerClient, small: str) -> None:
    """Only the dead one's: a living session's container stays, and so does another host's."""
    command = [sys.executable, "-c", STARTS_AND_WAITS, small]
    with session(docker_client) as living:
        kept = living.start(Start(small, shm="64m", command=SLEEP))
        with subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True) as it:
            assert it.stdout
            owner = it.stdout.readline().strip()
            os.kill(it.pid, signal.SIGKILL)
        assert not gone(docker_client, owner)
        sweep(docker_client)
        assert gone(docker_client, owner)
        kept.reload()
        assert kept.status == "running"


@pytest.mark.engine
def test_an_image_that_cannot_start_is_one_clear_error(docker_client: docker.DockerClient, small: str) -> None:
    """The engine's reason is kept, and nothing is left of the try."""
    with session(docker_client) as opened, refused("container-start-failed", "/bin/nothing"):
        opened.start(Start(small, shm="64m", command=("/bin/nothing",)))
    assert gone(docker_client, str(opened.owner))


@pytest.mark.engine
def test_a_deleted_key_and_a_driver_file_are_found_in_a_saved_image(
    docker_client: docker.DockerClient, small: str
) -> None:
    """docker save shows what a container of the image does not."""
    found = list(read_save(Stream(docker_client.api.get_image(small))))
    facts = {"entries": [vars(entry) for entry in found]}
    secrets, driver = evaluate_secrets(facts, Claims({}, {})), evaluate_driver(facts, Claims({}, {}))
    assert secrets.status is Status.FAIL
    assert "/etc/ssh/ssh_host_rsa_key" in secrets.observed
    assert driver.status is Status.FAIL
    assert "/usr/lib/libnvidia-ml.so.1" in driver.observed


@pytest.mark.engine
def test_mounted_layers_show_the_same_files_as_the_saved_image(docker_client: docker.DockerClient, small: str) -> None:
    """The fast way misses nothing that the slow one finds."""
    with session(docker_client) as opened:
        container = opened.start(Start(small, shm="64m", command=SLEEP))
        folders = overlay_folders(container)
        if not folders:
            pytest.skip("the layers of this engine can't be read from here")
        fast = {entry.path for folder in folders for entry in walk(folder, "l")}
    slow = {entry.path for entry in read_save(Stream(docker_client.api.get_image(small)))}
    assert slow <= fast
    assert "/etc/ssh/ssh_host_rsa_key" in fast


def test_waiting_ends_with_the_first_true_answer_or_with_the_time() -> None:
    """No longer than needed, and not forever."""
    answers = iter([None, 0, "yes", "later"])
    assert until(lambda: next(answers), 5) == "yes"
    began = time.monotonic()
    assert until(lambda: None, 0.2) is None
    assert time.monotonic() - began < 2
