"""From a command's options to what is published: the image, its report, the signer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuyard import paths
from gpuyard.acceptance import reports
from gpuyard.catalogue import table
from gpuyard.catalogue.claims import LABEL
from gpuyard.catalogue.product import find_product
from gpuyard.catalogue.table import Catalogue
from gpuyard.errors import UsageError, UserError
from gpuyard.image import facts
from gpuyard.image.source import Source, from_checkout, from_layout
from gpuyard.publish import verified
from gpuyard.publish.signing import Signer
from gpuyard.publish.verified import Report
from gpuyard.store.store import Store


@dataclass(frozen=True)
class Selection:
    """Which image is meant: a line, image and system of the catalogue, or a layout that holds it."""

    line: str | None = None
    image: str = "workbench"
    os: str | None = None
    layout: Path | None = None


def source_of(selection: Selection, catalogue: Catalogue | None = None, store: Store | None = None) -> Source:
    """The selected image, whose labels and claims agree with its files. Raises UserError."""
    catalogue = catalogue or table.load()
    store = store or Store()
    if selection.layout:
        if selection.line:
            raise UsageError("layout-with-line", "a line and --layout exclude each other: the layout has its own")
        suffixes = {name: image.suffix or "" for name, image in catalogue.published.items()}
        source = from_layout(selection.layout, suffixes, store)
    else:
        source = from_checkout(find_product(catalogue, selection.line, selection.image, selection.os), store)
    facts.refuse_untrue(source.facts, source.labels)
    refuse_origin(source, catalogue)
    return source


def refuse_origin(source: Source, catalogue: Catalogue) -> None:
    """Raises UserError if the image stands on a base that the catalogue does not declare."""
    system, origin = source.labels.get(f"{LABEL}.os", ""), source.labels.get(f"{LABEL}.base-origin", "")
    declared = catalogue.os[system].origins if system in catalogue.os else ()
    if origin not in declared:
        names = ", ".join(declared) or "none"
        raise UserError(
            "base-undeclared",
            f"the image's base came from {origin or 'nowhere known'} ({system}); the catalogue declares: {names}",
        )


def report_of(source: Source, file: Path | None, folder: Path | None) -> Report:
    """The report that verifies the image: the given one, or the newest of a folder about it. Raises UserError.

    Without a folder, ``reports`` here and in the checkout are searched: verify writes where it was started.
    """
    folders = [folder] if folder else list(dict.fromkeys([Path("reports").absolute(), paths.REPORTS]))
    found = reports.read(file) if file else verified.find(folders, source.identities, again(source))
    return verified.require(found, source.identities, source.facts.image, again(source))


def again(source: Source) -> str:
    """The commands that build and verify the image."""
    which = f"{source.labels.get(f'{LABEL}.line', '')} --image {source.labels.get(f'{LABEL}.image', '')}"
    return f"gpuyard build {which} --builder layers && gpuyard verify {which} --no-build"


def signer_of(key: Path | None, keyless: bool) -> Signer | None:
    """The signer of the options; None without any. Raises UserError."""
    if key and keyless:
        raise UsageError("key-with-keyless", "--key and --keyless exclude each other")
    return Signer.of(key) if key else Signer(None) if keyless else None
