"""Rooms import downwards only: a room may use those named before it, and never one named after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from gpuyard import paths

ORDER = {
    "gpuyard": (
        *("errors", "paths", "process", "waiting", "progress", "indexes", "messages", "catalogue", "engine", "store"),
        *("packages", "layers", "image", "acceptance", "project", "render", "publish", "commands", "cli", "__main__"),
    ),
}
"""The rooms of each package, from the bottom up; a module of the package itself is a room of one file."""
MOST_ROOMS, MOST_FILES = 18, 20


def upward(package: str, root: Path) -> Iterator[str]:
    """Each import that points upwards, and each module that is in no room of the list."""
    order = ORDER[package]
    for file in sorted((root / package).rglob("*.py")):
        here = (*file.relative_to(root / package).with_suffix("").parts,)[0]
        if here == "__init__":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            for there in _rooms(node, package):
                if here not in order or there not in order or order.index(there) > order.index(here):
                    yield f"{file.relative_to(root)} imports {there}"


def _rooms(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return []
    return [name.split(".")[1] for name in names if name.startswith(f"{package}.")]


def test_no_room_imports_upwards() -> None:
    """The host's rooms, as they are."""
    assert list(upward("gpuyard", paths.ROOT)) == []


def test_an_upward_import_and_a_room_without_a_place_are_found(tmp_path: Path) -> None:
    """Planted: the store asks a command, and there is a room that nobody listed."""
    for name, text in (
        ("store/a.py", "from gpuyard.commands.using import run"),
        ("attic/b.py", "import gpuyard.store.a"),
    ):
        file = tmp_path / "gpuyard" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert list(upward("gpuyard", tmp_path)) == [
        "gpuyard/attic/b.py imports store",
        "gpuyard/store/a.py imports commands",
    ]


def test_rooms_are_few_and_no_folder_is_crowded() -> None:
    """At most 18 rooms on the host, at most 20 Python files in any folder of the project."""
    rooms = {file.parent for file in (paths.ROOT / "gpuyard").rglob("*.py")}
    assert len(rooms) <= MOST_ROOMS
    tops = ("gpuyard", "verify", "entrypoints", "tests", "images", "docker")
    folders = [file.parent for top in tops for file in (paths.ROOT / top).rglob("*.py") if "snippets" not in file.parts]
    assert {str(f.relative_to(paths.ROOT)) for f in set(folders) if folders.count(f) > MOST_FILES} == set()
