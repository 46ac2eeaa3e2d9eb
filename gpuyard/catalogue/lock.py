"""Locks: hash-locked requirement files, one per line, Python and layer, stamped with their inputs."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from gpuyard import paths
from gpuyard.catalogue.table import Catalogue, Layer, Line
from gpuyard.errors import UserError
from gpuyard.indexes import uv_environment
from gpuyard.process import run

NVIDIA = re.compile(r"^(nvidia|cuda)-")
"""Packages that come from NVIDIA and change with a CUDA release, not with a torch release."""


@dataclass(frozen=True)
class LockSet:
    """The locks of one line on one Python, one file per layer."""

    catalogue: Catalogue
    line: str
    python: str
    folder: Path = paths.LOCKS

    def path(self, layer: Layer) -> Path:
        return self.folder / f"{self.line}-py{self.python}-{layer}.txt"

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of this line that have a lock; the compiler has one only where wheels or a system offer it."""
        systems = [name for name, system in self.catalogue.os.items() if system.python == self.python]
        devel = any(not self.catalogue.fault(self.line, "devel", name) for name in systems)
        return ("cuda", "torch", "workbench", *(("devel",) if devel else ()))

    @property
    def stamp(self) -> str:
        """A checksum of everything a lock is resolved from; any change makes the locks stale."""
        inputs = {
            "python": self.python,
            "platform": self.catalogue.platform,
            "torch": torch_requirements(self.catalogue, self.row),
            "workbench": self.catalogue.image["workbench"].requirements,
        }
        return _checksum(inputs)

    def stamp_of(self, layer: Layer) -> str:
        """The stamp of one layer: a change of the compiler's requirements leaves the locks below as they are."""
        if layer != "devel":
            return self.stamp
        return _checksum({"below": self.stamp, "devel": devel_requirements(self.catalogue, self.row)})

    @property
    def row(self) -> Line:
        return self.catalogue.line[self.line]

    def refuse_stale(self) -> None:
        """Raises UserError unless every lock is there and was resolved from today's inputs."""
        sums = self.checksums()
        for layer in self.layers:
            self._refuse_stale(layer, sums)

    def _refuse_stale(self, layer: Layer, sums: dict[str, str]) -> None:
        path, wanted = self.path(layer), self.stamp_of(layer)
        found = _stamp_of(path)
        if found != wanted:
            state = "is missing" if not path.exists() else f"is stale (made from {found or 'unknown inputs'})"
            raise UserError("lock-stale", f"{path.name} {state}; the catalogue asks for {wanted}. Run: {self.command}")
        if sums.get(path.name) != _sha256(path):
            raise UserError(
                "lock-edited",
                f"{path.name} was edited by hand: its checksum is not the one in {self.sums.name}. Run: {self.command}",
            )

    @property
    def command(self) -> str:
        """The command that resolves these locks; a system that is only declared has to be named."""
        systems = [(name, system.built) for name, system in self.catalogue.os.items() if system.python == self.python]
        declared = systems and not any(built for _, built in systems)
        return f"gpuyard lock {self.line}" + (f" --os {systems[0][0]}" if declared else "")

    @property
    def sums(self) -> Path:
        """The checksums of all locks, in the form that ``sha256sum --check`` reads."""
        return self.folder / "SHA256SUMS"

    def checksums(self) -> dict[str, str]:
        """The recorded SHA-256 of each lock, by file name."""
        lines = self.sums.read_text().splitlines() if self.sums.exists() else []
        return {name: digest for digest, name in (line.split("  ") for line in lines)}

    def packages(self, layers: Iterable[Layer]) -> dict[str, str]:
        """Every locked package of these layers, normalised name to version."""
        found: dict[str, str] = {}
        for layer in layers:
            found.update((name, version) for name, version, _ in entries(self.path(layer).read_text()))
        return found

    def digest(self, layers: Iterable[Layer]) -> str:
        """One checksum over the locks of these layers."""
        content = b"".join(self.path(layer).read_bytes() for layer in layers)
        return "sha256:" + hashlib.sha256(content).hexdigest()

    def write(self) -> None:
        """Resolves the line and writes its locks. Raises UserError with uv's output if that fails."""
        torch = torch_requirements(self.catalogue, self.row)
        workbench = [*torch, *self.catalogue.image["workbench"].requirements]
        below = compile_(torch, (), self.python)
        above = compile_(workbench, [f"{name}=={version}" for name, version, _ in entries(below)], self.python)
        parts: dict[Layer, list[str]] = {"cuda": [], "torch": []}
        known = set()
        for name, _, block in entries(below):
            known.add(name)
            parts["cuda" if NVIDIA.match(name) else "torch"].append(block)
        parts["workbench"] = [block for name, _, block in entries(above) if name not in known]
        self.folder.mkdir(parents=True, exist_ok=True)
        for layer, blocks in parts.items():
            self._write_layer(layer, blocks)
        if "devel" in self.layers:
            self.write_devel()
        self.record()

    def outdated(self) -> dict[str, tuple[str, str]]:
        """Packages that the indexes would resolve to another version today: name to locked and offered version.

        An empty version means that the package is not locked, or not needed any more. Asks the network; raises
        UserError with uv's output if an index does not answer.
        """
        layers: list[Layer] = ["cuda", "torch", "workbench"]
        locked = self.packages(layers)
        asked = [*torch_requirements(self.catalogue, self.row), *self.catalogue.image["workbench"].requirements]
        offered = {name: version for name, version, _ in entries(compile_(asked, (), self.python))}
        names = sorted(locked.keys() | offered.keys())
        pairs = {name: (locked.get(name, ""), offered.get(name, "")) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def write_devel(self) -> None:
        """Resolves the compiler's lock alone, on top of the others as they are."""
        known = self.packages(["cuda", "torch", "workbench"])
        asked = [*torch_requirements(self.catalogue, self.row), *devel_requirements(self.catalogue, self.row)]
        found = compile_(asked, [f"{name}=={version}" for name, version in known.items()], self.python)
        self._write_layer("devel", [block for name, _, block in entries(found) if name not in known])
        self.record()

    def record(self) -> None:
        """Records the checksums of this line's locks; those of other lines stay."""
        ours = {path.name: _sha256(path) for path in map(self.path, self.layers)}
        lines = sorted((name, digest) for name, digest in {**self.checksums(), **ours}.items())
        self.sums.write_text("".join(f"{digest}  {name}\n" for name, digest in lines))

    def _write_layer(self, layer: Layer, blocks: list[str]) -> None:
        header = (
            f"# Made by: gpuyard lock {self.line}. Do not edit; change images/catalogue.toml and run it again.\n"
            f"# inputs: {self.stamp_of(layer)}\n"
        )
        self.path(layer).write_text(header + "".join(blocks))


def torch_requirements(catalogue: Catalogue, line: Line) -> list[str]:
    """What the torch layer and everything below it is resolved from."""
    return [
        f"torch=={line.torch}",
        f"torchvision=={line.torchvision}",
        f"torchaudio=={line.torchaudio}",
        *line.requirements,
        *catalogue.image["torch"].requirements,
    ]


def devel_requirements(catalogue: Catalogue, line: Line) -> list[str]:
    """What a compiler's layer is resolved from: each part at the line's CUDA, or ptxas can't read what cicc writes."""
    return [*(f"{name}=={line.cuda}.*" for name in line.toolkit), *catalogue.image["devel"].requirements]


def compile_(requirements: Iterable[str], constraints: Iterable[str], python: str) -> str:
    """uv's resolution of these requirements from this machine's indexes, as a hash-locked file."""
    with tempfile.TemporaryDirectory() as folder:
        asked, bound, out = (Path(folder, name) for name in ("in.txt", "constraints.txt", "out.txt"))
        asked.write_text("\n".join(requirements))
        bound.write_text("\n".join(constraints))
        options = "--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet"
        # This interpreter runs the resolution: otherwise uv searches for the target's Python and tries to download it.
        ours = ["--python", sys.executable, "--no-python-downloads"]
        target = [*ours, "--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
        files = [str(asked), "--constraint", str(bound), "--output-file", str(out)]
        command = [find_uv_bin(), "pip", "compile", *options.split(), *target, "--only-binary", ":all:", *files]
        run(command, env=uv_environment())
        return out.read_text()


def entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, version and whole text of each requirement of a hash-locked file."""
    for block in re.findall(r"^[A-Za-z0-9].*(?:\n[ \t]+.*)*\n", text, flags=re.MULTILINE):
        requirement = Requirement(block.split("\\")[0].strip())
        version = str(requirement.specifier).removeprefix("==")
        yield canonicalize_name(requirement.name), version, block


def _checksum(inputs: Mapping[str, object]) -> str:
    return "sha256:" + hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _stamp_of(path: Path) -> str | None:
    if not path.exists():
        return None
    match = re.search(r"^# inputs: (\S+)$", path.read_text(), flags=re.MULTILINE)
    return match.group(1) if match else None
