"""The data types of the suite: checks, verdicts, findings and their owners."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

Facts = Mapping[str, Any]
"""What a probe saw, as plain JSON data: strings, numbers, booleans, None, lists and maps."""


class Status(str, Enum):
    """The result of a check. A required check must be PASS."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    UNKNOWN = "unknown"


class Owner(str, Enum):
    """Who has to act on a fault: whoever builds the image, starts the container or runs the host."""

    IMAGE = "image"
    START = "container start"
    HOST = "host"


class Level(str, Enum):
    """How much of a machine a check needs, in the order in which the checks are reported."""

    IMAGE = "image"
    CONTAINER = "container"
    CPU = "cpu"
    GPU = "gpu"
    MULTI_GPU = "multi-gpu"
    MULTI_NODE = "multi-node"

    @property
    def on_gpu(self) -> bool:
        """Whether the checks of this level run on a GPU of this machine."""
        return self in (Level.GPU, Level.MULTI_GPU)


class Isolation(str, Enum):
    """Where a probe runs.

    NONE: in the suite's own process (plain file reads only).
    CHILD: in a child process without torch, with the check's timeout.
    TORCH: in a child forked from one parent that has imported torch and never touched CUDA.
    """

    NONE = "none"
    CHILD = "child"
    TORCH = "torch"


@dataclass(frozen=True)
class Verdict:
    """What ``evaluate`` concludes from facts. ``remedy`` and ``owner`` are set on every failure."""

    status: Status
    observed: str
    expected: str = ""
    remedy: str = ""
    owner: Optional[Owner] = None
    data: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claims:
    """What this image claims (/etc/gpuyard/image.json); empty outside an image.

    ``image`` is the parsed file. ``tables`` is ``verify/tables.json``: driver, GPU and line
    tables generated from the catalogue.
    """

    image: Mapping[str, Any]
    tables: Mapping[str, Any]


Probe = Callable[[], Facts]
Evaluate = Callable[[Facts, Claims], Verdict]


@dataclass(frozen=True)
class Check:
    """One link of the chain: data, a probe that does I/O, and an evaluation that is pure.

    ``needs`` names the checks without whose pass this one means nothing: where one of them failed, this one is
    skipped as blocked by it. ``explained_by`` names those whose failure explains this one's: it then has their owner.
    ``why`` and ``repairs`` are for ``verify explain ID``. ``quick`` checks are in the profile quick. Checks with
    ``needs_claims`` compare with the image's claims and are required inside an image only. A check that ``disturbs``
    leaves a trace on the machine or hurts others on its GPU: it runs in the profile full, or where it is asked for by
    its id. A check of a ``package`` is required only where the package is installed or claimed. ``cases`` are the ids
    of the known ways to break that it sees (``verify --list --cases``); the registry fills them in.
    """

    id: str
    group: str
    level: Level
    title: str
    probe: Probe
    evaluate: Evaluate
    needs: Tuple[str, ...] = ()
    isolation: Isolation = Isolation.NONE
    timeout: float = 20.0
    explained_by: Tuple[str, ...] = ()
    why: str = ""
    repairs: Tuple[str, ...] = ()
    quick: bool = False
    needs_claims: bool = False
    package: str = ""
    disturbs: bool = False
    cases: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """A verdict with its check, whether this run required it, and what it took (seconds)."""

    check: str
    group: str
    level: Level
    title: str
    verdict: Verdict
    required: bool
    seconds: float
    where: str = "inside"
    error: str = ""
