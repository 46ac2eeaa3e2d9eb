"""A published image as a stranger sees it, and the commands as people type them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.errors import UsageError, UserError
from gpuyard.image.oci import INDEX, MANIFEST
from gpuyard.image.source import Source
from gpuyard.publish import evidence, page, publisher, reference
from gpuyard.publish.evidence import Document
from gpuyard.publish.publisher import Publication
from gpuyard.publish.signing import Key, Keyless, Signer
from tests.publish import small
from tests.publish.conftest import Ordering, gpuyard, quiet


def test_a_stranger_sees_contents_driver_report_and_training(
    host: str, name: str, ordering: Ordering, source: Source
) -> None:
    """On one page, in words; also that no GPU was at hand and that nobody signed."""
    publisher.publish(ordering(f"{host}/{name}"), quiet)
    shown = page.page(reference.read(*reference.parse(f"{host}/{name}:v9.9", None, None)), 100)
    for words in (
        f"digest      {source.digest}",
        "PyTorch 9.9.9+cu998, CUDA 99.8, Python 3.99, on debian-13",
        "2 of Python, 2 of Debian",
        "NVIDIA driver 999.60.13 or newer",
        "Blackwell, Hopper (machine code for sm_90 sm_120)",
        "verified    passed on 2031-01-02: 3 pass (3 required), 0 fail, 0 unknown, 1 skip",
        "on a GPU    not run on a GPU",
        "rnn-titles on cpu, bf16: loss 0.7 to 0.1 in 10 steps",
        "signature   not signed",
        "7 materials, 2 wheels by hash",
        f"from commit {small.head()}",
    ):
        assert words in shown
    assert not [line for line in shown.splitlines() if line != line.rstrip() or (len(line) > 100 and " " in line[12:])]


def test_only_evidence_of_the_key_counts(
    host: str, name: str, ordering: Ordering, source: Source, keys: dict[str, Path]
) -> None:
    """A stranger's false report, attached later, is passed over with a word; another key gives exit code 1."""
    order = ordering(f"{host}/{name}", Signer.of(keys["ours"]))
    publisher.publish(order, quiet)
    false = json.dumps({**small.report(source.digest), "training": []}).encode()
    publisher.attach_one(order, Document(evidence.REPORT, "verify.json", false))
    trusted = reference.read(order.repository, "v9.9", Key(keys["ours"].with_suffix(".pub")))
    assert trusted.evidence[evidence.REPORT].content["training"]
    assert "a verification report without a signature of this signer was ignored" in trusted.warnings[0]
    assert not reference.read(order.repository, "v9.9").evidence[evidence.REPORT].content["training"]
    done = gpuyard("inspect", f"{host}/{name}:v9.9", "--key", str(keys["others"].with_suffix(".pub")))
    assert done.returncode == 1
    assert "signed, but NOT by that signer: do not trust it" in done.stdout


def test_a_report_of_another_image_is_a_warning(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """It was attached by hand to a digest that it is not about."""
    order = ordering(f"{host}/{name}")
    publisher.send(order, publisher.Done(), quiet)
    other = json.dumps(small.report("sha256:" + "7" * 64)).encode()
    publisher.attach_one(order, Document(evidence.REPORT, "verify.json", other))
    found = reference.read(order.repository, source.digest)
    assert found.warnings == (f"the verification report is about sha256:{'7' * 64}, another image: do not trust it",)
    assert "WARNING" in page.page(found, 100)


def test_an_image_without_evidence_says_so(host: str, name: str, ordering: Ordering, source: Source) -> None:
    """Anything can lie on a registry."""
    order = ordering(f"{host}/{name}")
    publisher.send(order, publisher.Done(), quiet)
    shown = page.page(reference.read(order.repository, source.digest), 100)
    assert "NO: no verification report is attached to this digest" in shown
    assert "unknown: no bill of materials is attached" in shown
    assert f"{host}/{name}@{source.digest}" in shown


def put_index(order: Publication, tag: str, entries: list[dict[str, object]], folder: Path) -> None:
    """An index with these entries under a tag, as ``docker push`` of a BuildKit image makes one."""
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}))
    reference_ = f"{order.repository}:{tag}"
    words = ["oras", "manifest", "push", "--plain-http", "--media-type", INDEX, reference_, str(folder / "index.json")]
    subprocess.run(words, check=True, capture_output=True)


def entry(source: Source, **more: object) -> dict[str, object]:
    """The image as an index lists it."""
    platform = {"os": "linux", "architecture": "amd64"}
    known = {"mediaType": MANIFEST, "digest": source.digest, "size": len(source.manifest), "platform": platform}
    return {**known, **more}


def test_an_index_with_one_image_is_followed(
    host: str, name: str, ordering: Ordering, source: Source, tmp_path: Path
) -> None:
    """What BuildKit attests beside it is not an image; evidence of the image counts."""
    order = ordering(f"{host}/{name}")
    publisher.publish(order, quiet)
    attested = entry(source, annotations={"vnd.docker.reference.type": "attestation-manifest"})
    put_index(order, "mine", [entry(source), attested], tmp_path)
    found = reference.read(order.repository, "mine")
    assert found.digest != source.digest
    assert found.size == sum(layer["size"] for layer in source.layers)
    assert sorted(found.evidence) == sorted(evidence.NAMES)
    assert found.warnings == ()


def test_an_index_of_several_images_names_their_digests(
    host: str, name: str, ordering: Ordering, source: Source, tmp_path: Path
) -> None:
    """In full, so that one can be pasted."""
    order = ordering(f"{host}/{name}")
    publisher.publish(order, quiet)
    put_index(
        order, "many", [entry(source), entry(source, platform={"os": "linux", "architecture": "arm64"})], tmp_path
    )
    with pytest.raises(UserError, match=f"{source.digest} .linux/amd64.*linux/arm64") as caught:
        reference.read(order.repository, "many")
    assert caught.value.id == "image-is-index"


def test_a_command_on_the_page_works_when_pasted(host: str, name: str, ordering: Ordering, tmp_path: Path) -> None:
    """`oras pull` with the digest as it is printed."""
    publisher.publish(ordering(f"{host}/{name}"), quiet)
    shown = page.page(reference.read(*reference.parse(f"{host}/{name}:v9.9", None, None)), 200)
    (line,) = (line for line in shown.splitlines() if line.startswith("read more"))
    words = line.removeprefix("read more").split()
    done = subprocess.run([*words, "--plain-http"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.json"))


def test_what_is_not_there_is_named_with_what_is(host: str, name: str, ordering: Ordering) -> None:
    """The tags that the repository has."""
    publisher.publish(ordering(f"{host}/{name}"), quiet)
    with pytest.raises(UserError, match=r"v9\.8.*v9\.9") as caught:
        reference.read(*reference.parse(f"{host}/{name}:v9.8", None, None))
    assert caught.value.id == "tag-missing"


@pytest.mark.parametrize("words", ["pytorch-cuda:v9.9", "host/Name:tag", "", "host/name:tag:tag", "u:secret@host/name"])
def test_what_is_not_a_reference_is_refused(words: str) -> None:
    """With the form that is expected; a password in it is not repeated."""
    with pytest.raises(UsageError) as caught:
        reference.parse(words, None, None)
    assert caught.value.id == "reference-invalid"
    assert "secret" not in str(caught.value)


def test_the_commands_publish_and_show(host: str, name: str, tmp_path: Path) -> None:
    """tags, publish --dry-run, publish, tags again, inspect --json: what each says is what the registry has."""
    digest = small.layout(tmp_path)
    small.write(tmp_path / "reports", small.report(digest))
    given = ["--registry", f"{host}/{name}", "--layout", "layout"]
    assert "(not there yet)" in gpuyard("tags", *given, folder=tmp_path).stdout
    rehearsed = gpuyard("publish", *given, "--dry-run", folder=tmp_path)
    assert "v9.9  (new)" in rehearsed.stdout
    done = gpuyard("publish", *given, folder=tmp_path)
    assert (done.returncode, "sent      3 of 3 layers" in done.stdout) == (0, True), done.stderr
    assert "nothing was sent" in gpuyard("publish", *given, folder=tmp_path).stdout
    assert "v9.9  (stands for this image)" in gpuyard("tags", *given, folder=tmp_path).stdout
    shown = json.loads(gpuyard("inspect", f"{host}/{name}:9.9", "--json", folder=tmp_path).stdout)
    assert shown["digest"] == digest
    assert sorted(shown["evidence"]) == sorted(evidence.NAMES)


def test_an_unverified_image_is_refused_without_a_word_to_the_registry(tmp_path: Path) -> None:
    """One line on stderr with the command to run; the registry that is named does not exist."""
    small.layout(tmp_path)
    small.write(tmp_path / "reports", small.report("sha256:" + "7" * 64))
    done = gpuyard("publish", "--registry", "127.0.0.1:1/name", "--layout", "layout", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[image-unverified]" in done.stderr
    assert f"{tmp_path}/reports/" in done.stderr
    assert "&& gpuyard verify 9.9 --image workbench --no-build" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_report_is_found_from_another_folder(
    host: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout's reports are searched too; a folder that was named is the only one."""
    digest = small.layout(tmp_path)
    monkeypatch.setattr(paths, "REPORTS", tmp_path / "checkout" / "reports")
    small.write(paths.REPORTS, small.report(digest))
    (tmp_path / "elsewhere").mkdir()
    given = ["--registry", f"{host}/{name}", "--layout", str(tmp_path / "layout"), "--dry-run"]
    done = gpuyard("publish", *given, folder=tmp_path / "elsewhere")
    assert done.returncode == 0, done.stderr
    named = gpuyard("publish", *given, "--report-dir", "mine", folder=tmp_path / "elsewhere")
    assert named.returncode == 1
    assert f"no report in {tmp_path}/elsewhere/mine/ is" in named.stderr


def test_uncommitted_changes_are_not_published(tmp_path: Path) -> None:
    """Whatever its report says."""
    given = {**small.labels(), "org.opencontainers.image.revision": small.head() + "-dirty"}
    digest = small.layout(tmp_path, given=given)
    small.write(tmp_path / "reports", small.report(digest))
    done = gpuyard("publish", "--registry", "127.0.0.1:1/name", "--layout", "layout", folder=tmp_path)
    assert done.returncode == 1
    assert "error[uncommitted-changes]" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--registry", "u:p@h/n"], 2, "registry-address-credentials"),
        (["--registry", "h/n", "--key", "k", "--keyless"], 2, "key-with-keyless"),
        (["9.9", "--registry", "h/n"], 2, "layout-with-line"),
        (["--registry", "h/n", "--report", "none.json"], 1, "not a report"),
    ],
)
def test_bad_words_are_one_line(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    """With its exit code and no traceback."""
    digest = small.layout(tmp_path)
    small.write(tmp_path / "reports", small.report(digest))
    done = gpuyard("publish", "--layout", "layout", *words, folder=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def cosign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cosign that knows one workflow's signature: what it was asked is in the file; others do not match."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "cosign"
    program.write_text(
        f"""#!/bin/sh
printf '%s\\n' "$*" >>{tmp_path}/asked
case "$*" in *Lab/Images*) exit 0 ;; *) echo "Error: no matching signatures" >&2; exit 1 ;; esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "asked"


def test_a_keyless_signature_is_checked_by_identity(host: str, name: str, ordering: Ordering, cosign: Path) -> None:
    """A pipeline's identity counts for the image and all evidence; another's ends with 1."""
    publisher.publish(ordering(f"{host}/{name}"), quiet)
    good = gpuyard("inspect", f"{host}/{name}:v9.9", "--identity", "^https://github.com/Lab/Images/")
    assert (good.returncode, "signed, by the signer that was asked for" in good.stdout) == (0, True), good.stderr
    asked = cosign.read_text().splitlines()
    assert len(asked) == 1 + len(evidence.NAMES)
    issuer = "--certificate-oidc-issuer https://token.actions.githubusercontent.com"
    assert all(f"--certificate-identity-regexp ^https://github.com/Lab/Images/ {issuer}" in one for one in asked)
    bad = gpuyard("inspect", f"{host}/{name}:v9.9", "--identity", "^https://github.com/Other/")
    assert bad.returncode == 1
    assert "NOT by that signer" in bad.stdout
    assert bad.stdout.count("WARNING") == len(evidence.NAMES)


def test_the_real_cosign_knows_the_options() -> None:
    """The stand-in above takes anything."""
    known = subprocess.run(["cosign", "verify", "--help"], check=True, capture_output=True, text=True).stdout
    for option in (*Keyless("x", "y").options[::2], *Key(Path("x")).options[::2], "--allow-http-registry"):
        assert option in known


def test_two_signers_at_once_are_refused(tmp_path: Path) -> None:
    """A key and an identity."""
    (tmp_path / "k").touch()
    done = gpuyard("inspect", "127.0.0.1:1/a:b", "--key", str(tmp_path / "k"), "--identity", "x")
    assert done.returncode == 2
    assert "error[key-with-keyless]" in done.stderr
