"""One image of one line on one operating system: the unit that is built, verified and published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuyard import paths
from gpuyard.catalogue.lock import LockSet
from gpuyard.catalogue.table import Catalogue, Layer, Line
from gpuyard.errors import UsageError


@dataclass(frozen=True)
class Product:
    """One image of one line on one operating system."""

    catalogue: Catalogue
    line: str
    image: str
    os: str
    lock_folder: Path = paths.LOCKS

    @property
    def row(self) -> Line:
        return self.catalogue.line[self.line]

    @property
    def python(self) -> str:
        return self.catalogue.os[self.os].python

    @property
    def locks(self) -> LockSet:
        return LockSet(self.catalogue, self.line, self.python, self.lock_folder)

    @property
    def layers(self) -> list[Layer]:
        """The locks this image is made of, from the bottom up."""
        chain = (self.catalogue.image[name].lock for name in self.catalogue.chain(self.image))
        return [lock for lock in chain if lock is not None]

    @property
    def tag(self) -> str:
        return self.catalogue.tag(self.line, self.image)

    @property
    def full_version(self) -> str:
        """Release, CUDA variant, Python and operating system, as the full tag spells them."""
        return f"{self.row.torch}-{self.row.variant}-py{self.python}-{self.os.replace('-', '')}"

    @property
    def full_tag(self) -> str:
        suffix = self.catalogue.image[self.image].suffix
        return f"{self.catalogue.repository}:{self.full_version}{suffix}"

    @property
    def arch_list(self) -> str:
        """The arch list as torch's build variables spell it: ``8.6;9.0+PTX``."""
        numbers = [f"{int(arch[3:]) // 10}.{int(arch[3:]) % 10}" for arch in self.row.arch_list]
        return ";".join(numbers) + "+PTX"

    @property
    def require_cuda(self) -> str:
        """The driver gate: any driver of the CUDA family, which is all that machine code needs."""
        return f"cuda>={self.row.cuda_major}.0"


def find_product(catalogue: Catalogue, line: str | None, image: str = "workbench", os: str | None = None) -> Product:
    """The product of these names. Raises UsageError for a name that is not in the catalogue."""
    name = catalogue.find_line(line)
    catalogue.find_image(image)
    if image not in catalogue.published:
        raise UsageError("image-inner", f"{image} is an inner layer; build one of: {', '.join(catalogue.published)}")
    system = catalogue.find_os(os)
    catalogue.check(name, image, system)
    return Product(catalogue, name, image, system)
