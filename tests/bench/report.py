"""What `make bench-build` writes into docs/: the table of steps, the ratios beside their limits, and a plot."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from gpuyard import paths

DOCS = paths.ROOT / "docs" / "bench-build.md"


@dataclass(frozen=True)
class Step:
    """What a step took: seconds, and bytes written to the disks of this machine meanwhile."""

    name: str
    seconds: float
    written: int


@dataclass(frozen=True)
class Facts:
    """An image that was built: its compressed bytes, and seconds in a container of it."""

    compressed: int
    import_torch: float
    import_without_bytecode: float
    jupyter: float


@dataclass(frozen=True)
class Goal:
    """A figure of this run and the limit that the project promises."""

    what: str
    measured: float
    limit: float
    unit: str = ""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Its line of the table."""
        shown = f"{self.measured:.2f}{self.unit}", f"{self.limit:g}{self.unit}"
        return self.what, *shown, "yes" if self.measured <= self.limit else "NO"


def write(steps: Sequence[Step], facts: Mapping[str, Facts], goals: Sequence[Goal], notes: Sequence[str]) -> None:
    """Prints the tables, and writes them with the plot to docs/bench-build.md and .svg."""
    console = Console(width=116, record=True)
    reference = steps[0].seconds
    console.print(
        table(
            ("build", "seconds", "of the plain way", "written"),
            [
                (step.name, f"{step.seconds:.1f}", f"{step.seconds / reference:.2f}", f"{step.written / 1e9:.1f} GB")
                for step in steps
            ],
        ),
        table(
            ("image", "compressed", "import torch", "without byte code", "Jupyter's first answer"),
            [
                (
                    way,
                    f"{found.compressed / 1e9:.2f} GB",
                    f"{found.import_torch:.1f} s",
                    f"{found.import_without_bytecode:.1f} s",
                    f"{found.jupyter:.1f} s",
                )
                for way, found in facts.items()
            ],
        ),
        table(("goal", "measured", "limit", "met"), [goal.row for goal in goals]),
        *notes,
        sep="\n",
    )
    plot(steps, DOCS.with_suffix(".svg"))
    DOCS.write_text(
        f"# Building, measured\n\nMade by `make bench-build`, in one run on {os.cpu_count()} processors. "
        "Seconds include writing everything to the disk.\n\n"
        f"{console.export_text()}\n![Seconds of each build](bench-build.svg)\n"
    )


def table(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """A Markdown table."""
    made = Table(*columns, box=box.MARKDOWN)
    for row in rows:
        made.add_row(*row)
    return made


def plot(steps: Sequence[Step], file: Path) -> None:
    """Seconds of each step as bars, one colour for each way."""
    figure = Figure(figsize=(9, 0.42 * len(steps) + 0.8), layout="constrained")
    axes = figure.subplots()
    ways = list(dict.fromkeys(step.name.split(":")[0] for step in steps))
    names = [step.name for step in steps]
    bars = axes.barh(
        names, [step.seconds for step in steps], color=[f"C{ways.index(name.split(':')[0])}" for name in names]
    )
    axes.bar_label(bars, fmt="%.0f s", padding=3)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.margins(x=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
