"""Byte code by the image's own Python: one container of the base image for each layer."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from typing import IO, cast

from gpuyard import paths
from gpuyard.errors import UserError
from gpuyard.store import CHUNK

SCRIPT = paths.DOCKER / "compile-layer.sh"


class Bytecode:
    """Takes sources one after the other, then gives their byte code. The container starts with the first.

    Sources and byte code go through pipes, so the engine may be on another machine.
    """

    def __init__(self, image: str, folder: str, *names: str) -> None:
        self._image, self._what = image, (folder, *names)
        self._process: subprocess.Popen[bytes] | None = None
        self._tar: tarfile.TarFile | None = None

    def source(self, path: str, data: bytes) -> None:
        """One source file, at its final path. Raises UserError if the container has ended."""
        entry = tarfile.TarInfo(path)
        entry.size = len(data)
        try:
            self._open().addfile(entry, io.BytesIO(data))
        except BrokenPipeError as error:
            raise self._failed() from error

    def compiled(self) -> Iterator[tuple[str, int, IO[bytes]]]:
        """Path, size and content of every file of byte code, sorted by path."""
        if self._process is None or self._tar is None:
            return
        assert self._process.stdin and self._process.stdout
        try:
            self._tar.close()
            self._process.stdin.close()
            with tarfile.open(fileobj=self._process.stdout, mode="r|", bufsize=CHUNK) as tar:
                for member in tar:
                    if content := tar.extractfile(member):
                        yield member.name, member.size, content
        except (BrokenPipeError, tarfile.TarError) as error:
            raise self._failed() from error
        if self._process.wait():
            raise self._failed()

    def close(self) -> None:
        """Ends the container if it still runs."""
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _open(self) -> tarfile.TarFile:
        if self._tar is None:
            words = [
                "docker",
                "run",
                "--rm",
                "--interactive",
                "--network",
                "none",
                "--user",
                "0",
                "--log-driver",
                "none",
            ]
            command = [*words, "--entrypoint", "bash", self._image, "-c", SCRIPT.read_text(), "compile", *self._what]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            stdin = cast(IO[bytes], self._process.stdin)
            self._tar = tarfile.open(fileobj=stdin, mode="w|", bufsize=CHUNK)  # noqa: SIM115
        return self._tar

    def _failed(self) -> UserError:
        assert self._process and self._process.stderr
        self._process.kill()
        words = self._process.stderr.read().decode(errors="replace").strip().splitlines()[-5:]
        return UserError(f"byte code could not be made in a container of {self._image}: " + " ".join(words))
