"""The holes that others have had, each by its public name, with the tests that keep ours shut."""

from typing import Final

_GUARD: Final = "permissions/test_holes.py"
_TRUST: Final = "permissions/test_project_trust.py"
_SANDBOX: Final = "permissions/test_command_wrapper.py"
_AGENT: Final = "agent/test_known_vulnerabilities.py"
_SERVER: Final = "llm/testserver/test_server_http.py"
_REBINDING: Final = (
    f"{_SERVER}::test_a_page_that_had_its_name_point_here_gets_nothing",
    "web/test_auth.py::test_a_name_from_elsewhere_gets_nothing",
)
_XSS: Final = "security/test_xss.py"
_SCRIPTS: Final = (
    f"{_XSS}::test_every_element_of_some_of_all_pages_is_one_of_ours",
    f"{_XSS}::test_every_kind_of_element_runs_asks_for_and_breaks_nothing",
    f"{_XSS}::test_no_page_runs_asks_for_or_breaks_anything",
)
_POLICY: Final = "web/test_auth.py::test_no_answer_lets_a_page_run_a_script_of_its_own"
_ESCAPES: Final = (f"{_AGENT}::test_what_acts_on_a_terminal_reaches_none",)
_CHANGES: Final = ("store/test_watcher.py::test_very_many_changes_at_once_lead_to_a_look_at_everything",)
_KEYS: Final = (
    "cli/commands/test_chat.py::test_programs_do_not_see_the_key_and_a_change_of_folder_is_recorded",
    f"{_AGENT}::test_programs_see_no_key_whatever_it_is_called",
)

# Commands, paths, links, trust: what the guard is for.
COMMANDS: Final = {
    "CVE-2025-54795": f"{_GUARD}::test_cve_2025_54795_echo_does_not_carry_other_commands",
    "CVE-2025-58764": f"{_GUARD}::test_cve_2025_58764_rg_does_not_run_a_preprocessor",
    "CVE-2025-66032": f"{_GUARD}::test_cve_2025_66032_reading_commands_neither_write_nor_run",
    "CVE-2025-64755": f"{_GUARD}::test_cve_2025_64755_sed_does_not_write_or_run",
    "claude-code#4956": f"{_GUARD}::test_issue_4956_a_prefix_rule_does_not_allow_what_rides_along",
    "claude-code#28784": f"{_GUARD}::test_issue_28784_a_rule_for_cd_does_not_allow_what_follows",
    "claude-code#58424": (f"{_GUARD}::test_issue_58424_a_deny_rule_holds_in_every_part_of_a_compound"),
    "claude-code#86667": f"{_GUARD}::test_issue_86667_a_deny_rule_is_not_evaded_by_a_wrapper",
    "more than 50 commands": (f"{_GUARD}::test_more_than_fifty_commands_do_not_outrun_the_deny_rules"),
}
PLACES: Final = {
    "CVE-2025-54794": (f"{_GUARD}::test_cve_2025_54794_a_folder_is_not_one_whose_name_begins_alike",),
    "CVE-2026-25724": (
        f"{_GUARD}::test_cve_2026_25724_a_deny_rule_sees_through_links",
        f"{_AGENT}::test_cve_2026_25724_a_tool_reads_no_denied_file_through_a_link",
    ),
    "CVE-2026-39861": (
        f"{_GUARD}::test_cve_2026_39861_a_planted_link_does_not_lead_writers_outside",
        "agent/test_swapped_files.py::test_a_link_that_comes_after_the_consent_is_not_followed",
        "agent/test_swapped_files.py::test_nobody_wins_the_race_between_the_look_and_the_opening",
    ),
    "CVE-2026-46406": (
        f"{_GUARD}::test_cve_2026_46406_a_fixed_place_in_tmp_is_outside",
        f"{_AGENT}::test_cve_2026_46406_what_is_put_aside_is_private_and_has_no_fixed_name",
    ),
    "CVE-2026-50549": (f"{_AGENT}::test_cve_2026_50549_no_link_of_a_project_leads_an_edit_outside",),
    "CVE-2026-103916": (f"{_AGENT}::test_cve_2026_103916_a_confined_command_makes_no_link_to_write_through",),
    "CVE-2026-27976": (f"{_AGENT}::test_cve_2026_27976_2007_4559_2025_4517_nothing_is_unpacked",),
    "CVE-2007-4559": (f"{_AGENT}::test_cve_2026_27976_2007_4559_2025_4517_nothing_is_unpacked",),
    "CVE-2025-4517": (f"{_AGENT}::test_cve_2026_27976_2007_4559_2025_4517_nothing_is_unpacked",),
    "claude-task-viewer#24": (f"{_AGENT}::test_names_of_tasks_sessions_and_calls_are_no_paths",),
    "cortex session_id": (f"{_AGENT}::test_names_of_tasks_sessions_and_calls_are_no_paths",),
    "devika snapshots": (f"{_AGENT}::test_names_of_tasks_sessions_and_calls_are_no_paths",),
    "GHSA-hrw6": (f"{_AGENT}::test_names_of_tasks_sessions_and_calls_are_no_paths",),
}
TRUST: Final = {
    "CVE-2025-59828": (
        f"{_TRUST}::test_cve_2025_65099_and_59828_nothing_of_a_project_runs_before_trust",
        f"{_AGENT}::test_cve_2025_59828_65099_59536_a_hostile_project_runs_nothing_at_the_start",
    ),
    "CVE-2025-65099": (
        f"{_TRUST}::test_cve_2025_65099_and_59828_nothing_of_a_project_runs_before_trust",
        f"{_AGENT}::test_cve_2025_59828_65099_59536_a_hostile_project_runs_nothing_at_the_start",
    ),
    "CVE-2025-59536": (
        f"{_TRUST}::test_cve_2025_59536_project_hooks_do_nothing_before_trust",
        f"{_AGENT}::test_cve_2025_59828_65099_59536_a_hostile_project_runs_nothing_at_the_start",
    ),
    "GHSA-j4h9": (f"{_AGENT}::test_cve_2025_59828_65099_59536_a_hostile_project_runs_nothing_at_the_start",),
    "CVE-2026-21852": (
        f"{_TRUST}::test_cve_2026_21852_the_base_url_and_key_never_come_from_a_project",
        f"{_AGENT}::test_cve_2026_21852_the_key_goes_nowhere_that_a_project_names",
    ),
    "CVE-2025-61260": (
        f"{_TRUST}::test_cve_2025_61260_a_project_does_not_move_our_folders_or_choose_programs",
        f"{_AGENT}::test_cve_2025_61260_no_env_file_of_a_project_is_read",
    ),
    "CVE-2026-25725": (
        f"{_SANDBOX}::test_cve_2026_25725_settings_that_are_not_there_yet_are_kept_from_being_made",
        f"{_GUARD}::test_protected_places_ask_in_every_mode_even_if_not_there_yet",
    ),
    "--settings inside --prefill": (f"{_AGENT}::test_flags_inside_of_a_prompt_are_words",),
}
# Servers, screens, files: what other rooms answer for.
ELSEWHERE: Final = {
    "CVE-2025-49596": _REBINDING,
    "CVE-2025-66414": _REBINDING,
    "CVE-2025-66416": _REBINDING,
    "agentmemory#294": _REBINDING,
    "GHSA-x4q8": _REBINDING,
    "OpenHands#1219": _REBINDING,
    "any address": (f"{_SERVER}::test_only_loopback_is_listened_on", *_REBINDING),
    "hermes-webui#3495": (f"{_SERVER}::test_cve_2025_52882_no_page_of_any_origin_is_answered",),
    "CVE-2025-52882": (f"{_SERVER}::test_cve_2025_52882_no_page_of_any_origin_is_answered",),
    "CVE-2026-40864": (f"{_SERVER}::test_cve_2026_40864_the_site_counts_and_not_the_mode_of_a_request",),
    "git sideband": _ESCAPES,
    "kubectl#101695": _ESCAPES,
    "kubectl#107617": _ESCAPES,
    "CVE-2025-58160": _ESCAPES,
    "CVE-2024-58251": _ESCAPES,
    "GHSA-34r5": _ESCAPES,
    "cqs#1341": _ESCAPES,
    "solana#20495": _ESCAPES,
    "vibe MarkupError": _ESCAPES,
    "claude-code#63593": _KEYS,
    "claude-code#71654": _KEYS,
    "claude-code#58043": _KEYS,
    "claude-code#18223": _KEYS,
    "claude-code#59094": _KEYS,
    "CWE-1236": ("sanitize/test_csv.py::test_a_cell_that_begins_like_a_formula_is_none",),
    "CVE-2024-27454": (f"{_AGENT}::test_cve_2024_27454_depth_exhausts_no_reader",),
    "GHSA-hx9q": (f"{_AGENT}::test_cve_2024_27454_depth_exhausts_no_reader",),
    "claude-code#20992": (f"{_AGENT}::test_issue_20992_a_long_chain_exhausts_no_reader",),
    "watchdog#654": _CHANGES,
    "watchfiles#348": _CHANGES,
    "rsyslog#6901": _CHANGES,
}
# Scripts in pages that are made of sessions.
PAGES: Final = dict.fromkeys(
    ("claude-code-transcripts#104", "claude-code-log#244", "clawmetry#2958", "pi#3531", "gajae-code#1737"), _SCRIPTS
) | {"nbconvert without CSP": (*_SCRIPTS, _POLICY)}
EVERY: Final = """
claude-code-transcripts#104, claude-code-log#244, clawmetry#2958, pi#3531, gajae-code#1737,
nbconvert without CSP, CVE-2025-49596, CVE-2025-66414, CVE-2025-66416, CVE-2025-52882,
hermes-webui#3495, agentmemory#294, GHSA-x4q8, OpenHands#1219, any address, CVE-2026-40864,
claude-task-viewer#24, cortex session_id, devika snapshots, GHSA-hrw6, CVE-2026-25724,
CVE-2026-39861, CVE-2026-46406, CVE-2026-50549, CVE-2026-103916, CVE-2026-27976, CVE-2025-54794,
CVE-2025-54795, CVE-2025-58764, CVE-2025-66032, CVE-2025-64755, claude-code#4956,
claude-code#28784, claude-code#58424, more than 50 commands, claude-code#86667, CVE-2025-59828,
CVE-2025-65099, CVE-2025-59536, CVE-2026-21852, GHSA-j4h9, CVE-2025-61260, CVE-2026-25725,
--settings inside --prefill, git sideband, kubectl#101695, kubectl#107617, CVE-2025-58160,
CVE-2024-58251, GHSA-34r5, cqs#1341, solana#20495, vibe MarkupError, claude-code#63593,
claude-code#71654, claude-code#58043, claude-code#18223, claude-code#59094, CWE-1236,
CVE-2007-4559, CVE-2025-4517, CVE-2024-27454, GHSA-hx9q, claude-code#20992, watchdog#654,
watchfiles#348, rsyslog#6901
"""


def table() -> dict[str, tuple[str, ...]]:
    """Return every hole and its tests."""
    named = {hole: (test,) for hole, test in COMMANDS.items()}
    return {**named, **PLACES, **TRUST, **ELSEWHERE, **PAGES}
