"""The store: wheels and layers by SHA-256 in the user's cache folder, for all checkouts and lines.

A file under its final name is always complete: files are written under another name and renamed. A
killed run leaves parts that the next run resumes or replaces. Two runs may share a store.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuyard.errors import UserError, warn
from gpuyard.paths import cache_folder

CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Damaged(UserError):
    """Content of the store did not match its digest. It was removed, so the next try makes it again."""

    def __init__(self, message: str) -> None:
        super().__init__("store-damaged", message)


@dataclass(frozen=True)
class Store:
    """A folder of wheels (``wheels/SHA/NAME.whl``), blobs (``blobs/SHA``) and records about them."""

    folder: Path = field(default_factory=cache_folder)

    def wheel(self, sha: str) -> Path | None:
        """The wheel of that hash, or None. Its content is as it was stored; see ``intact``."""
        return next((self.folder / "wheels" / sha).glob("*.whl"), None)

    def wheel_place(self, sha: str, filename: str) -> Path:
        """Where a wheel of that hash and name belongs."""
        return self.folder / "wheels" / sha / filename

    def blob(self, digest: str) -> Path:
        """Where the blob of that digest (``sha256:…``) belongs, whether it is there or not."""
        return self.folder / "blobs" / digest.removeprefix("sha256:")

    def intact(self, path: Path, sha: str) -> bool:
        """Whether the file is there with exactly that content. A damaged one is removed, with a warning."""
        if not path.exists():
            return False
        if sha256_of(path) == sha.removeprefix("sha256:"):
            return True
        warn("store-damaged", f"{path.name} was damaged on disk and was removed; it is made or fetched again")
        path.unlink(missing_ok=True)
        return False

    def whole(self, digest: str, size: int) -> bool:
        """Whether the blob is there with that size; its content is checked where it is sent on."""
        try:
            return self.blob(digest).stat().st_size == size
        except OSError:
            return False

    def refuse_damaged(self, digests: Iterable[str]) -> None:
        """Raises Damaged, and removes them, if any of these blobs is not what its digest says."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            wanted = list(dict.fromkeys(digests))
            found = list(pool.map(lambda digest: self.intact(self.blob(digest), digest), wanted))
        if not all(found):
            raise Damaged(f"{found.count(False)} layers in {self.folder} were damaged and were removed: run it again")

    @contextlib.contextmanager
    def part(self) -> Iterator[Path]:
        """A new file for a blob, on the store's own disk; removed afterwards unless it was kept."""
        folder = self.folder / "parts"
        folder.mkdir(parents=True, exist_ok=True)
        remove_orphans(folder)
        handle, name = tempfile.mkstemp(dir=folder)
        path = Path(name)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield path
        finally:
            path.unlink(missing_ok=True)
            os.close(handle)

    def keep(self, part: Path, digest: str) -> Path:
        """Gives a finished part its final name."""
        place = self.blob(digest)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.link(part, part.with_suffix(".whole"))
        part.with_suffix(".whole").replace(place)
        return place

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Only one process at a time holds the lock ``name``; it ends with the process."""
        path = self.folder / "locks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def record(self, kind: str, key: str) -> dict[str, Any] | None:
        """The record of that kind and key, or None; an unreadable one counts as none."""
        try:
            found = json.loads((self.folder / kind / f"{key}.json").read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write_record(self, kind: str, key: str, data: dict[str, Any]) -> None:
        """Writes a record atomically."""
        path = self.folder / kind / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.part() as part:
            part.write_text(json.dumps(data))
            os.link(part, part.with_suffix(".whole"))
            part.with_suffix(".whole").replace(path)

    def forget(self, kind: str, key: str) -> None:
        """Removes a record."""
        (self.folder / kind / f"{key}.json").unlink(missing_ok=True)


def remove_orphans(folder: Path, seconds: float = 60) -> None:
    """Removes parts that no process holds locked and that are older than ``seconds``."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - path.stat().st_mtime > seconds:
                path.unlink()


def copy_whole(source: Path, target: Path) -> None:
    """Copies a file atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".copy")
    shutil.copyfile(source, part)
    part.replace(target)
