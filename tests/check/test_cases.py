"""Every case that was put to real clients, and the errors and warnings that explain it."""

import json
from pathlib import Path
from typing import Final

import pytest
from tests.check.rule_findings import NAME, bad, look

from steno.check.evidence import Evidence
from steno.check.verdict import verdicts

CASES: Final[dict[str, set[str]]] = {
    "ai_title": set(),
    "all_sidechain": {"sidechain.all"},
    "api_error_msg": set(),
    "attachment_no_rendered": set(),
    "base_ok": set(),
    "blank_lines": set(),
    "branch_file_order": set(),
    "branch_interleaved": set(),
    "branch_lastprompt_mid": set(),
    "branch_longer_first": set(),
    "branch_second_ends_user": set(),
    "branch_summary_first": set(),
    "compact_child_of_leaf": set(),
    "compact_no_flag": set(),
    "compact_ok": set(),
    "consecutive_users": set(),
    "crlf": set(),
    "custom_title": set(),
    "cycle": {"chain.cycle"},
    "dangling_then_prompt": {"tools.unanswered"},
    "dangling_tool_last": {"tools.interrupted"},
    "drop_cwd": set(),
    "drop_message": {"fields.no-message"},
    "drop_message.content@user": {"message.no-content", "tools.unanswered"},
    "drop_message.id@assistant": {"message.no-id"},
    "drop_message.model@assistant": set(),
    "drop_message.role@user": set(),
    "drop_message.stop_reason@assistant": set(),
    "drop_parentUuid": {"chain.lost-parent", "chain.unreachable", "fields.no-parent"},
    "drop_sessionId": set(),
    "drop_timestamp": {"time.missing"},
    "drop_toolUseResult": set(),
    "drop_type": {"chain.empty", "fields.no-type"},
    "drop_userType": set(),
    "drop_uuid": {"fields.no-uuid"},
    "duplicate_result": {"tools.duplicate-result"},
    "empty_file": {"chain.empty"},
    "empty_text": {"message.empty-text"},
    "extra_fields": set(),
    "golden": set(),
    "golden_branch": set(),
    "golden_compact": set(),
    "leaf_is_turn_duration": set(),
    "local_cmd_user": set(),
    "meta_user": set(),
    "middle_record_missing": {"chain.dangling", "tools.unanswered"},
    "min_plus_ts": set(),
    "min_plus_ts_sid": set(),
    "missing_parent": {"chain.dangling"},
    "missing_parent_mid": {"chain.dangling"},
    "no_final_newline": set(),
    "numeric_ts": {"time.number"},
    "old_cwd": set(),
    "only_summary": {"chain.empty"},
    "orphan_result": {"tools.orphan-result"},
    "other_project_dir": set(),
    "out_of_order": set(),
    "parallel_chain": set(),
    "parallel_tree": set(),
    "parallel_tree3": set(),
    "same_req_diff_mid": set(),
    "seed000": set(),
    "seed001_s11": {"ids.file-name"},
    "seed001_s11_sid_mismatch": set(),
    "seed001_s11_uuid_sid": set(),
    "seed004": set(),
    "self_parent": {"chain.self-parent"},
    "sidechain_inline_end": set(),
    "thinking_last": {"message.thinking-only"},
    "thinking_nosig": {"message.unsigned-thinking"},
    "torn_last_nl": {"line.torn"},
    "torn_middle": {"line.torn"},
    "two_roots_then_first": set(),
    "ultra_min": {"time.missing"},
    "unknown_block": {"message.unknown-block"},
    "unknown_in_chain": set(),
    "unknown_types": set(),
    "x_lastprompt_unknown": set(),
    "x_null_fields": set(),
    "x_parent_branch_toolresult": set(),
    "x_queued_command": set(),
    "x_same_mid_noncontig": set(),
    "x_text_array": set(),
    "x_user_only": set(),
    "y_boundary_only_subtype": set(),
    "y_dead_end_attachment": set(),
    "y_interrupted": set(),
    "y_missing_decoy": {"chain.dangling"},
    "y_missing_ts_rev": {"chain.dangling", "chain.unreachable"},
    "y_two_lastprompts": set(),
}


def looked_at(shared: Path, case: str) -> Evidence:
    data = (shared / "corpus" / "resume-cases" / case / "before.jsonl").read_bytes()
    return look(data, "sess-001" if case == "seed001_s11" else NAME)


@pytest.mark.parametrize("case", CASES)
def test_a_case_gets_the_findings_that_explain_it(shared: Path, case: str) -> None:
    assert bad(looked_at(shared, case)) == CASES[case]


def test_every_case_is_listed(shared: Path) -> None:
    folder = shared / "corpus" / "resume-cases"
    assert set(CASES) == {path.name for path in folder.iterdir() if path.is_dir()}


@pytest.mark.parametrize("case", CASES)
def test_what_the_newest_client_does_not_send_has_a_finding(shared: Path, case: str) -> None:
    found = looked_at(shared, case)
    verdict = verdicts(found)[-1]
    expected = shared / "corpus" / "resume-cases" / case / "expected.json"
    refused = json.loads(expected.read_bytes())["2.1.325"]["msgs"] is None
    assert (verdict.outcome == "not at all") == refused
    if found.dialect != "claude":
        # Sound by its own description, which no client reads.
        return
    if verdict.outcome != "fully" or verdict.rejected:
        assert bad(found)
    if not bad(found):
        assert (verdict.outcome, verdict.rejected) == ("fully", "")
