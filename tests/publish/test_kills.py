"""Killed at any step, a publication leaves no tag but those of a verified, complete image; the next one completes."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard.publish import evidence, publisher
from gpuyard.publish.publisher import Publication
from gpuyard.publish.registry import Repository
from gpuyard.publish.signing import Signer
from tests.publish.conftest import Ordering, quiet

SHIM = """\
#!/bin/bash
# In place of oras or cosign: counts the calls that match, and at one of them kills the caller.
number=$(($(cat "$COUNT" 2>/dev/null || echo 0)))
if [[ " $* " =~ $MATCH ]]; then
  number=$((number + 1))
  echo "$number" >"$COUNT"
  if ((number == KILL_AT)); then
    if [[ -n ${AFTER:-} ]]; then
      "REAL" "$@" >/dev/null 2>&1 &
      sleep "$AFTER"
      kill -9 $! 2>/dev/null
    fi
    kill -9 "$PPID"
    sleep 5
  fi
fi
exec "REAL" "$@"
"""
WRITES = " (cp|attach|tag|sign) "


@pytest.fixture
def shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts stand-ins before oras and cosign that call the real ones; the returned function says when to kill."""
    folder = tmp_path / "shims"
    folder.mkdir()
    for program in ("oras", "cosign"):
        (folder / program).write_text(SHIM.replace("REAL", f"/usr/bin/{program}"))
        (folder / program).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def kill_at(number: int, match: str = WRITES, after: str = "") -> None:
        (folder / "count").unlink(missing_ok=True)
        given = {"COUNT": str(folder / "count"), "MATCH": match, "KILL_AT": str(number), "AFTER": after}
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    return kill_at


def killed(order: Publication) -> bool:
    """Publishes in a process of its own; whether that was killed on the way."""
    child = os.fork()
    if child == 0:
        try:
            publisher.publish(order, quiet)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def tags(repositories: Path, order: Publication) -> dict[str, str]:
    """The tags of images, as the registry keeps them; it may be about to write one whose client was killed."""
    folder = repositories / order.repository.name / "_manifests" / "tags"
    found = {path.parent.parent.name: path.read_text() for path in folder.glob("*/current/link")}
    return {tag: digest for tag, digest in found.items() if not tag.startswith("sha256-")}


def complete(repositories: Path, order: Publication) -> bool:
    """Whether image and all evidence are on the registry, as it keeps them."""
    folder = repositories / order.repository.name / "_manifests"
    listed = folder / "tags" / order.source.digest.replace(":", "-") / "current" / "link"
    if not (folder / "revisions" / "sha256" / order.source.digest[7:] / "link").exists() or not listed.exists():
        return False
    blobs = repositories.parent / "blobs" / "sha256"
    digest = listed.read_text()[7:]
    referrers = json.loads((blobs / digest[:2] / digest / "data").read_text())["manifests"]
    return {entry["artifactType"] for entry in referrers} >= set(evidence.NAMES)


def is_true(repositories: Path, order: Publication) -> bool:
    """Every tag stands for the verified digest, and none is there before the rest."""
    found = tags(repositories, order)
    return not found or (set(found.values()) == {order.source.digest} and complete(repositories, order))


def at(order: Publication, number: str) -> Publication:
    """The same order, to another repository."""
    where = order.repository
    return replace(order, repository=Repository(where.host, f"{where.name}-{number}", plain_http=True))


def walk(order: Publication, repositories: Path, shims: Callable[..., None], **how: str) -> int:
    """Kills a publication at each matching call, then lets it complete. Returns how many kills there were."""
    number = 0
    while True:
        number += 1
        each = at(order, str(number))
        shims(number, **how)
        was_killed = killed(each)
        assert is_true(repositories, each), f"after a kill at call {number}"
        if not was_killed:
            assert len(tags(repositories, each)) == 4
            return number - 1
        shims(0)
        publisher.publish(each, quiet)
        assert tags(repositories, each) == dict.fromkeys(each.tags.in_order, each.source.digest)
        assert complete(repositories, each)


def test_killed_before_each_step_it_completes_the_next_time(
    host: str, name: str, ordering: Ordering, repositories: Path, shims: Callable[..., None]
) -> None:
    """Image, four pieces of evidence, four tags: what the registry holds between two steps is all there is."""
    assert walk(ordering(f"{host}/{name}"), repositories, shims) == 1 + 4 + 4


@pytest.mark.full
@pytest.mark.parametrize("after", ["0.005", "0.02", "0.05", "0.2"])
def test_killed_within_each_step_it_completes_the_next_time(
    host: str, name: str, ordering: Ordering, repositories: Path, shims: Callable[..., None], after: str
) -> None:
    """Its client too, in the middle of what it does."""
    assert walk(ordering(f"{host}/{name}"), repositories, shims, after=after) == 1 + 4 + 4


@pytest.mark.full
def test_killed_before_each_signature_too_it_completes_the_next_time(
    host: str, name: str, ordering: Ordering, repositories: Path, shims: Callable[..., None], keys: dict[str, Path]
) -> None:
    """Those of the image and of each piece of evidence stand between the evidence and the tags."""
    order = ordering(f"{host}/{name}", Signer.of(keys["ours"]))
    assert walk(order, repositories, shims) == 1 + 4 + 5 + 4


def test_the_shim_kills(shims: Callable[..., None]) -> None:
    """Without it these tests would prove nothing."""
    shims(1)
    child = os.fork()
    if child == 0:
        os.execvp("bash", ["bash", "-c", "oras tag a b; exit 0"])
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
