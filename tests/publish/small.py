"""A small image with all that publishing reads: a base with dpkg, a torch of no real version, this project's claims."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zstandard

from gpuyard import paths
from gpuyard.image import oci
from gpuyard.layers.model import Layer
from gpuyard.process import run
from gpuyard.store.store import Store
from tests.verify.report import sample
from verify.model import Finding, Level, Status, Verdict

TORCH, CUDA, PYTHON = "9.9.9", "99.8", "3.99"
SITE = f"opt/venv/lib/python{PYTHON}/site-packages"
LICENSE = "You may use this SOFTWARE.\n"
DPKG = """\
Package: tini
Status: install ok installed
Architecture: amd64
Version: 9.19.0-1+b3

Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc (9.41-12)
Version: 9.41-12+deb13u1
Description: a library
 of C
"""
PACKAGES = {"torch": (TORCH, "BSD-3-Clause"), "nvidia-fake-cu99": ("99.8.1", "LicenseRef-NVIDIA-Proprietary")}


def head() -> str:
    """The commit of this checkout, without a word about changes."""
    return run(["git", "-C", str(paths.ROOT), "rev-parse", "HEAD"]).strip()


def wheel_hash(name: str) -> str:
    """The hash of a wheel that does not exist."""
    return hashlib.sha256(name.encode()).hexdigest()


def layer(store: Store, files: Mapping[str, str], annotations: Mapping[str, str]) -> Layer:
    """A layer of these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    packed = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(out.getvalue())
    digest = oci.digest_of(packed)
    with store.part() as part:
        part.write_bytes(packed)
        store.keep(part, digest)
    return Layer(digest, len(packed), oci.digest_of(out.getvalue()), annotations, {})


def base(store: Store) -> Layer:
    """An operating system: os-release, dpkg, an empty virtual environment."""
    files = {
        "usr/lib/os-release": 'PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="13"\n',
        "var/lib/dpkg/status": DPKG,
        "opt/venv/pyvenv.cfg": f"home = /usr/bin\nversion = {PYTHON}.5\n",
    }
    return layer(store, files, {})


def python(store: Store, packages: Mapping[str, tuple[str, str]] = PACKAGES, torch: str = f"{TORCH}+cu998") -> Layer:
    """The packages, as wheels install them, with the layer's own bill of materials."""
    files = {f"{SITE}/torch/version.py": f"__version__ = '{torch}'\ncuda: Optional[str] = '{CUDA}'\n"}
    for name, (version, licence) in packages.items():
        info = f"{SITE}/{name.replace('-', '_')}-{version}.dist-info"
        files[f"{info}/METADATA"] = f"Name: {name}\nVersion: {version}\nLicense-Expression: {licence}\n\n# {name}\n"
        files[f"{info}/licenses/LICENSE"] = LICENSE
    notes = {
        "io.gpuyard.packages": " ".join(f"{name}=={version}" for name, (version, _) in packages.items()),
        "io.gpuyard.wheels": " ".join(f"sha256:{wheel_hash(name)}" for name in packages),
    }
    return layer(store, files, notes)


def claims(image: str = "workbench") -> dict[str, Any]:
    """What the image says of itself."""
    return {
        "schema": 1,
        "image": image,
        "line": "9.9",
        "os": "debian-13",
        "versions": {"torch": f"{TORCH}+cu998", "cuda": CUDA, "python": PYTHON},
        "arch_list": ["sm_90", "sm_120"],
        "driver": {"floor": "999.60.13", "full": "999.99.99"},
        "services": [],
        "required": ["image", "cpu"],
    }


def own(store: Store, image: str = "workbench", locked: Mapping[str, tuple[str, str]] = PACKAGES) -> Layer:
    """This project's own files."""
    lock = "".join(
        f"{name}=={version} \\\n    --hash=sha256:{wheel_hash(name)}\n" for name, (version, _) in locked.items()
    )
    files = {"etc/gpuyard/image.json": json.dumps(claims(image)), "etc/gpuyard/locks/torch.txt": lock}
    return layer(store, files, {"io.gpuyard.files": "/opt/gpuyard /etc/gpuyard"})


def labels(image: str = "workbench") -> dict[str, str]:
    """The image's labels."""
    return {
        "org.opencontainers.image.title": "pytorch-cuda:v9.9",
        "org.opencontainers.image.description": "PyTorch of no real version",
        "org.opencontainers.image.version": f"{TORCH}-cu998-py{PYTHON}-debian13",
        "org.opencontainers.image.revision": head(),
        "org.opencontainers.image.base.name": "debian:trixie-slim",
        **{f"io.gpuyard.{name}": claims(image)[name] for name in ("line", "image", "os")},
        "io.gpuyard.torch": f"{TORCH}+cu998",
        "io.gpuyard.cuda": CUDA,
        "io.gpuyard.python": PYTHON,
        "io.gpuyard.driver-floor": "999.60.13",
        "io.gpuyard.arch-list": "sm_90 sm_120",
        "io.gpuyard.lock": "sha256:" + "5" * 64,
        "io.gpuyard.base-origin": "bootstrap",
    }


def image(layers: list[Layer], labels: Mapping[str, str]) -> oci.Image:
    """The image of these layers and labels."""
    none = oci.Descriptors((), (), ())
    return oci.compose(none, layers, {"User": "1000", "Labels": dict(labels)}, "2031-01-02T00:00:00Z")


def layout(
    folder: Path, layers: list[Layer] | None = None, given: Mapping[str, str] | None = None, name: str = "workbench"
) -> str:
    """Writes an image as a layout below a folder; its digest. The store is the folder's own."""
    store = Store(folder / "store")
    made = image(layers or [base(store), python(store), own(store, name)], given or labels(name))
    oci.write_layout(folder / "layout", made, "pytorch-cuda:v9.9", store)
    return made.digest


def findings() -> list[Finding]:
    """What a run that passed found."""
    good = Verdict(Status.PASS, "as it should be")
    trained = Verdict(Status.PASS, "loss fell", data={"training": [sample.TRACE]})
    return [
        sample.finding("versions", good, Level.IMAGE, required=True),
        Finding("layers-no-secrets", "content", Level.IMAGE, "No secrets", good, True, 0.1, where="outside"),
        sample.finding("learns", trained, Level.CPU, required=True),
        sample.finding("late-gpu", Verdict(Status.SKIP, "no GPU was given"), Level.GPU),
    ]


def report(digest: str, found: list[Finding] | None = None, image: str = "workbench", code: int = 0) -> dict[str, Any]:
    """The report of a run about that digest."""
    made = sample.report(found or findings(), code).to_dict()
    return {**made, "digest": digest, "image": claims(image), "result": {"exit_code": code, "verdict": "All passed."}}


def write(folder: Path, content: Mapping[str, Any], name: str = "9.9-workbench-1.json") -> Path:
    """Writes a report as verify does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path
