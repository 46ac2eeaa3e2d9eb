"""From the words of a command to what is published: the image, its report, the repository, the signer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
class Words:
    """Which image is meant: a line, image and system of the catalogue, or the layout that holds it."""

    line: str | None = None
    image: str = "workbench"
    os: str | None = None
    layout: Path | None = None


def source_of(words: Words, catalogue: Catalogue | None = None, store: Store | None = None) -> Source:
    """The image that is meant, if it tells the truth about itself. Raises UserError."""
    catalogue = catalogue or table.load()
    store = store or Store()
    if words.layout:
        if words.line:
            raise UsageError("a line and --layout exclude each other: the layout says which line it is")
        suffixes = {name: image.suffix or "" for name, image in catalogue.published.items()}
        source = from_layout(words.layout, suffixes, store)
    else:
        source = from_checkout(find_product(catalogue, words.line, words.image, words.os), store)
    facts.refuse_untrue(source.facts, source.labels)
    refuse_origin(source, catalogue)
    return source


def refuse_origin(source: Source, catalogue: Catalogue) -> None:
    """Raises UserError if the image stands on a base that the catalogue does not declare."""
    system, origin = source.labels.get(f"{LABEL}.os", ""), source.labels.get(f"{LABEL}.base-origin", "")
    declared = catalogue.os[system].origins if system in catalogue.os else ()
    if origin not in declared:
        names = ", ".join(declared) or "none"
        raise UserError(f"the base of the image came from {origin or 'nowhere'} ({system}); declared there: {names}")


def report_of(source: Source, file: Path | None, folder: Path) -> Report:
    """The report that verifies the image: the one that is named, or the newest of a folder. Raises UserError."""
    path = file or verified.find(folder, source.identities, again(source))
    return verified.require(path, source.identities, source.facts.image, again(source))


def again(source: Source) -> str:
    """The commands that make and verify an image: of another commit, it would be another digest."""
    which = f"{source.labels.get(f'{LABEL}.line', '')} --image {source.labels.get(f'{LABEL}.image', '')}"
    return f"gpuyard build {which} --builder layers && gpuyard verify {which} --no-build"


def signer_of(key: Path | None, keyless: bool) -> Signer | None:
    """Who signs, if anybody does."""
    if key and keyless:
        raise UsageError("--key and --keyless exclude each other")
    return Signer.of(key) if key else Signer(None) if keyless else None
