"""What the installed torch says of itself in its files, read without importing it."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any, Dict, List


def torch_folders(search: List[str]) -> List[str]:
    """Every folder on the search path that holds a torch package."""
    found = [Path(entry or ".") / "torch" for entry in search]
    return sorted({str(folder.resolve()) for folder in found if (folder / "__init__.py").exists()})


def torch_version_file() -> Dict[str, Any]:
    """The plain assignments in torch/version.py (__version__, cuda, ...), empty without torch."""
    spec = importlib.util.find_spec("torch") if "torch" not in sys.modules else sys.modules["torch"].__spec__
    for folder in (spec.submodule_search_locations if spec else None) or []:
        file = Path(folder) / "version.py"
        if file.exists():
            return _assignments(file.read_text())
    return {}


def _assignments(text: str) -> Dict[str, Any]:
    values: Dict[str, Any] = {}
    for node in ast.parse(text).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            values[target.id] = value.value
    return values


def built_for_cuda() -> str:
    """The CUDA version torch was built for, empty for a CPU build or without torch."""
    return str(torch_version_file().get("cuda") or "")
