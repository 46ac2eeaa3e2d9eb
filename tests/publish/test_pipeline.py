"""The pipeline's parts: its steps, the registry it starts, the independent client at its end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.publishing import pipeline
from gpuyard.commands.publishing.pipeline import Way
from gpuyard.errors import UsageError, UserError
from gpuyard.image.source import Source
from gpuyard.publish import independent, loopback, publisher
from gpuyard.publish.registry import Repository, ensure_clients
from tests.publish import servers
from tests.publish.conftest import Ordering, quiet


def test_the_steps_are_commands_that_people_type(table: Catalogue) -> None:
    """Verify stands between build and publish; the key is named where it signs only."""
    (product,) = pipeline.chosen(table, "", "runtime")
    way = Way(Repository("host", "name"), ["--ca-file", "ca"], ["--key", "k"])
    words = [step[0] for step in pipeline.steps(product, way)]
    assert words == ["build", "verify", "publish", "inspect"]
    assert [step[0] for step in pipeline.steps(product, way) if "--key" in step] == ["publish"]


def test_lines_and_images_are_chosen_by_name(table: Catalogue) -> None:
    """All of them, some, or the default; an unknown one is refused at once."""
    assert len(pipeline.chosen(table, "all", "workbench,runtime")) == 2 * len(table.line)
    assert [one.line for one in pipeline.chosen(table, "", "workbench")] == [table.default_line]
    with pytest.raises(UsageError, match=r"0\.1"):
        pipeline.chosen(table, "0.1", "workbench")


def test_a_step_that_fails_ends_the_pipeline(table: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its exit code; nothing after it is done."""
    (product,) = pipeline.chosen(table, "", "workbench")
    done: list[str] = []
    real = pipeline.call

    def call(words: list[str]) -> None:
        done.append(words[0])
        if words[0] == "verify":
            real(["verify", "0.1", "--no-build"])

    monkeypatch.setattr(pipeline, "call", call)
    with pytest.raises(UserError, match="gpuyard verify") as caught:
        pipeline.walk(product, Way(Repository("host", "name"), [], []))
    assert done == ["build", "verify"]
    assert (caught.value.id, caught.value.exit_code) == ("pipeline-step-failed", 2)


def test_a_registry_is_started_only_where_none_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """On loopback; it takes images, and stays. Elsewhere nothing is started."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert loopback.ensure(Repository.parse(host, "name")) is None
    assert loopback.ensure(Repository("registry.invalid", "name")) is None
    repository = Repository.parse(f"127.0.0.1:{servers.free_port()}", "name")
    process = loopback.ensure(repository)
    assert process
    try:
        assert loopback.answers(repository.host)
        assert loopback.ensure(repository) is None
        assert repository.tags() == []
    finally:
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)


def test_a_registry_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Its own last words, in one line."""
    with pytest.raises(UserError, match=r"127\.0\.0\.1:99999.*port") as caught:
        loopback.start(tmp_path, "127.0.0.1:99999")
    assert caught.value.id == "registry-not-started"


def test_an_independent_client_finds_all_of_it(
    host: str, name: str, ordering: Ordering, source: Source, tmp_path: Path
) -> None:
    """And misses a piece of evidence that is not there."""
    order = ordering(f"{host}/{name}")
    publisher.publish(order, quiet)
    assert independent.refuse_different(order.repository, "v9.9", tmp_path, quiet) == source.digest
    assert list(tmp_path.glob("tmp*")) == []
    bare = ordering(f"{host}/{name}-bare")
    publisher.send(bare, publisher.Done(), quiet)
    bare.repository.tag(source.digest, "v9.9")
    with pytest.raises(UserError, match="CycloneDX, SPDX, SLSA provenance, verification report") as caught:
        independent.refuse_different(bare.repository, "v9.9", tmp_path, quiet)
    assert caught.value.id == "evidence-missing"


def test_missing_programs_are_named_where_installing_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that brings them; nothing is installed."""
    monkeypatch.setenv("GPUYARD_ENGINE", "never")
    ensure_clients(["sh"])
    with pytest.raises(UserError, match=r"no-such-program.*docker/install-publish\.sh") as caught:
        ensure_clients(["sh", "no-such-program"])
    assert caught.value.id == "client-missing"
