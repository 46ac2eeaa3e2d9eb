"""A container as a filter: files go in as a tar, files come out as a tar. Nothing is mounted.

The last file of the answer is a marker that the script succeeded; so nobody waits for the end of the
container, which takes the engine longer than some scripts.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from gpuyard.errors import UserError
from gpuyard.process import piped
from gpuyard.store.store import CHUNK

OPTIONS = ("--rm", "--interactive", "--network", "none", "--user", "0", "--log-driver", "none", "--entrypoint", "bash")
COMPLETE = "gpuyard-complete"
"""The name of that marker, which is not part of the result."""
GRACE = 10.0
"""Seconds to wait for the error output of a container that gave no answer."""


class Filter:
    """Runs a script in a container of an image, as root and without a network, once it is given a file."""

    def __init__(self, image: str, script: Path, *words: str) -> None:
        self._image, self._script = image, script
        self._command = ["docker", "run", *OPTIONS, image, "-c", script.read_text(), script.stem, *words]
        self._process: subprocess.Popen[bytes] | None = None
        self._tar: tarfile.TarFile | None = None
        self._complete = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._process is None:
            return
        if self._complete:
            threading.Thread(target=self._process.communicate, daemon=True).start()
        elif self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def give(self, path: str, data: bytes, executable: bool = False) -> None:
        """Sends one file to the script. Raises UserError, with its error output, if the container has ended."""
        entry = tarfile.TarInfo(path)
        entry.size, entry.mode = len(data), 0o755 if executable else 0o644
        try:
            self._open().addfile(entry, io.BytesIO(data))
        except BrokenPipeError as error:
            raise self._failed() from error

    def results(self) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
        """The script's output files; call it after the last ``give``. Raises UserError if the script fails."""
        if self._process is None or self._tar is None:
            return
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._tar.close()
            self._process.stdin.close()
            self._process.stdin = None  # communicate() would flush it
            # Without Python's buffer, which would wait for a megabyte or the end.
            raw = open(self._process.stdout.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
            with raw, tarfile.open(fileobj=raw, mode="r|", bufsize=CHUNK) as tar:
                for member in tar:
                    if member.name == COMPLETE:
                        self._complete = True
                        return
                    yield member, tar.extractfile(member) if member.isreg() else None
        except (BrokenPipeError, tarfile.TarError) as error:
            raise self._failed() from error
        raise self._failed()

    def _open(self) -> tarfile.TarFile:
        if self._tar is None:
            self._process = piped(self._command)
            stdin = cast(IO[bytes], self._process.stdin)
            self._tar = tarfile.open(fileobj=stdin, mode="w|", bufsize=CHUNK)  # noqa: SIM115
        return self._tar

    def _failed(self) -> UserError:
        assert self._process
        try:
            _, said = self._process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, said = self._process.communicate()
        words = said.decode(errors="replace").strip().splitlines()[-5:]
        return UserError(
            "layer-script-failed", f"{self._script.name} failed in a container of {self._image}: " + " ".join(words)
        )
