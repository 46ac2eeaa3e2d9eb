"""The schema takes what the suite writes and refuses what breaks the contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import verify.report
from tests.verify.report.sample import report

SCHEMA = json.loads((Path(verify.report.__file__).parent / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_itself_valid() -> None:
    """The file obeys JSON Schema 2020-12."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_report_of_the_suite_is_accepted_also_after_a_trip_through_json() -> None:
    """What the builder makes is what the schema describes."""
    VALIDATOR.validate(json.loads(json.dumps(report().to_dict(), allow_nan=False)))


def test_the_host_may_set_the_digest_and_add_outside_findings() -> None:
    """The host's version of a report is a report."""
    changed = report().to_dict()
    changed["digest"] = "sha256:" + "0f" * 32
    changed["findings"].append({**changed["findings"][0], "where": "outside"})
    VALIDATOR.validate(changed)


def _of(check: str, changed: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in changed["findings"] if row["check"] == check)
    return found


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another schema": lambda r: r.update(schema="gpuyard.verify/2"),
    "a missing key": lambda r: r.pop("host"),
    "an extra key": lambda r: r.update(extra=1),
    "a status that does not exist": lambda r: r["findings"][0].update(status="ok"),
    "a failure without a remedy": lambda r: _of("shm-size", r).update(remedy=""),
    "a failure without an owner": lambda r: _of("shm-size", r).update(owner=None),
    "an exit code that does not exist": lambda r: r["result"].update(exit_code=4),
    "a digest that is none": lambda r: r.update(digest="latest"),
    "a loss in words": lambda r: r["training"][0].update(loss=["low"]),
    "local time": lambda r: r.update(started="2031-01-02 03:04"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_report_is_refused(fault: str) -> None:
    """Each fault alone makes the report invalid."""
    changed = report().to_dict()
    BROKEN[fault](changed)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(changed)
