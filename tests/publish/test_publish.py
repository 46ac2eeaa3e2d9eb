"""The whole way to a real registry, read back by other clients."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuyard.errors import UserError
from gpuyard.image.source import Source, from_layout
from gpuyard.publish import evidence, independent, publisher, signing
from gpuyard.publish.signing import Key, Signer
from gpuyard.store.store import Store
from tests.publish import servers, small
from tests.publish.conftest import SUFFIXES, Ordering, quiet


def skopeo(reference: str) -> dict[str, Any]:
    """What an independent client finds under a reference."""
    command = ["skopeo", "inspect", "--tls-verify=false", f"docker://{reference}"]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def test_another_client_pulls_by_tag_what_was_published(
    host: str, name: str, ordering: Ordering, source: Source, tmp_path: Path
) -> None:
    """The digest equals; all blobs arrive; every tag stands for it."""
    order = ordering(f"{host}/{name}")
    done = publisher.publish(order, quiet)
    assert done.tags == list(source.tags.in_order)
    for tag in source.tags.in_order:
        assert skopeo(f"{host}/{name}:{tag}")["Digest"] == source.digest
    target = f"oci:{tmp_path}/pulled:it"
    subprocess.run(
        ["skopeo", "copy", "-q", "--src-tls-verify=false", f"docker://{host}/{name}:v9.9", target], check=True
    )
    pulled = {path.name for path in (tmp_path / "pulled" / "blobs" / "sha256").iterdir()}
    assert {layer["digest"][7:] for layer in source.layers} | {source.digest[7:]} <= pulled


def test_all_evidence_refers_to_the_digest(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """By the tag schema, which this registry needs; the report arrives byte for byte."""
    order = ordering(f"{host}/{name}")
    publisher.publish(order, quiet)
    found = order.repository.referrers(source.digest)
    assert sorted(entry["artifactType"] for entry in found) == sorted(evidence.NAMES)
    (report,) = (entry for entry in found if entry["artifactType"] == evidence.REPORT)
    assert report["annotations"]["io.gpuyard.gpu"] == "not run on a GPU"
    layer = json.loads(order.repository.manifest(report["digest"]))["layers"][0]
    assert order.repository.blob(layer["digest"]) == order.report.data
    assert layer["annotations"]["org.opencontainers.image.title"] == "verify.json"


def test_a_registry_with_the_referrers_api_is_asked_by_it(
    host: str, name: str, ordering: Ordering, source: Source, repositories: Path
) -> None:
    """No list by tag is made there; publishing again sends nothing; an independent client finds the evidence too."""
    with servers.proxy(host) as between:
        between.referrers = {}
        order = ordering(f"{between.host}/{name}")
        publisher.publish(order, quiet)
        assert sorted(entry["artifactType"] for entry in between.referrers[source.digest]) == sorted(evidence.NAMES)
        assert not list((repositories / name / "_manifests" / "tags").glob("sha256-*"))
        assert publisher.publish(order, quiet).nothing
        assert sorted(independent.referrers(order.repository, source.digest)) == sorted(evidence.NAMES)


def test_publishing_again_sends_nothing(host: str, name: str, ordering: Ordering) -> None:
    """Not one request that writes."""
    with servers.proxy(host) as before:
        order = ordering(f"{before.host}/{name}")
        assert not publisher.publish(order, quiet).nothing
        before.seen.clear()
        assert publisher.publish(order, quiet).nothing
        assert before.seen
        assert before.sent == []


def test_a_second_image_sends_only_what_differs(
    host: str, name: str, ordering: Ordering, source: Source, tmp_path: Path
) -> None:
    """Of three layers the runtime image has two in common with the workbench."""
    publisher.publish(ordering(f"{host}/{name}"), quiet)
    small.layout(tmp_path / "second", name="runtime")
    second = from_layout(tmp_path / "second" / "layout", SUFFIXES)
    done = publisher.publish(ordering(f"{host}/{name}", image=second), quiet)
    layers = {layer["digest"][7:19] for layer in second.layers}
    assert layers & set(done.blobs) == {second.layers[2]["digest"][7:19]}
    assert second.layers[0] == source.layers[0]


def test_tags_come_after_everything_else(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """The last writes are the tags, the immutable one first and the one people type last."""
    with servers.proxy(host) as between:
        publisher.publish(ordering(f"{between.host}/{name}"), quiet)
    written = [path.rpartition("/")[2] for _, path in between.sent]
    assert written[-4:] == list(source.tags.in_order)
    assert not set(written[:-4]) & set(source.tags.in_order)


def test_an_immutable_tag_is_never_set_anew(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """It stands for another image: refused before anything is sent."""
    with servers.proxy(host) as between:
        order = ordering(f"{between.host}/{name}")
        publisher.publish(order, quiet)
        changed = variant(source)
        assert changed.tags.immutable == source.tags.immutable
        between.seen.clear()
        with pytest.raises(UserError, match=source.digest) as caught:
            publisher.publish(ordering(f"{between.host}/{name}", image=changed), quiet)
        assert caught.value.id == "tag-taken"
        assert between.sent == []


def variant(source: Source) -> Source:
    """Another image of the same commit."""
    folder = source.layout.parent / "variant"
    store = Store(folder / "store")
    layers = [small.base(store), small.python(store), small.layer(store, {"more": "1"}, {}), small.own(store)]
    small.layout(folder, layers)
    return from_layout(folder / "layout", SUFFIXES)


def test_a_moving_tag_moves_to_the_next_verified_image(
    host: str, name: str, ordering: Ordering, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a later commit; the immutable tag of the first stays with the first."""
    publisher.publish(ordering(f"{host}/{name}"), quiet)
    monkeypatch.setattr("gpuyard.image.facts.commit_date", lambda _revision: "20310203")
    monkeypatch.setattr(small, "head", lambda: "f" * 40)
    small.layout(tmp_path / "next")
    later = from_layout(tmp_path / "next" / "layout", SUFFIXES)
    order = ordering(f"{host}/{name}", image=later)
    publisher.publish(order, quiet)
    assert order.repository.resolve("v9.9") == later.digest != source.digest
    assert later.tags.immutable.endswith("-20310203-gffffffffffff")


def test_everything_is_signed_and_checked_with_the_key(
    host: str, name: str, ordering: Ordering, source: Source, keys: dict[str, Path]
) -> None:
    """The image and all four pieces of evidence; another key's holder is told apart."""
    order = ordering(f"{host}/{name}", Signer.of(keys["ours"]))
    assert publisher.publish(order, quiet).signed == 5
    for entry in order.repository.referrers(source.digest):
        assert signing.state(order.repository, entry["digest"], Key(keys["ours"].with_suffix(".pub"))) == "good"
    assert signing.state(order.repository, source.digest, Key(keys["others"].with_suffix(".pub"))) == "other key"
    assert publisher.publish(order, quiet).nothing


@pytest.mark.parametrize(("password", "id_"), [("wrong", "key-unreadable"), ("", "key-missing")])
def test_a_key_that_cannot_sign_is_refused_before_anything_is_sent(
    keys: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, id_: str
) -> None:
    """The password is not in the message."""
    monkeypatch.setenv("COSIGN_PASSWORD", "hush-hush")
    with pytest.raises(UserError, match="--key") as caught:
        Signer.of(keys["ours"] if password else tmp_path / "none.key")
    assert caught.value.id == id_
    assert "hush-hush" not in str(caught.value)


def test_a_referrer_that_was_never_listed_is_attached_anew(
    host: str, name: str, ordering: Ordering, source: Source, repositories: Path
) -> None:
    """Killed between artifact and list, oras leaves an artifact that it would never list again as it is."""
    order = ordering(f"{host}/{name}")
    publisher.publish(order, quiet)
    shutil.rmtree(repositories / name / "_manifests" / "tags" / source.digest.replace(":", "-"))
    assert order.repository.referrers(source.digest) == []
    assert sorted(publisher.publish(order, quiet).attached) == sorted(evidence.NAMES)
    assert len(order.repository.referrers(source.digest)) == len(evidence.NAMES)
