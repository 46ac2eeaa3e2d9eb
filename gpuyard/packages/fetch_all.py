"""All the wheels of a product."""

from __future__ import annotations

from concurrent.futures import Future, as_completed

from gpuyard.catalogue.product import Product
from gpuyard.errors import UserError
from gpuyard.packages.fetcher import Fetcher, Wheel, fetching
from gpuyard.packages.locked import Locked, read
from gpuyard.progress import meter


def requirements(product: Product) -> list[Locked]:
    """What all the locks of a product ask for."""
    return [locked for layer in product.layers for locked in read(product.locks.path(layer))]


def fetch_all(fetcher: Fetcher, wanted: list[Locked]) -> list[Wheel]:
    """Every wheel, several at a time, with progress. Raises UserError that names each that can't be had."""
    with meter("wheels", len(wanted)) as shown, fetching(fetcher, wanted, shown.moved) as futures:
        faults: list[str] = []
        for future in as_completed(futures.values()):
            shown.finished()
            if fault := _fault(future):
                faults.append(fault)
    if faults:
        raise UserError(
            "wheels-missing", f"{len(faults)} of {len(wanted)} wheels are missing:\n  " + "\n  ".join(sorted(faults))
        )
    return [future.result() for future in futures.values()]


def _fault(future: Future[Wheel]) -> str:
    error = future.exception()
    if isinstance(error, UserError):
        return str(error)
    if error:
        raise error
    return ""
