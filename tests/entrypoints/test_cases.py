"""The public reports about containers in use, and the test of each: what the running container decides.

The ids are those of the project's collection: E limits, G SSH and PID 1, H Jupyter, users and volumes, I Compose.
"""

from __future__ import annotations

import importlib

import pytest

CASES: dict[str, tuple[str, ...]] = {
    "E66 too few open files": ("test_long_running::test_the_soft_limit_of_open_files_is_raised",),
    "E69 memory runs out": ("test_long_running::test_a_kernel_that_eats_all_memory_goes_alone_and_is_told",),
    "G80 SSH sessions lack the environment": (
        "test_one_environment::test_every_way_in_sees_the_same_values",
        "test_one_environment::test_no_value_was_executed_on_the_way",
        "test_one_environment::test_no_way_in_is_told_a_secret_or_a_name_more",
    ),
    "G81 one host key for all": ("ssh.test_logins::test_host_keys_on_a_volume_outlive_the_container",),
    "G82 another host key at each start": (
        "ssh.test_logins::test_host_keys_on_a_volume_outlive_the_container",
        "ssh.test_logins::test_the_host_key_in_the_log_is_the_one_that_clients_see",
        "ssh.test_logins::test_a_read_only_folder_for_host_keys_is_refused_unless_it_holds_one",
    ),
    "G83 a mounted key of the wrong owner or mode": (
        "ssh.test_logins::test_a_mounted_key_file_of_any_owner_and_mode_works",
        "ssh.test_logins::test_a_key_file_that_cannot_be_read_is_refused_with_the_ways_out",
        "test_modes::test_a_key_file_that_is_a_folder_is_refused",
    ),
    "G85 no folder for sshd under a tmpfs at /run": (
        "services.test_services_running::test_services_run_under_hard_limits",
    ),
    "G86 PAM ends the session": ("ssh.test_daemon::test_only_keys_of_one_user_are_taken_on_both_ports",),
    "G87 a command turns services off in silence": (
        "test_modes::test_a_command_with_a_key_starts_no_service",
        "services.test_services_running::test_services_beside_a_command_end_with_it",
    ),
    "G89 a banner on standard output": ("test_modes::test_standard_output_belongs_to_the_command",),
    "H90 no login, or a known one": (
        "services.test_services_running::test_the_url_in_the_log_logs_in_and_nothing_else_does",
        "test_bad_starts::test_a_bad_start_is_one_line_and_a_code",
        "jupyter.test_login::test_the_users_settings_count_but_never_open_the_server",
    ),
    "H91 the documented login does not work": (
        "jupyter.test_login::test_a_password_logs_in_by_its_hash",
        "jupyter.test_browser::test_a_token_logs_in",
    ),
    "H92 a mount that can't be saved to": (
        "user.test_user_modes::test_a_mount_of_someone_else_gets_one_line",
        "services.test_services_running::test_a_workspace_of_someone_else_is_told_and_left_alone",
        "test_hard_places::test_a_workspace_that_cannot_be_written_to_is_told_before_the_services",
    ),
    "H93 the uid is taken": ("test_bad_starts::test_a_bad_start_is_one_line_and_a_code",),
    "H94 the start deletes or changes mounted files": (
        "user.test_user_modes::test_no_mode_touches_what_was_mounted",
        "user.test_user_modes::test_services_touch_nothing_either",
    ),
    "H95 another PATH after the change of user": (
        "user.test_user_modes::test_every_kind_of_mode_has_a_name_and_a_home",
        "user.test_user_modes::test_a_container_that_became_someone_else_is_healthy_and_starts_again",
        "test_one_environment::test_there_is_one_python_everywhere",
    ),
    "H97 a proxy without upgrade headers": (
        "jupyter.test_proxy::test_a_kernel_is_reached_behind_a_proxy_under_a_path",
        "jupyter.test_proxy::test_without_the_upgrade_lines_no_kernel_is_reached",
        "jupyter.test_proxy::test_only_the_named_origins_reach_a_kernel",
    ),
    "H98 Jupyter as root": (
        "test_bad_starts::test_a_bad_start_is_one_line_and_a_code",
        "services.test_services_running::test_everything_of_ours_runs_as_the_user",
    ),
    "H100 caches that can't be written to": (
        "test_modes::test_any_user_id_has_a_home_and_a_name",
        "additions.test_additions_in_container::test_one_folder_on_a_volume_holds_every_cache",
        "test_hard_places::test_folders_of_roots_in_a_home_stop_nothing",
    ),
    "H102 the kernel is another Python": ("test_one_environment::test_there_is_one_python_everywhere",),
    "I106 a company's certificates": (
        "additions.test_additions_in_container::test_a_companys_certificates_are_trusted_by_every_client",
    ),
}
ELSEWHERE = {
    "E62": "a check of the suite: shm-size, shm-dataloader",
    "E63": "a check of the suite: shm-size",
    "E65": "a check of the suite: shm-type",
    "E67": "a check of the suite: limit-memlock",
    "E71": "a check of the suite: threads",
    "H104": "the suite's training steps run twice and are compared",
    "I105": "tests/compose",
    "I107": "builds: the index that answers with a page",
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_a_test_that_exists(case: str) -> None:
    """A test that was renamed or dropped leaves no case behind."""
    for named in CASES[case]:
        module, _, function = named.partition("::")
        assert hasattr(importlib.import_module(f"tests.entrypoints.{module}"), function), named


def test_no_case_of_these_sections_is_left_out() -> None:
    """As the collection numbers them."""
    numbers = {
        *(f"E{number}" for number in (62, 63, 65, 66, 67, 69, 71)),
        *(f"G{number}" for number in (80, 81, 82, 83, 85, 86, 87, 89)),
        *(f"H{number}" for number in (90, 91, 92, 93, 94, 95, 97, 98, 100, 102, 104)),
        *(f"I{number}" for number in (105, 106, 107)),
    }
    assert {case.split()[0] for case in CASES} | set(ELSEWHERE) == numbers
