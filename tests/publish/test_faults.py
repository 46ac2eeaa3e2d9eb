"""Registries in every bad state: one clear line, no tag, and no credential in any message."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import bcrypt
import pytest

from gpuyard.errors import UsageError, UserError
from gpuyard.image.source import Source
from gpuyard.publish import publisher
from gpuyard.publish.oras_errors import Passing
from gpuyard.publish.registry import Repository, is_loopback
from tests.publish import servers
from tests.publish.conftest import Ordering, quiet

SECRET = "wrong-and-secret"


def once(fault: str, method: str, part: str) -> servers.Judge:
    """Spoils the first request of that method with that part in its path."""
    left = [fault]
    return lambda asked, path: left.pop() if left and asked == method and part in path else ""


def always(fault: str, method: str, part: str) -> servers.Judge:
    """Spoils each of them."""
    return lambda asked, path: fault if asked == method and part in path else ""


@pytest.mark.parametrize(
    ("fault", "method", "part"),
    [
        ("cut", "PUT", "blobs"),
        ("502", "PUT", "blobs"),
        ("cut-answer", "PUT", "manifests/sha256:"),
        ("503", "PUT", "manifests/sha256:"),
        ("cut", "PUT", "manifests/sha256-"),
        ("502", "HEAD", "blobs"),
    ],
)
def test_a_fault_that_passes_is_overcome(
    host: str, name: str, ordering: Ordering, source: Source, fault: str, method: str, part: str
) -> None:
    """One broken connection or one error of the registry's: tried again, and complete."""
    with servers.proxy(host, once(fault, method, part)) as between:
        order = ordering(f"{between.host}/{name}")
        publisher.publish(order, quiet)
        assert order.repository.resolve("v9.9") == source.digest
        assert len(order.repository.referrers(source.digest)) == 4


def all_but_one(fault: str, method: str, part: str) -> servers.Judge:
    """Spoils each of them but the first."""
    first: list[str] = []

    def judge(asked: str, path: str) -> str:
        if asked != method or part not in path:
            return ""
        first.append(path)
        return fault if len(first) > 1 else ""

    return judge


@pytest.mark.parametrize(
    ("fault", "id_"),
    [("cut", "registry-connection-lost"), ("502", "registry-fault"), ("507", "registry-full")],
)
def test_a_fault_that_stays_is_one_line_and_the_next_run_completes(
    host: str, name: str, ordering: Ordering, source: Source, fault: str, id_: str
) -> None:
    """No tag is set; what was sent stays, so that only the rest is sent then."""
    with servers.proxy(host, all_but_one(fault, "PUT", "blobs/uploads")) as between:
        order = ordering(f"{between.host}/{name}")
        with pytest.raises(UserError) as caught:
            publisher.publish(order, quiet)
        assert caught.value.id == id_
        assert between.host in str(caught.value)
        assert "\n" not in str(caught.value)
        assert order.repository.tags() == []
        between.judge = lambda _method, _path: ""
        layers = {layer["digest"][7:19] for layer in source.layers}
        config = json.loads(source.manifest)["config"]["digest"][7:19]
        assert len({*layers, config} & set(publisher.publish(order, quiet).blobs)) == 3
        assert order.repository.resolve("v9.9") == source.digest


def test_a_registry_that_is_slow_takes_longer_and_no_more(host: str, name: str, ordering: Ordering) -> None:
    """A delay before every write."""
    with servers.proxy(host, always("slow", "PUT", "blobs")) as between:
        assert publisher.publish(ordering(f"{between.host}/{name}"), quiet).tags


def test_a_registry_that_hangs_is_given_up(host: str, name: str) -> None:
    """After the patience that is left, in words."""
    with servers.proxy(host, always("hang", "HEAD", "")) as between:
        repository = replace(Repository.parse(f"{between.host}/{name}", ""), patience=0.3)
        with pytest.raises(Passing) as caught:
            repository.resolve("v9.9")
    assert caught.value.id == "registry-timeout"


def test_no_registry_answers() -> None:
    """Nothing listens there."""
    port = servers.free_port()
    with pytest.raises(UserError, match=f"127.0.0.1:{port}") as caught:
        Repository.parse(f"127.0.0.1:{port}/name", "").resolve("v9.9")
    assert caught.value.id == "registry-unreachable"


def test_a_read_only_registry_is_named(tmp_path: Path, ordering: Ordering) -> None:
    """It takes nothing, and nothing was sent."""
    state = {"maintenance": {"readonly": {"enabled": True}}}
    with servers.registry(tmp_path / "r", storage=state) as host, pytest.raises(UserError) as caught:
        publisher.publish(ordering(f"{host}/test/name"), quiet)
    assert caught.value.id == "registry-read-only"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few kilobytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_registry_is_named(small_disk: Path, ordering: Ordering) -> None:
    """Its disk is full, really; no tag is set."""
    with servers.registry(small_disk) as host:
        order = ordering(f"{host}/test/name")
        with pytest.raises(UserError) as caught:
            publisher.publish(order, quiet)
        assert caught.value.id == "registry-full"
        assert order.repository.tags() == []


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[str]:
    """A registry that wants a user and a password."""
    (tmp_path / "users").write_text(f"user:{bcrypt.hashpw(b'right', bcrypt.gensalt(4)).decode()}\n")
    auth = {"htpasswd": {"realm": "test", "path": str(tmp_path / "users")}}
    with servers.registry(tmp_path / "r", auth=auth) as host:
        yield host


def log_in(host: str, password: str) -> None:
    """Writes down a login as oras does."""
    folder = Path(os.environ["DOCKER_CONFIG"])
    folder.mkdir(exist_ok=True)
    auth = base64.b64encode(f"user:{password}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))


@pytest.mark.parametrize("password", ["", SECRET])
def test_wrong_credentials_are_named_and_never_shown(
    locked: str, ordering: Ordering, caplog: pytest.LogCaptureFixture, password: str
) -> None:
    """Neither in the message nor in the log, as they are or encoded."""
    caplog.set_level("DEBUG")
    if password:
        log_in(locked, password)
    with pytest.raises(UserError, match=f"oras login {locked}") as caught:
        publisher.publish(ordering(f"{locked}/test/name"), quiet)
    assert caught.value.id == "registry-credentials"
    for shown in (str(caught.value), caplog.text):
        assert SECRET not in shown
        assert base64.b64encode(f"user:{SECRET}".encode()).decode() not in shown


def test_the_right_credentials_are_used(locked: str, ordering: Ordering) -> None:
    """Of oras's own login; nothing is passed on a command line."""
    log_in(locked, "right")
    assert publisher.publish(ordering(f"{locked}/test/name"), quiet).tags


@pytest.fixture
def private(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A registry with TLS by an authority that nobody trusts; HOST:PORT and the authority's certificate."""
    key, certificate = tmp_path / "tls.key", tmp_path / "tls.crt"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    extension = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *words, *extension], check=True, capture_output=True)
    with servers.registry(tmp_path / "r", http={"tls": {"certificate": str(certificate), "key": str(key)}}) as host:
        yield host, certificate


def test_a_private_authority_is_trusted_by_its_file_only(
    private: tuple[str, Path], ordering: Ordering, keys: dict[str, Path]
) -> None:
    """Without it: how to name it. With it, oras and cosign both go on."""
    from gpuyard.publish.signing import Signer

    host, certificate = private
    with pytest.raises(UserError, match="--ca-file") as caught:
        publisher.publish(ordering(f"{host}/test/name", plain_http=False), quiet)
    assert caught.value.id == "registry-certificate"
    order = ordering(f"{host}/test/name", Signer.of(keys["ours"]), ca_file=certificate)
    assert publisher.publish(order, quiet).signed == 5


def test_plain_http_where_tls_is_spoken_is_named(private: tuple[str, Path], ordering: Ordering) -> None:
    """And the other way round."""
    host, _ = private
    with pytest.raises(UserError, match=host) as caught:
        publisher.publish(ordering(f"{host}/test/name"), quiet)
    assert caught.value.id == "registry-wants-tls"


def test_tls_where_plain_http_is_spoken_is_named(host: str, name: str, ordering: Ordering) -> None:
    """It is said how to allow it."""
    with pytest.raises(UserError, match="--plain-http") as caught:
        publisher.publish(ordering(f"{host}/{name}", plain_http=False), quiet)
    assert caught.value.id == "registry-plain-http"


def test_a_damaged_layer_never_arrives(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """The registry refuses what is not its digest; the line says how to make it again."""
    blob = source.layout / "blobs" / "sha256" / source.layers[1]["digest"][7:]
    _ = source.facts, source.contents
    data = blob.read_bytes()
    blob.unlink()
    blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    order = ordering(f"{host}/{name}")
    with pytest.raises(UserError) as caught:
        publisher.publish(order, quiet)
    assert caught.value.id == "layer-damaged"
    assert order.repository.tags() == []


def test_another_manifest_under_the_digest_is_refused(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """A registry that answers with something else: no tag."""
    with servers.proxy(host) as between:
        order = ordering(f"{between.host}/{name}")
        publisher.send(order, publisher.Done(), quiet)
        between.judge = always("forget", "GET", f"manifests/{source.digest}")
        with pytest.raises(UserError) as caught:
            publisher.publish(order, quiet)
        assert caught.value.id in {"registry-content-differs", "layer-damaged"}
        between.judge = lambda _method, _path: ""
        assert order.repository.tags() == []


@pytest.mark.parametrize(
    ("given", "id_"),
    [
        ("user:secret@host/name", "registry-address-credentials"),
        ("HOST/Name", "registry-address-invalid"),
        ("host/name:tag", "registry-address-invalid"),
        ("", "registry-address-invalid"),
        ("host name", "registry-address-invalid"),
    ],
)
def test_an_address_that_is_not_a_registry_is_refused(given: str, id_: str) -> None:
    """Before anything is asked; a password in it is not repeated."""
    with pytest.raises(UsageError) as caught:
        Repository.parse(given, "name")
    assert caught.value.id == id_
    assert "secret" not in str(caught.value)


def test_a_missing_certificate_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(UsageError, match=r"none\.pem") as caught:
        Repository.parse("host/name", "", tmp_path / "none.pem")
    assert caught.value.id == "ca-file-missing"


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("127.0.0.1:5000", True),
        ("localhost", True),
        ("[::1]:5000", True),
        ("ghost.example:5000", False),
        ("10.0.0.1", False),
    ],
)
def test_only_this_machine_speaks_plain_http_by_itself(host: str, found: bool) -> None:
    """Anything else needs a word."""
    assert is_loopback(host) is found
    assert Repository.parse(f"{host}/name", "").plain_http is found


def test_a_client_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the command that brings it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"oras .* docker/install-publish\.sh") as caught:
        Repository.parse("localhost/name", "").resolve("x")
    assert caught.value.id == "client-missing"
