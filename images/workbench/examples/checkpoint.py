"""Checkpoints: written completely or not at all, and loaded only by the training that wrote them."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

from examples.errors import FULL, ExampleError

FORMAT = 1


def run_folder(models: Path, name: str) -> Path:
    """The folder of one run below the models' folder, made and proven writable before any work is done."""
    folder = models / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ExampleError(
            f"can't write to {folder}: {error.strerror}. It must belong to uid {os.getuid()}: mount a named volume "
            "(docker run -v models:/mnt/models), chown the folder on the host, or choose another by --models"
        ) from None
    return folder


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the old one's place only when all of it is on the disk."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        made.chmod(0o644)
        made.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            made.unlink()
        raise


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Saves a checkpoint; when that fails the old one is as it was."""
    _write(path, lambda file: torch.save({"format": FORMAT, **content}, file))


def save_json(path: Path, content: Any) -> None:
    """Writes JSON in the same way."""
    _write(path, lambda file: file.write((json.dumps(content, indent=1) + "\n").encode()))


def _write(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    try:
        with replacing(path) as file:
            write(file)
    except (OSError, RuntimeError) as error:
        cause = _system_error(error)
        if cause is None:
            raise
        old = f"; the {path.name} saved before is as it was" if path.exists() else ""
        space = ": free some space there and run the same command, it continues" if cause.errno in FULL else ""
        raise ExampleError(f"can't save {path}: {cause.strerror}{old}{space}") from None


def _system_error(error: BaseException | None) -> OSError | None:
    """The system's error, which torch wraps in one of its own."""
    while error is not None:
        if isinstance(error, OSError):
            return error
        error = error.__cause__ or error.__context__
    return None


def load(path: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The checkpoint of these settings, or None where there is none yet."""
    if not path.exists():
        return None
    hint = f"; --fresh starts from the beginning and keeps it as {path.name}.old"
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        found = dict(content["settings"]) if content["format"] == FORMAT else None
    except PermissionError as error:
        raise ExampleError(f"can't read {path}: {error.strerror}") from None
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ExampleError(f"{path} is damaged ({said[0][:120]}){hint}") from None
    if found is None:
        raise ExampleError(f"{path} has another format than {FORMAT}{hint}")
    other = [
        f"{name} {found.get(name)!r} instead of {settings.get(name)!r}"
        for name in sorted({*found, *settings})
        if found.get(name) != settings.get(name)
    ]
    if other:
        raise ExampleError(f"{path} belongs to another training ({', '.join(other)}): choose another --name{hint}")
    return dict(content)


def set_aside(path: Path) -> None:
    """Keeps an old checkpoint under another name."""
    if path.exists():
        path.replace(path.with_name(path.name + ".old"))
