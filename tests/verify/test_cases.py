"""Every known way to break is covered or argued, and what is said to be shown is shown by a test that exists."""

from __future__ import annotations

import re

import pytest

from tests.verify.suite import ROOT, verify
from verify.cases import CASES, RECORDED, SIMULATED, UNTESTED, Case, cases_of
from verify.registry import CHECKS

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
DRIVER, GPU, IMAGE = (
    "verify/test_driver.py::test_",
    "verify/test_gpu_checks.py::test_",
    "verify/test_image_checks.py::test_",
)
START, RANKS, NATIVE = (
    "verify/test_container_checks.py::test_",
    "verify/test_distributed.py::test_",
    "verify/test_native.py::test_",
)
SHOWN = {
    **dict.fromkeys(re.findall(r"\w+", "A2 A3 A5 A7 A10 A11 A12 A13 A19"), FAULTS),
    "A1": "run/test_preflight.py::test_the_first_missing_piece",
    "A6": DRIVER + "the_cuda_level_is_compared",
    "A8": IMAGE + "driver_files_are_the_images",
    "A9": IMAGE + "driver_files_are_the_images",
    "A14": GPU + "a_gpu_without_code",
    "A16": CONTAINERS + "no_compiler_and_a_foreign_nvcc",
    "A17": "outside/test_host.py::test_an_engine_that_cannot_do_it",
    "A18": "run/test_preflight.py::test_another_kind_of_cdi_device",
    "A21": "verify/test_cli.py::test_a_required_gpu_that_is_not_here",
    **dict.fromkeys(re.findall(r"\w+", "B22 B24 B26 B30"), CONTAINERS + "a_swapped_torch_is_found"),
    "B23": "faults/test_any_image.py::test_a_swapped_torch_is_seen",
    "B25": IMAGE + "variables_that_lie",
    "B27": CONTAINERS + "a_second_cuda_major",
    "B28": IMAGE + "the_whole_lock",
    "B31": "verify/test_compute.py::test_wrong_values_fail",
    "B32": "verify/test_compute.py::test_wrong_values_fail",
    "B35": "verify/test_versions.py::test_local_parts_count",
    "C37": CONTAINERS + "decoys_are_named",
    "C38": CONTAINERS + "a_preloaded_library",
    "C39": CONTAINERS + "an_extension_for_another_cuda",
    **dict.fromkeys(re.findall(r"\w+", "C40 C48"), CONTAINERS + "a_second_nccl"),
    "C47": CONTAINERS + "a_second_cuda_major",
    "C44": NATIVE + "nvcc_is_told",
    "C45": CONTAINERS + "no_compiler_and_a_foreign_nvcc",
    "C46": NATIVE + "the_arch_list_to_export",
    "C51": NATIVE + "a_decoy_on_the_loaders_path",
    **dict.fromkeys(re.findall(r"\w+", "E62 E63"), CONTAINERS + "dockers_default_shared_memory"),
    "E65": START + "shared_memory_on_a_disk",
    "E66": CONTAINERS + "few_open_files",
    "E67": START + "a_low_limit",
    "E71": CONTAINERS + "an_old_hosts_seccomp",
    "F73": CONTAINERS + "a_hostname_on_the_loopback",
    "F74": RANKS + "ncclis_choice_of_interface",
    "F75": RANKS + "ipv6_noise",
    "F76": RANKS + "a_hang_that_ends_without_p2p",
    "F77": RANKS + "a_rank_without_its_gpu",
    "F78": CONTAINERS + "tuning_variables",
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
    """The file has a test of that name; what is simulated is not judged from recorded facts alone."""
    file, _, name = SHOWN[case.id].partition("::")
    assert re.search(rf"^def {name}", (ROOT / "tests" / file).read_text(), re.MULTILINE), SHOWN[case.id]


def test_checks_carry_their_cases_and_the_table_is_printed() -> None:
    """``--list --cases`` shows every id, and explain names those of a check."""
    assert next(check for check in CHECKS if check.id == "cuda-init").cases == cases_of("cuda-init")
    printed = verify("--list", "--cases").stdout
    assert [line.split()[0] for line in printed.splitlines()[: len(IDS)]] == IDS
    assert "left out" in printed
    assert "Cases: " in verify("explain", "cuda-init").stdout
