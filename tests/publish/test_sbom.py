"""Bills of materials and provenance: what is installed, no more and no less, in formats that others read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement_pb2 import Statement
from packaging.utils import canonicalize_name
from spdx_tools.spdx.parser.json.json_parser import JsonLikeDictParser
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from gpuyard import paths
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.image.assemble import Options
from gpuyard.image.build import to_layout
from gpuyard.image.source import Source, from_layout
from gpuyard.publish import evidence, inventory
from gpuyard.publish.provenance import provenance
from gpuyard.publish.sbom import cyclonedx
from gpuyard.publish.spdx import spdx
from gpuyard.store.store import Store
from tests.publish import small
from tests.publish.conftest import SUFFIXES

SYFT = Path(sys.executable).with_name("syft")


def test_cyclonedx_is_valid_and_names_every_package_with_its_wheel(source: Source) -> None:
    """By the format's own schema; a Python package has the hash of its wheel and its licence."""
    text = cyclonedx(source, inventory.take(source))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode()) is None
    found = {part["name"]: part for part in json.loads(text)["components"]}
    assert found.keys() == {"torch", "nvidia-fake-cu99", "tini", "libc6"}
    assert found["torch"]["hashes"] == [{"alg": "SHA-256", "content": small.wheel_hash("torch")}]
    assert found["torch"]["licenses"] == [{"license": {"acknowledgement": "declared", "id": "BSD-3-Clause"}}] or found[
        "torch"
    ]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert found["libc6"]["purl"].startswith("pkg:deb/debian/libc6@9.41-12%2Bdeb13u1?arch=amd64")


def test_spdx_is_valid_and_holds_the_licence_texts(source: Source) -> None:
    """By the format's own tools; NVIDIA's and torch's texts stand in it once each."""
    document = json.loads(spdx(source, inventory.take(source)))
    assert validate_full_spdx_document(JsonLikeDictParser().parse(document)) == []
    assert {part["name"] for part in document["packages"]} == {
        "pytorch-cuda",
        "torch",
        "nvidia-fake-cu99",
        "tini",
        "libc6",
    }
    assert [text["extractedText"] for text in document["hasExtractedLicensingInfos"]] == [small.LICENSE]


def test_provenance_is_a_statement_with_every_wheel_base_lock_and_commit(source: Source) -> None:
    """in-toto's own reader takes it; the subject is the image's digest."""
    text = provenance(source, inventory.take(source))
    statement = json_format.Parse(text, Statement())
    assert statement.subject[0].digest["sha256"] == source.digest[7:]
    predicate = json_format.ParseDict(json_format.MessageToDict(statement.predicate), Provenance())
    made = {part.uri or part.name: dict(part.digest) for part in predicate.build_definition.resolved_dependencies}
    assert made["source"] == {"gitCommit": small.head()}
    assert made["pkg:pypi/torch@9.9.9"] == {"sha256": small.wheel_hash("torch")}
    assert made["base layer (bootstrap)"] == {"sha256": source.layers[0]["digest"][7:]}
    assert made["lock torch.txt"].keys() == {"sha256"}


def test_a_base_by_digest_is_a_material(tmp_path: Path) -> None:
    """The registry's digest, as the image's label says it."""
    given = {**small.labels(), "io.gpuyard.base-origin": "registry"}
    given["org.opencontainers.image.base.digest"] = "sha256:" + "b" * 64
    small.layout(tmp_path, given=given)
    image = from_layout(tmp_path / "layout", SUFFIXES)
    made = json.loads(provenance(image, inventory.take(image)))["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {"name": "base", "uri": "docker://debian:trixie-slim", "digest": {"sha256": "b" * 64}} in made


def test_the_same_image_gives_the_same_bytes(source: Source) -> None:
    """Twice in one process and once in another, with another hash seed."""
    code = (
        "import sys; from pathlib import Path; from tests.publish.test_sbom import everything;"
        "from gpuyard.image.source import from_layout;"
        "sys.stdout.buffer.write(everything(from_layout(Path(sys.argv[1]), {'workbench': ''})))"
    )
    command = [sys.executable, "-c", code, str(source.layout)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=paths.ROOT, env={"PYTHONHASHSEED": "7"})
    assert done.stdout == everything(source) == everything(source)


def test_what_was_written_about_an_image_is_remembered(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its digest and this code; the second time no layer is read and nothing is written."""
    stored = replace(source, store=Store(tmp_path / "records"))
    first = evidence.papers(stored)
    monkeypatch.setattr(inventory, "take", lambda _source: pytest.fail("it was written again"))
    assert evidence.papers(replace(stored)) == first
    monkeypatch.setattr(evidence, "code", lambda: "other code")
    with pytest.raises(pytest.fail.Exception, match="written again"):
        evidence.papers(stored)


def everything(source: Source) -> bytes:
    """All that is written about an image."""
    taken = inventory.take(source)
    return b"".join(write(source, taken) for write in (cyclonedx, spdx, provenance))


def stray(store: Store) -> list[Any]:
    """A package that no lock names."""
    return [small.base(store), small.python(store), small.own(store, locked={"torch": ("9.9.9", "")})]


def swapped(store: Store) -> list[Any]:
    """Another version than locked."""
    packages = {**small.PACKAGES, "torch": ("9.9.8", "BSD-3-Clause")}
    return [small.base(store), small.python(store, packages), small.own(store)]


def unlisted(store: Store) -> list[Any]:
    """A package in a layer whose bill of materials does not name it."""
    made = small.python(store)
    kept = {name: value.split()[0] for name, value in made.annotations.items()}
    object.__setattr__(made, "annotations", kept)
    return [small.base(store), made, small.own(store)]


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (stray, r"those its locks name: nvidia-fake-cu99 99\.8\.1 \(named: not at all\)"),
        (swapped, r"those its locks name: torch 9\.9\.8 \(named: 9\.9\.9\)"),
        (unlisted, "those its layers name: nvidia-fake-cu99"),
    ],
)
def test_files_that_differ_from_the_locks_are_refused(tmp_path: Path, layers: Any, words: str) -> None:
    """A bill of materials is never written of what was meant, only of what is there."""
    small.layout(tmp_path, layers(Store(tmp_path / "store")))
    with pytest.raises(UserError, match=words) as caught:
        inventory.take(from_layout(tmp_path / "layout", SUFFIXES))
    assert caught.value.id == "packages-differ"


def test_a_removed_debian_package_is_not_installed() -> None:
    """dpkg keeps its settings and its entry."""
    gone = "\nPackage: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1.0\n"
    found = list(inventory.dpkg(small.DPKG + gone))
    assert [(package.name, package.source) for package in found] == [("libc6", "glibc"), ("tini", "tini")]


def test_an_independent_scanner_finds_the_same_packages(source: Source) -> None:
    """syft, on the layout, by its own look at the files."""
    bom = json.loads(cyclonedx(source, inventory.take(source)))
    found = scanned(source.layout)
    assert found == listed(bom)
    bom["components"].pop()
    assert found != listed(bom)


@pytest.mark.full
def test_an_independent_scanner_finds_the_same_packages_in_the_real_image(table: Catalogue, tmp_path: Path) -> None:
    """The workbench of the default line; hundreds of packages, not one apart."""
    store = Store(Path.home() / ".cache" / "gpuyard")
    to_layout(find_product(table, None), Options(), tmp_path / "layout", store)
    real = from_layout(tmp_path / "layout", SUFFIXES, store)
    bom = listed(json.loads(cyclonedx(real, inventory.take(real))))
    assert len(bom) > 300
    assert scanned(real.layout) == bom


def scanned(layout: Path) -> set[tuple[str, str, str]]:
    """Type, name and version of what syft finds installed in a layout.

    Left out is what packages carry inside themselves for their own use (setuptools does).
    """
    command = [str(SYFT), "scan", f"oci-dir:{layout}", "-q", "-o", "json"]
    env = {"SYFT_CHECK_FOR_APP_UPDATE": "false", "HOME": "/tmp", "PATH": "/usr/bin:/bin"}
    found = json.loads(subprocess.run(command, check=True, capture_output=True, env=env, timeout=900).stdout)
    return {
        (part["type"], canonicalize_name(part["name"]), part["version"])
        for part in found["artifacts"]
        if part["type"] == "deb" or (part["type"] == "python" and any(map(is_installed, part["locations"])))
    }


def is_installed(place: dict[str, Any]) -> bool:
    """Whether a file that syft read is the metadata of a package of the virtual environment."""
    return re.fullmatch(r"/opt/venv/lib/python[^/]+/site-packages/[^/]+/METADATA", place["path"]) is not None


def listed(bom: dict[str, Any]) -> set[tuple[str, str, str]]:
    """The same of a CycloneDX document."""
    kinds = {"pkg:pypi": "python", "pkg:deb": "deb"}
    return {
        (kinds[part["purl"].partition("/")[0]], canonicalize_name(part["name"]), part["version"])
        for part in bom["components"]
    }
