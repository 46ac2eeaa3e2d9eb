"""A container as a filter: files go in as a tar, files come out as a tar. Nothing is mounted."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from gpuyard.errors import UserError
from gpuyard.store import CHUNK

OPTIONS = ("--rm", "--interactive", "--network", "none", "--user", "0", "--log-driver", "none", "--entrypoint", "bash")


class Filter:
    """Runs a script in a container of an image, as root and without a network, once it is given a file."""

    def __init__(self, image: str, script: Path, *words: str) -> None:
        self._image, self._script = image, script
        self._command = ["docker", "run", *OPTIONS, image, "-c", script.read_text(), script.stem, *words]
        self._process: subprocess.Popen[bytes] | None = None
        self._tar: tarfile.TarFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def give(self, path: str, data: bytes, executable: bool = False) -> None:
        """One file for it. Raises UserError, with its last words, if the container has ended."""
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode = len(data), 0o755 if executable else 0o644
        try:
            self._open().addfile(entry, io.BytesIO(data))
        except BrokenPipeError as error:
            raise self._failed() from error

    def results(self) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
        """What it answers with, after it was given everything. Raises UserError if it fails."""
        if self._process is None or self._tar is None:
            return
        assert self._process.stdin and self._process.stdout
        try:
            self._tar.close()
            self._process.stdin.close()
            with tarfile.open(fileobj=self._process.stdout, mode="r|", bufsize=CHUNK) as tar:
                for member in tar:
                    yield member, tar.extractfile(member) if member.isreg() else None
        except (BrokenPipeError, tarfile.TarError) as error:
            raise self._failed() from error
        if self._process.wait():
            raise self._failed()

    def _open(self) -> tarfile.TarFile:
        if self._tar is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe)
            stdin = cast(IO[bytes], self._process.stdin)
            self._tar = tarfile.open(fileobj=stdin, mode="w|", bufsize=CHUNK)  # noqa: SIM115
        return self._tar

    def _failed(self) -> UserError:
        assert self._process and self._process.stderr
        self._process.kill()
        words = self._process.stderr.read().decode(errors="replace").strip().splitlines()[-5:]
        return UserError(f"{self._script.name} failed in a container of {self._image}: " + " ".join(words))
