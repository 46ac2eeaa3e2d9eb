"""Every known way to break is covered or argued, and what is said to be shown is shown by a test that exists."""

from __future__ import annotations

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from gpuyard.catalogue.table import Release
from tests.verify.suite import ROOT, verify
from verify.cases import CASES, RECORDED, SIMULATED, UNTESTED, Case, cases_of
from verify.engine.registry import CHECKS

IDS = re.findall(
    r"\w+",
    """
A1 A2 A3 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A16 A17 A18 A19 A21
B22 B23 B24 B25 B26 B27 B28 B29 B30 B31 B32 B33 B34 B35
C37 C38 C39 C40 C41 C42 C44 C45 C46 C47 C48 C49 C50 C51
E62 E63 E65 E66 E67 E69 E71 F73 F74 F75 F76 F77 F78 F79
""",
)
FAULTS, CONTAINERS = "faults/test_faults.py::test_the_first_paragraph_names", "faults/test_containers.py::test_"
BROKEN, SWAPS = "faults/test_start.py::test_", "faults/test_swaps.py::test_"
INSTALLS = "images/test_user_installs.py::test_"
DRIVER, GPU = "verify/checks/test_driver.py::test_", "verify/checks/test_gpu.py::test_"
RANKS = "verify/checks/test_distributed.py::test_"
IN_A_CONTAINER = ("faults/", "images/")
PREVENTED = {
    "B29": "image/test_build.py::test_arm64_is_refused",
    "B33": "verify/test_cases.py::test_a_nightly_is_no_release",
    "B34": "catalogue/test_table.py::test_an_impossible_combination",
    "C41": BROKEN + "no_cuda_package_comes_by_apt",
    "C42": BROKEN + "no_cuda_package_comes_by_apt",
    "C49": "layers/test_wheels.py::test_two_wheels_with_one_path",
}
"""Cases that no check sees, because they cannot happen here: the test that they cannot."""
NATURAL = {
    "A21": "the whole command on a machine without a GPU",
    "F76": "real ranks, of which one hangs",
}
"""Cases called simulated whose fault reaches the suite without a container."""
SHOWN = {
    **dict.fromkeys(re.findall(r"\w+", "A2 A3 A5 A7 A10 A11 A12 A19"), FAULTS),
    "A1": "engine/test_preflight.py::test_the_first_missing_piece",
    "A6": DRIVER + "the_cuda_level_is_compared",
    "A8": BROKEN + "driver_files_in_the_image",
    "A9": BROKEN + "driver_files_in_the_image",
    "A13": BROKEN + "a_kernel_module_of_another_version",
    "A14": GPU + "a_gpu_without_code",
    "A16": CONTAINERS + "no_compiler_and_a_foreign_nvcc",
    "A17": "acceptance/test_host.py::test_an_engine_that_cannot_do_it",
    "A18": "engine/test_preflight.py::test_another_kind_of_cdi_device",
    "A21": "verify/engine/test_early.py::test_it_takes_a_moment",
    "B22": SWAPS + "a_tag_that_says_another_torch",
    "B23": INSTALLS + "a_cpu_build_is_named",
    "B24": SWAPS + "a_torch_that_a_later_build_step_installed",
    "B25": INSTALLS + "variables_and_paths_that_lie",
    "B26": SWAPS + "a_torch_that_a_later_build_step_installed",
    "B27": CONTAINERS + "a_second_cuda_major",
    "B28": INSTALLS + "the_same_lock_gives_the_same_packages",
    "B30": SWAPS + "a_torch_that_uv_run_synchronised",
    "B31": SWAPS + "a_torchvision_of_another_torch",
    "B32": SWAPS + "a_numpy_that_torch_cannot_use",
    "B35": "verify/test_versions.py::test_local_parts_count",
    "C37": CONTAINERS + "decoys_are_named",
    "C38": CONTAINERS + "a_preloaded_library",
    "C39": CONTAINERS + "an_extension_for_another_cuda",
    **dict.fromkeys(re.findall(r"\w+", "C40 C48"), CONTAINERS + "a_second_nccl"),
    "C44": BROKEN + "a_runtime_image_says",
    "C45": CONTAINERS + "no_compiler_and_a_foreign_nvcc",
    "C46": BROKEN + "a_runtime_image_says",
    "C47": CONTAINERS + "a_second_cuda_major",
    "C50": BROKEN + "a_package_without_its_system_library",
    "C51": BROKEN + "an_older_libstdcxx_first",
    "E62": CONTAINERS + "dockers_default_shared_memory",
    "E63": BROKEN + "small_shared_memory_is_told_in_nccls_words",
    "E65": BROKEN + "shared_memory_on_a_disk",
    "E66": CONTAINERS + "few_open_files",
    "E67": BROKEN + "infiniband_without_lockable_memory",
    "E69": BROKEN + "a_process_killed_for_memory",
    "E71": CONTAINERS + "an_old_hosts_seccomp",
    "F73": CONTAINERS + "a_hostname_on_the_loopback",
    "F74": BROKEN + "the_interface_that_nccl_would_take",
    "F75": BROKEN + "ranks_meet_without_ipv6",
    "F76": RANKS + "a_hang_that_ends_without_p2p",
    "F77": RANKS + "a_rank_without_its_gpu",
    "F78": CONTAINERS + "tuning_variables",
    "F79": BROKEN + "refused_numa_calls",
}


def test_every_id_is_there_once() -> None:
    """In the order of the collection."""
    assert [case.id for case in CASES] == IDS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_is_covered_by_checks_that_exist_or_left_out_with_a_reason(case: Case) -> None:
    """Nothing is covered by a name, and nothing is left out in silence."""
    covered = case.checks or case.outside
    assert set(case.checks) <= {check.id for check in CHECKS}
    assert covered or case.note
    assert (case.shown in (SIMULATED, RECORDED, UNTESTED)) == bool(covered)


@pytest.mark.parametrize("case", [case for case in CASES if case.shown in (SIMULATED, RECORDED)], ids=lambda c: c.id)
def test_what_is_shown_is_shown_by_a_test(case: Case) -> None:
    """The file has a test of that name; what is called simulated is given to a container, or says why not."""
    file, _, name = SHOWN[case.id].partition("::")
    given = file.startswith(IN_A_CONTAINER) or case.id in NATURAL
    assert (case.shown == SIMULATED) == given, case.id
    assert re.search(rf"^def {name}", (ROOT / "tests" / file).read_text(), re.MULTILINE), SHOWN[case.id]


def test_what_is_left_out_is_prevented_and_a_test_shows_it() -> None:
    """Nothing is left out with an excuse alone."""
    assert set(PREVENTED) == {case.id for case in CASES if not case.shown}
    for place in PREVENTED.values():
        file, _, name = place.partition("::")
        assert re.search(rf"^def {name}", (ROOT / "tests" / file).read_text(), re.MULTILINE), place


@pytest.mark.parametrize("version", ["9.9.0.dev20300101", "9.9.0a0", "9.9.0rc1", "nightly"])
def test_a_nightly_is_no_release(version: str) -> None:
    """The catalogue takes nothing that its index deletes (B33)."""
    with pytest.raises(ValidationError):
        TypeAdapter(Release).validate_python(version)
    assert TypeAdapter(Release).validate_python("9.9.0") == "9.9.0"


def test_checks_carry_their_cases_and_the_table_is_printed() -> None:
    """``--list --cases`` shows every id, and explain names those of a check."""
    assert next(check for check in CHECKS if check.id == "cuda-init").cases == cases_of("cuda-init")
    printed = verify("--list", "--cases").stdout
    assert [line.split()[0] for line in printed.splitlines()[: len(IDS)]] == IDS
    assert "left out" in printed
    assert "Cases: " in verify("explain", "cuda-init").stdout
