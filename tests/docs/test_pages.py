"""Generated pages: a release's page from its report and image, and the tables between markers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuyard import paths
from gpuyard.acceptance.differences import Side
from gpuyard.catalogue.claims import image_json
from gpuyard.catalogue.product import Product
from gpuyard.catalogue.table import Catalogue
from gpuyard.commands.publishing.page import TABLES, generated
from gpuyard.errors import UserError
from gpuyard.publish import release_page
from gpuyard.publish.release_page import Release
from gpuyard.render import markdown
from tests.verify.report.sample import report

DIGEST = "sha256:" + "5" * 64


@pytest.fixture
def release(table: Catalogue) -> Release:
    """An image of the default line that nobody built, with the renderers' sample report."""
    product = Product(table, table.default_line, "workbench", table.default_os)
    side = Side(product.tag, image_json(product), DIGEST, 3_210_000_000, ("a", "b"))
    labels = {"org.opencontainers.image.revision": "c0ffee", "io.gpuyard.base-origin": "bootstrap"}
    return Release(product, side, replace(report(), digest=DIGEST), labels, {"sha256:" + "a" * 64: 12_300_000})


@pytest.mark.parametrize("file", TABLES)
def test_generated_tables_are_up_to_date(table: Catalogue, file: str) -> None:
    """What stands between the markers is what `gpuyard page` writes today."""
    page = (paths.ROOT / file).read_text()
    for name in TABLES[file]:
        assert markdown.between(page, name, generated(table, name)) == page


def test_the_page_says_what_the_image_is_and_what_was_found(release: Release) -> None:
    """Digest, size, versions, driver, required checks with their results, trainings, layers, packages."""
    text = release_page.text(release)
    for words in (
        f"`{DIGEST}`",
        "`c0ffee`",
        "bootstrapped from its packages",
        "3.21 GB compressed, 2 layers",
        f"| torch | {release.product.row.torch_version} |",
        "not run on a GPU",
        "| shm-size | fail | 64 MiB |",
        "rnn-titles on cpu, bf16: loss 0.7 to 0.1 in 10 steps",
        "12.3 MB",
        "jupyterlab ",
        f"cosign verify HOST/{release.product.catalogue.repository}@{DIGEST}",
    ):
        assert words in text
    assert "| learns |" not in text, "checks that were not required are in the report, not on the page"


def test_a_report_of_another_image_makes_no_page(release: Release) -> None:
    """The digest in the report must be the image's own."""
    other = replace(release, report=replace(release.report, digest="sha256:" + "6" * 64))
    with pytest.raises(UserError, match=r"report is of sha256:666.*verify it again"):
        release_page.text(other)


def test_only_images_with_a_page_are_linked(table: Catalogue, tmp_path: Path) -> None:
    """A link in the table appears with the page, and every image has a row."""
    product = Product(table, table.default_line, "runtime", table.default_os)
    assert "[page]" not in release_page.images(table, tmp_path)
    release_page.path(product, tmp_path).touch()
    text = release_page.images(table, tmp_path)
    assert text.count("[page]") == 1
    assert len(text.splitlines()) == 2 + sum(len(table.images_of(line)) for line in table.line)


def test_every_page_is_of_an_image_that_exists(table: Catalogue) -> None:
    """A page of a tag that the catalogue no longer has would mislead."""
    known = {table.tag(line, image).partition(":")[2] for line in table.line for image in table.images_of(line)}
    assert {page.stem for page in release_page.FOLDER.glob("*.md")} <= known
