"""The packages people start with can be imported: one broken compiled part shows here, not in the first notebook."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import asdict
from functools import partial
from typing import Any, Dict, List, Sequence

from verify import remedies
from verify.checks.image.installed import installed
from verify.checks.image.packages import FRESH
from verify.engine.isolate import run_forked
from verify.engine.ranks import run_ranks, troubles
from verify.engine.torchhost import uncollected
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, listed, passed, skipped

MODULES = {
    "pandas": "pandas",
    "scikit-learn": "sklearn.linear_model",
    "matplotlib": "matplotlib.figure",
    "pillow": "PIL.Image",
    "transformers": "transformers",
    "pyarrow": "pyarrow",
    "accelerate": "accelerate.state",
    "ipykernel": "ipykernel",
}
"""Each distribution with the module that loads its compiled parts; two children import every other one each."""
SIDES = 2
TIMEOUT, ALONE = 50.0, 15.0
EXPECTED = "every one of them that is installed can be imported"


def probe() -> Facts:
    """Import them in two children that have torch already, side by side, and keep errors and warnings."""
    have = installed()
    here = [name for name in MODULES if name in have]
    imported: Dict[str, Dict[str, Any]] = {}
    for side, outcome in enumerate(run_ranks(partial(_share, here), SIDES, TIMEOUT)):
        imported.update(outcome["facts"] or {name: _alone(name) for name in here[side::SIDES]})
    return {"imported": {name: imported[name] for name in here}}


def _share(names: Sequence[str], side: int, sides: int, _port: int) -> Dict[str, Any]:
    with uncollected():
        return {name: _import(MODULES[name]) for name in names[side::sides]}


def _alone(name: str) -> Dict[str, Any]:
    """One import by itself, to find out which of them killed its side."""
    outcome = run_forked(partial(_import, MODULES[name]), ALONE)
    if outcome.facts is not None:
        return outcome.facts
    return {"error": troubles([asdict(outcome)])[0][0].replace("rank 0", "the import"), "warnings": []}


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
    """Pass if all can be imported; warnings are shown, because one of them often explains the next failure."""
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
        id="imports",
        explained_by=("decoys", "lock", "user-site"),
        group="libraries",
        level=Level.CPU,
        title="The packages people start with import",
        probe=probe,
        evaluate=evaluate,
        isolation=Isolation.TORCH,
        timeout=120.0,
        why="A package whose compiled part is broken, or built for another NumPy, fails in the first notebook.",
        repairs=(remedies.LOCKED, remedies.FRESH),
        package="pandas",
    ),
]
