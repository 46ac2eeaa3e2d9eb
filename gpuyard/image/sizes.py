"""What images share: by blob, from what the store knows of those that were put together here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gpuyard.image.oci import Image
from gpuyard.store.store import Store

KIND = "images"

Blobs = Mapping[str, int]


def remember(store: Store, name: str, image: Image) -> None:
    """Writes down the blobs of an image, the newest under each name."""
    layers = {str(layer["digest"]): int(layer["size"]) for layer in image.layers}
    store.write_record(KIND, name.replace("/", "_"), {"name": name, "layers": layers})


def known(store: Store) -> dict[str, Blobs]:
    """The blobs, with their sizes, of every image that was put together into this store."""
    paths = sorted((store.folder / KIND).glob("*.json"))
    records = [record for path in paths if (record := store.record(KIND, path.stem))]
    return {record["name"]: record["layers"] for record in records}


@dataclass(frozen=True)
class Sizes:
    """Compressed bytes of an image: all of it, what other images have too, and what only it has."""

    total: int
    shared: int

    @property
    def unique(self) -> int:
        return self.total - self.shared


def sizes(images: Mapping[str, Blobs]) -> dict[str, Sizes]:
    """The sizes of every image among these."""
    owners = Counter(blob for blobs in images.values() for blob in blobs)
    return {
        name: Sizes(sum(blobs.values()), sum(size for blob, size in blobs.items() if owners[blob] > 1))
        for name, blobs in images.items()
    }


def download(have: Blobs, want: Blobs) -> int:
    """What a user who has one image must download for another."""
    return sum(size for blob, size in want.items() if blob not in have)
