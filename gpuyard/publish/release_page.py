"""The page of a release, docs/images/TAG.md: made from its verification report and from the image itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuyard import paths
from gpuyard.acceptance.differences import Side
from gpuyard.catalogue.claims import LABEL
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UserError
from gpuyard.publish.page import training
from gpuyard.publish.signing import GITHUB
from gpuyard.render.markdown import markdown
from verify.report.report import Report

FOLDER = paths.ROOT / "docs" / "images"


@dataclass(frozen=True)
class Release:
    """An image that is here, with the report that verified it, and what the engine and the store know of it."""

    product: Product
    side: Side
    report: Report
    labels: Mapping[str, str]
    blobs: Mapping[str, int]


def require_same(release: Release) -> None:
    """Raises UserError unless the report speaks of this image and of this very digest."""
    if release.report.digest != release.side.digest:
        raise UserError(
            "report-other-image",
            f"the report is of {release.report.digest}, and {release.product.tag} is "
            f"{release.side.digest}: verify it again (gpuyard verify {release.product.line})",
        )


def text(release: Release) -> str:
    """The page."""
    require_same(release)
    parts = [
        f"# {release.product.tag}",
        f"<!-- Made by: gpuyard page {release.product.line} --image {release.product.image}. Do not edit. -->",
        release.labels.get("org.opencontainers.image.description", ""),
        markdown(["", ""], _facts(release)),
        "## Verified",
        *_verified(release.report),
        "## Check it yourself",
        _commands(release),
        *_layers(release),
        "## Python packages",
        _packages(release),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(release: Release) -> Iterator[list[str]]:
    claims, product = release.side.claims, release.product
    yield ["digest", f"`{release.side.digest}`"]
    yield ["tags", f"`{product.tag}`, `{product.full_tag}`"]
    yield ["source", f"`{release.labels.get('org.opencontainers.image.revision') or 'outside git'}`"]
    base, origin = release.labels.get("org.opencontainers.image.base.name"), release.labels.get(f"{LABEL}.base-origin")
    yield ["base", f"{base}, {'bootstrapped from its packages' if origin == 'bootstrap' else 'from its registry'}"]
    if release.side.size:
        yield ["size", f"{release.side.size / 1e9:.2f} GB compressed, {len(release.side.layers)} layers"]
    for name, version in claims["versions"].items():
        yield [name, str(version)]
    yield ["driver", f"{claims['driver']['floor']} or newer; {claims['driver']['full']} for every feature"]
    yield ["GPUs", f"{', '.join(product.catalogue.generations(product.row))} ({' '.join(claims['arch_list'])})"]


def _verified(report: Report) -> Iterator[str]:
    where = "on a GPU" if report.on_gpu else "not run on a GPU"
    yield f"{report.started[:10]}: {report.counted}; {where}. {report.verdict}"
    rows = [[f.check, f.verdict.status.value, _cell(f.verdict.observed)] for f in report.findings if f.required]
    yield markdown(["required check", "result", "found"], rows)
    if report.training:
        yield "Trainings that had to learn:\n\n" + "\n".join(f"- {training(trace)}" for trace in report.training)


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|")[:200]


def _commands(release: Release) -> str:
    tag = release.product.tag
    return (
        "```console\n"
        f"$ docker run --rm --gpus all {tag} verify\n"
        f"$ gpuyard inspect HOST/{tag}\n"
        f"$ cosign verify HOST/{tag.split(':')[0]}@{release.side.digest} \\\n"
        f"    --certificate-oidc-issuer {GITHUB} \\\n"
        "    --certificate-identity-regexp '^https://github.com/OWNER/REPOSITORY/.github/workflows/publish.yml@'\n"
        "```\n\n"
        "HOST is the registry, OWNER/REPOSITORY where this is developed; with a key: `cosign verify --key FILE`."
    )


def _layers(release: Release) -> Iterator[str]:
    if release.blobs:
        rows = [[f"`{digest[:19]}`", f"{size / 1e6:.1f} MB"] for digest, size in release.blobs.items()]
        yield "## Layers"
        yield markdown(["layer, from the bottom up", "compressed"], rows)


def _packages(release: Release) -> str:
    names = [f"{name} {version}" for name, version in release.side.claims["packages"].items()]
    return f"{len(names)}: {', '.join(names)}."


def path(product: Product, folder: Path = FOLDER) -> Path:
    """Where the page of an image lies."""
    return folder / f"{product.tag.partition(':')[2]}.md"


def images(catalogue: Catalogue, folder: Path = FOLDER) -> str:
    """The table of all images, each with its page if it has one."""
    rows = []
    for line, row in catalogue.line.items():
        for image in catalogue.images_of(line):
            product = Product(catalogue, line, image, catalogue.default_os)
            page = path(product, folder)
            link = f"[page](images/{page.name})" if page.exists() else ""
            what = catalogue.image[image].title.partition(": ")[2]
            rows.append([f"`{product.tag}`", what, f"{row.torch_version}, Python {product.python}", link])
    return markdown(["image", "what it is", "torch", "verified"], rows)
