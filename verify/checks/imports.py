"""The packages people start with can be imported: one broken compiled part shows here, not in the first notebook."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Dict, List

from verify.checks.common import failed, listed, passed, skipped
from verify.checks.packages import FRESH, installed
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict

MODULES = {
    "pandas": "pandas",
    "scikit-learn": "sklearn.linear_model",
    "matplotlib": "matplotlib.figure",
    "pillow": "PIL.Image",
    "pyarrow": "pyarrow",
    "transformers": "transformers",
    "accelerate": "accelerate.state",
    "ipykernel": "ipykernel",
}
"""Distribution to the module that loads its compiled parts."""
EXPECTED = "every one of them that is installed can be imported"


def probe() -> Facts:
    """Import each in turn, in a child that has torch already, and keep what goes wrong and what is warned of."""
    here = [name for name in MODULES if name in installed()]
    return {"imported": {name: _import(MODULES[name]) for name in here}}


def _import(module: str) -> Dict[str, Any]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        try:
            importlib.import_module(module)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0], "warnings": []}
    loud = [w for w in heard if not issubclass(w.category, (DeprecationWarning, PendingDeprecationWarning))]
    return {"error": "", "warnings": [str(w.message).splitlines()[0] for w in loud if str(w.message)]}


def evaluate(facts: Facts, _claims: Claims) -> Verdict:
    """Pass if all came; warnings are shown, because the first of them is often the reason for the next failure."""
    imported: Dict[str, Dict[str, Any]] = facts["imported"]
    if not imported:
        return skipped(f"none of {listed(MODULES, len(MODULES))} is installed")
    broken = [f"{name} ({result['error']})" for name, result in imported.items() if result["error"]]
    if broken:
        remedy = f"put the locked versions back (verify --only lock names them), {FRESH}"
        return failed(f"cannot be imported: {listed(broken)}", EXPECTED, remedy, Owner.IMAGE)
    heard = [f"{name}: {text}" for name, result in imported.items() for text in result["warnings"]]
    note = f"; warned: {listed(heard, 2)}" if heard else ""
    return passed(f"{len(imported)} packages: {listed(imported, len(imported))}{note}", EXPECTED)


CHECKS: List[Check] = [
    Check(
        "imports",
        "libraries",
        Level.CPU,
        "The packages people start with import",
        probe,
        evaluate,
        isolation=Isolation.TORCH,
        timeout=120.0,
    )
]
