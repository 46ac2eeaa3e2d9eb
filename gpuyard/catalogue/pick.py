"""Which line runs on which driver and GPU: an answer with its reason for every line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from gpuyard.catalogue.table import Catalogue, Line, runs_on
from gpuyard.errors import UsageError


@dataclass(frozen=True)
class Driver:
    """A driver as people name it: ``550.99``, or its branch alone (``550``)."""

    version: Version

    @classmethod
    def parse(cls, text: str) -> Driver:
        """Raises UsageError for text that is not a driver version (12.4 is a CUDA version)."""
        try:
            found = Version(text.strip().removeprefix("R").removeprefix("r"))
        except InvalidVersion:
            raise UsageError(
                "driver-invalid",
                f"--driver {text!r}: expected a driver version such as 550 or 550.99 (nvidia-smi shows it)",
            ) from None
        if found.major < 100:
            raise UsageError(
                "driver-invalid",
                f"--driver {text!r} looks like a CUDA version: expected the driver's, such as 550.99 (nvidia-smi)",
            )
        return cls(found)

    @property
    def branch_only(self) -> bool:
        return len(self.version.release) == 1

    def reaches(self, floor: str) -> bool:
        """Whether it is that version or a newer one; a branch counts with its newest release."""
        wanted = Version(floor)
        return self.version.major >= wanted.major if self.branch_only else self.version >= wanted

    def doubt(self, floor: str) -> str:
        """What to look at when only the branch is known and it is the floor's own."""
        return (
            f" (if yours is {floor} or newer)"
            if self.branch_only and self.version.major == Version(floor).major
            else ""
        )


@dataclass(frozen=True)
class Answer:
    """What one line can do on a driver and a GPU, and why."""

    line: str
    runs: bool
    complete: bool
    """Every feature, code compiled at run time from PTX included."""
    reason: str


def answers(catalogue: Catalogue, driver: Driver | None, wanted: Iterable[str]) -> list[Answer]:
    """One answer a line, in the catalogue's order."""
    capability = list(wanted)
    return [_answer(catalogue, name, line, driver, capability) for name, line in catalogue.line.items()]


def _answer(catalogue: Catalogue, name: str, line: Line, driver: Driver | None, wanted: list[str]) -> Answer:
    if missing := [cc for cc in wanted if not any(runs_on(arch, cc) for arch in line.arch_list)]:
        return Answer(name, False, False, f"no machine code for compute capability {', '.join(missing)}")
    floor = max([catalogue.driver_floor(line), *(catalogue.driver_on(line, cc) for cc in wanted)], key=Version)
    full = max(floor, catalogue.driver_full(line), key=Version)
    newest = min((row.last_branch for cc in wanted if (row := catalogue.gpu[cc]).last_branch), default=None)
    until = f", up to the {newest} branch" if newest else ""
    if driver is None:
        return Answer(name, True, True, f"driver {floor} or newer{until}; {full} for every feature")
    if newest and driver.version.major > newest:
        return Answer(
            name, False, False, f"driver {driver.version} no longer knows this GPU: {newest} is its last branch"
        )
    if not driver.reaches(floor):
        return Answer(name, False, False, f"needs driver {floor} or newer")
    if driver.reaches(full):
        return Answer(name, True, True, f"driver and CUDA {line.cuda} fit" + driver.doubt(full))
    return Answer(name, True, False, f"runs{driver.doubt(floor)}; PTX is compiled from driver {full} on")


def best(catalogue: Catalogue, found: list[Answer]) -> Answer | None:
    """The line to take: the default one where it runs, else the newest that does."""
    running = [answer for answer in found if answer.runs]
    preferred = [answer for answer in running if answer.line == catalogue.default_line]
    return next(iter(preferred), None) or max(running, key=lambda answer: Version(answer.line), default=None)
