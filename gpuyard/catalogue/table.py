"""The catalogue: `images/catalogue.toml` as frozen, validated data, and what follows from it."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gpuyard import paths
from gpuyard.errors import UsageError, UserError

Release = Annotated[str, Field(pattern=r"^\d+(\.\d+)+$")]
Series = Annotated[str, Field(pattern=r"^\d+\.\d+$")]
Arch = Annotated[str, Field(pattern=r"^sm_\d+$")]
Origin = Literal["registry", "bootstrap"]
Layer = Literal["cuda", "torch", "workbench", "devel"]


class Row(BaseModel):
    """A table of the catalogue: immutable, and no key that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OperatingSystem(Row):
    """A base: an image by digest, and a Debian suite where it can be bootstrapped instead."""

    image: Annotated[str, Field(pattern=r"^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$")]
    origins: tuple[Origin, ...]
    python: Series
    epoch: datetime
    built: bool
    suite: str | None = None
    cuda: Series | None = None
    nvcc: bool = False

    @model_validator(mode="after")
    def _bootstrap_needs_a_suite(self) -> OperatingSystem:
        if "bootstrap" in self.origins and not self.suite:
            raise ValueError("origin 'bootstrap' needs a suite")
        return self


class Line(Row):
    """A release line of PyTorch: the exact versions whose published wheels belong together."""

    torch: Release
    torchvision: Release
    torchaudio: Release
    cuda: Series
    cudnn: Release
    nccl: Release
    arch_list: tuple[Arch, ...]
    pythons: tuple[Series, ...]
    requirements: tuple[str, ...] = ()
    toolkit: tuple[str, ...] = ()

    @property
    def variant(self) -> str:
        """The CUDA variant as wheels spell it: ``cu`` and the CUDA version without its dot."""
        return "cu" + self.cuda.replace(".", "")

    @property
    def cuda_major(self) -> str:
        return self.cuda.split(".")[0]

    @property
    def torch_version(self) -> str:
        """What ``torch.__version__`` says: the release and the local version of the CUDA variant."""
        return f"{self.torch}+{self.variant}"


class Image(Row):
    """A link in the chain of images. Only images with a suffix are tagged and published."""

    folder: str
    parent: str | None = None
    lock: Layer | None = None
    requirements: tuple[str, ...] = ()
    suffix: str | None = None
    title: str = ""
    services: tuple[Literal["jupyter", "ssh"], ...] = ()
    ports: tuple[int, ...] = ()
    required: tuple[str, ...] = ()


class Drivers(Row):
    """NVIDIA driver versions by CUDA release (``bundled``) and by CUDA major (``family``)."""

    bundled: Mapping[Series, Release]
    family: Mapping[str, Release]


class Gpu(Row):
    """The GPUs of one compute capability: boards for x86-64 machines, and those with an arm64 processor."""

    generation: str
    names: tuple[str, ...] = ()
    arm64: tuple[str, ...] = ()
    first_driver: Release | None = None
    last_branch: int | None = None


class Catalogue(Row):
    """The whole table. Every cross reference in it is checked when it is read."""

    repository: str
    source: str = ""
    default_line: str
    default_os: str
    platform: str
    uv: Release
    os: Mapping[str, OperatingSystem]
    line: Mapping[Series, Line]
    image: Mapping[str, Image]
    drivers: Drivers
    gpu: Mapping[Series, Gpu]

    @model_validator(mode="after")
    def _references_exist(self) -> Catalogue:
        _refer("default_line", self.default_line, self.line)
        _refer("default_os", self.default_os, self.os)
        for name, image in self.image.items():
            if image.parent is not None:
                _refer(f"image.{name}.parent", image.parent, self.image)
        for name, line in self.line.items():
            _refer(f"line.{name}.cuda", line.cuda, self.drivers.bundled)
            _refer(f"line.{name}.cuda (major)", line.cuda_major, self.drivers.family)
        return self

    @cached_property
    def published(self) -> dict[str, Image]:
        """The images that get tags, by name."""
        return {name: image for name, image in self.image.items() if image.suffix is not None}

    def find_line(self, name: str | None) -> str:
        """The key of a line by the names people type (``2.9``, ``v2.9``, its full torch version)."""
        if name is None:
            return self.default_line
        wanted = name.removeprefix("v")
        for key, line in self.line.items():
            if wanted in (key, line.torch, line.torch_version):
                return key
        raise UsageError("line-unknown", unknown("line", name, self.line))

    def find_image(self, name: str) -> Image:
        """The image of that name. Raises UsageError with the nearest names."""
        if name not in self.image:
            raise UsageError("image-unknown", unknown("image", name, self.image))
        return self.image[name]

    def find_os(self, name: str | None) -> str:
        """The operating system of that name, or the default one. Raises UsageError with the nearest names."""
        if name is not None and name not in self.os:
            raise UsageError("os-unknown", unknown("operating system", name, self.os))
        return name or self.default_os

    def chain(self, name: str) -> list[str]:
        """The images from the bottom of the chain up to and including ``name``."""
        image = self.find_image(name)
        return [*(self.chain(image.parent) if image.parent else []), name]

    def driver_floor(self, line: Line) -> str:
        """The oldest driver that runs this line at all."""
        return self.drivers.family[line.cuda_major]

    def driver_on(self, line: Line, capability: str) -> str:
        """The oldest driver that runs this line on that GPU: the line's own, or the first that knows the GPU."""
        return max(self.driver_floor(line), self.gpu[capability].first_driver or "0", key=Version)

    def driver_full(self, line: Line) -> str:
        """The driver that came with this line's CUDA: every feature, PTX included."""
        return self.drivers.bundled[line.cuda]

    def tag(self, line: str, image: str) -> str:
        """The moving reference people type, such as ``repository:vLINE-suffix``."""
        return f"{self.repository}:v{line}{self.image[image].suffix}"

    def fault(self, line: str, image: str, os: str) -> str | None:
        """Why there can be no such image, or None if there can."""
        row, system = self.line[line], self.os[os]
        if system.python not in row.pythons:
            offered = ", ".join(row.pythons)
            return (
                f"line {line} has no wheels for Python {system.python} (that of {os}); it exists for Python {offered}"
            )
        if system.cuda and system.cuda.split(".")[0] != row.cuda_major:
            return f"{os} holds CUDA {system.cuda}, and line {line} is built for CUDA {row.cuda}"
        if self.image[image].lock == "devel" and not row.toolkit and not (system.nvcc and system.cuda == row.cuda):
            return f"NVIDIA's wheels for CUDA {row.cuda} hold no nvcc, and neither does {os}"
        return None

    def check(self, line: str, image: str, os: str) -> None:
        """Refuses an image that can't exist, naming the ones that can."""
        if reason := self.fault(line, image, os):
            systems = [name for name in self.os if not self.fault(line, image, name)]
            lines = [name for name in self.line if not self.fault(name, image, os)]
            raise UsageError(
                "combination-impossible",
                f"{reason}. {image} of line {line} can be built on: {_some(systems)}; "
                f"on {os} {image} exists for lines: {_some(lines)}",
            )

    def images_of(self, line: str) -> list[str]:
        """The images of a line that are published, on the default operating system."""
        return [name for name in self.published if not self.fault(line, name, self.default_os)]

    def generations(self, line: Line) -> list[str]:
        """The GPU generations (on x86-64) that a line has machine code for, newest first."""
        runnable = [
            gpu.generation
            for capability, gpu in self.gpu.items()
            if gpu.names and any(runs_on(arch, capability) for arch in line.arch_list)
        ]
        return list(dict.fromkeys(runnable))


def runs_on(arch: str, capability: str) -> bool:
    """Whether code for ``arch`` (``sm_86``) runs on a device of that compute capability (``8.9``).

    Machine code runs on devices of the same major and the same or a newer minor.
    """
    major, minor = divmod(int(arch.removeprefix("sm_")), 10)
    device = Version(capability)
    return major == device.major and minor <= device.minor


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line that names what was asked for, the nearest known name, and all known ones."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {name!r}.{hint} Known: {', '.join(names)}"


def _some(names: list[str]) -> str:
    return ", ".join(names) or "nothing declared"


def _refer(key: str, name: str, table: Mapping[str, Any]) -> None:
    if name not in table:
        raise ValueError(f"{key}: {unknown('name', name, table)}")


def load(path: Path = paths.CATALOGUE) -> Catalogue:
    """Reads and validates the catalogue.

    Raises UserError that names the file and, for every fault, the key, what was found and what
    was expected.
    """
    try:
        return Catalogue.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise UserError("catalogue-invalid", f"{path}: cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError("catalogue-invalid", f"{path}: not TOML: {error}") from error
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors())
        raise UserError("catalogue-invalid", f"{path}: {faults}") from error


def _fault(fault: Any) -> str:
    key = ".".join(str(part) for part in fault["loc"]) or "catalogue"
    found = "" if isinstance(fault["input"], Mapping) else f", found {fault['input']!r}"
    return f"{key}: {fault['msg']}{found}"
