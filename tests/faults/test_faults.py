"""Each broken machine, given to a container of the real image, is named in the first paragraph of verify."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuyard.catalogue.table import Catalogue
from tests.containers import Outcome
from tests.faults.conftest import VerifyWith, finding
from tests.faults.faults import FAULTS, PLUGIN, Fault

pytestmark = [pytest.mark.image, pytest.mark.full]
CHAIN = ("verify", "--only", "loader-path,driver")


def opening(outcome: Outcome) -> str:
    """The first paragraph of the report, as one line."""
    return " ".join(outcome.stdout.split("\n\n")[0].split())


def owners(report: dict[str, Any]) -> dict[str, str]:
    """Who has to act on each check that failed, or that a failure blocks."""
    found = report["findings"]
    return {f["check"]: f["owner"] for f in found if f["status"] == "fail" or f["data"].get("blocked_by")}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_first_paragraph_names_link_cause_owner_and_repair(with_fault: VerifyWith, fault: Fault) -> None:
    """Cause, owner and remedy together, in the report and in its first paragraph; exit code 1.

    Whatever else fails or is blocked by it has the same owner.
    """
    outcome = with_fault(fault.name, *CHAIN, "--json", "-")
    assert outcome.code == 1, outcome.stdout
    report = json.loads(outcome.stdout)
    first = finding(outcome, fault.first)
    assert (first["status"], first["owner"]) == ("fail", fault.owner.value)
    assert [words for words in fault.words if words not in first["observed"]] == [], first
    assert [words for words in fault.remedy if words not in first["remedy"]] == [], first
    text = report["result"]["verdict"]
    assert text.startswith(f"The first broken link is {fault.first}: {first['observed']}"), text
    assert text.index("Expected: ") < text.index(f"Whose it is: {fault.owner.value}.") < text.index("What to do: ")
    assert first["remedy"] in text
    assert {name: owner for name, owner in owners(report).items() if owner != fault.owner.value} == {}


def test_a_driver_without_a_fault_passes(with_fault: VerifyWith) -> None:
    """The good case of all of them: the same stand-ins, nothing wrong."""
    outcome = with_fault("whole", *CHAIN)
    assert outcome.code == 0, outcome.stdout
    assert opening(outcome) == "All 9 required checks passed."


def test_the_remedy_for_a_driver_in_another_folder_works(with_fault: VerifyWith) -> None:
    """What verify says to set makes the whole chain pass."""
    outcome = with_fault("driver-folder", *CHAIN, environment={"LD_LIBRARY_PATH": PLUGIN})
    assert outcome.code == 0, outcome.stdout


def test_an_old_driver_is_told_which_tags_it_can_run(with_fault: VerifyWith, table: Catalogue) -> None:
    """An image of a newer CUDA major: the CUDA level in words, the driver to upgrade to, this image's own tag."""
    own = table.line[table.default_line]
    claims = json.dumps({"versions": {"cuda": "99.8"}})
    script = f"echo '{claims}' > /tmp/image.json; GPUYARD_IMAGE_JSON=/tmp/image.json verify --only cuda-level --json -"
    level = int(own.cuda.split(".")[0]) * 1000 + 40
    outcome = with_fault(f"level-{level}", "sh", "-c", script)
    found = finding(outcome, "cuda-level")
    assert found["status"] == "fail"
    assert f"up to {own.cuda.split('.')[0]}.4" in found["observed"]
    assert f"found version {level}" in found["observed"]
    assert f":v{table.default_line}" in found["remedy"]


def test_the_default_profile_opens_with_the_fault_and_blocks_what_rests_on_it(with_fault: VerifyWith) -> None:
    """The whole suite on a machine with error 804: one broken link, the GPU's other checks blocked by it."""
    outcome = with_fault("804", "verify", "--level", "gpu", "--json", "-", timeout=300, shm_size="1g")
    report = json.loads(outcome.stdout)
    assert report["result"]["verdict"].startswith("The first broken link is cuda-init: cuInit answers 804")
    assert "Whose it is: host." in report["result"]["verdict"]
    blocked = {f["check"] for f in report["findings"] if f["observed"] == "blocked by cuda-init"}
    assert {"torch-cuda", "matmul-gpu", "train-rnn-gpu"} <= blocked
    assert [f["check"] for f in report["findings"] if f["status"] == "fail" and f["required"]] == ["cuda-init"]
