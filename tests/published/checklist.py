"""The checklist for clients in "Claude Code Session Protocol Schema", section 12, point by point.

For each: what it asks for in our words, what steno does, where that differs because the client
differs, and the tests that prove it. `tools/make_checklist_docs.py` writes the page from it.
"""

from typing import Final

import msgspec

__all__ = ["ITEMS", "SECTIONS", "Item"]

SECTIONS: Final = {
    "12.1": "Sessions",
    "12.2": "Writing messages",
    "12.3": "The API",
    "12.4": "Tools",
    "12.5": "Sub-agents",
    "12.6": "Context",
    "12.7": "Progress",
    "12.8": "Going on",
}
"""The sections, in our words."""
_PROTOCOL: Final = "tests/whole/test_protocol.py"
_AROUND: Final = "tests/whole/test_turn_records.py"
_FOLDERS: Final = "tests/format/test_slugs.py"
_FIELDS: Final = "tests/whole/test_written_fields.py"


class Item(msgspec.Struct, frozen=True):
    """One point of the checklist."""

    number: str
    asks: str
    """What it asks for."""
    does: str
    """What steno does."""
    tests: tuple[str, ...]
    """The tests that prove it, as pytest names them."""
    differs: str = ""
    """Where that is not what the document says, because the client does otherwise."""


def _own(*names: str) -> tuple[str, ...]:
    return tuple(f"{_PROTOCOL}::test_{name}" for name in names)


def _around(*names: str) -> tuple[str, ...]:
    return tuple(f"{_AROUND}::test_{name}" for name in names)


ITEMS: Final = (
    Item(
        "12.1.1",
        "a random UUID (version 4) for each new session",
        "a UUID version 4; `--session-id` may name one",
        _own("each_new_session_has_a_random_id_of_its_own"),
    ),
    Item(
        "12.1.2",
        "a file named for the session in the folder of its project",
        "`projects/<project>/<session>.jsonl` with mode 0600, made with the first record",
        _own("the_file_is_named_for_the_session_in_the_folder_of_its_project"),
    ),
    Item(
        "12.1.3",
        "the project's folder named for the working directory",
        "every character that is not an ASCII letter or digit becomes `-`; above 200 characters "
        "the name is cut and hashed",
        (
            f"{_FOLDERS}::test_a_long_path_ends_in_the_hash_that_javascript_computes",
            f"{_FOLDERS}::test_up_to_two_hundred_characters_nothing_is_cut",
        ),
        "the document replaces only `/` and drops the first `-`; the client keeps it",
    ),
    Item(
        "12.1.4",
        "a readable `slug`",
        "three words chosen by the session's id, or the first words of the prompt and two more; "
        "from the first compaction or plan on, kept when a session goes on, left out of forks; "
        "plan files are named after it",
        _around(
            "a_session_has_a_name_in_words_from_its_first_compaction_on",
            "a_session_that_begins_with_a_plan_is_named_by_its_prompt",
            "a_fork_begins_without_a_name_in_words_and_gets_its_own",
            "the_plan_file_has_the_name_of_the_session",
            "names_in_words_of_the_client_have_the_same_form",
        ),
        "the document has it on every record; 2.1.325 writes it only from a compaction or a plan "
        "on, as adjective, participle, noun",
    ),
    Item(
        "12.1.5",
        "folder, branch and version on each message",
        "`cwd`, `gitBranch` and `version` on every record; they follow when the work moves",
        _own("every_record_says_the_folder_the_branch_and_the_version"),
    ),
    Item(
        "12.2.1",
        "one line of JSON per message, only appended",
        "compact JSON, one record a line; nothing before the end of a file is ever changed",
        _own("each_record_is_one_line_of_compact_json", "a_file_only_grows_whatever_is_done"),
    ),
    Item(
        "12.2.2",
        "an id for each message",
        "a UUID version 4, unique in the file",
        _own("every_record_of_the_conversation_has_an_id_of_its_own"),
    ),
    Item(
        "12.2.3",
        "`parentUuid` names the message before; null for the first",
        "each record hangs on the one before it, results of parallel calls too; what a hook said "
        "before a call hangs beside",
        _own("each_record_hangs_on_the_one_before_it"),
        "2.1.29 and later hang parallel results each on its call; every client resumes both",
    ),
    Item(
        "12.2.4",
        "a `file-history-snapshot` around changes of files",
        "a snapshot at each prompt and a `file-history-delta` before a file is first changed; the "
        "content goes to `file-history/`",
        _own("what_a_file_was_is_kept_before_it_is_changed"),
        "the document puts content in the record; the client names a backup file",
    ),
    Item(
        "12.2.5",
        "times in ISO 8601",
        "UTC with milliseconds; they rise by one at least from record to record",
        _own("times_are_iso_and_rise"),
    ),
    Item(
        "12.3.1",
        "messages of user and assistant to the Messages API",
        "roles take turns, and every request streams",
        _own("messages_go_out_by_turns_of_user_and_assistant"),
    ),
    Item(
        "12.3.2",
        "definitions of the tools in the request",
        "name, description and schema of every tool, the same bytes in each request",
        _own("every_request_defines_the_tools", "every_tool_takes_the_keys_that_the_client_knows"),
    ),
    Item(
        "12.3.3",
        "a record for each content block of a streamed answer",
        "one record a block, numbered by `apiBlockIndex`, under one `message.id`",
        _own("each_block_of_a_streamed_answer_is_a_record"),
        "usage and stop reason stand on every one of them, as in 2.1.325; the document has the "
        "stop reason on the last only",
    ),
    Item(
        "12.3.4",
        "`requestId` the same on all blocks of an answer",
        "as the API's response names it, on each record of the answer",
        _own("records_of_one_answer_share_the_id_of_its_request"),
        "clients group by `message.id`; so does steno when it reads",
    ),
    Item(
        "12.3.5",
        "`stop_reason` decides whether tools run",
        "calls are made and the model is asked again; an answer that was too long goes on; "
        "everything else ends the turn",
        _own("why_an_answer_stopped_decides_what_comes_next", "calls_are_made_only_when_the_answer_stopped_for_them"),
    ),
    Item(
        "12.4.1",
        "`tool_use` blocks read from answers",
        "input is put together from its pieces; input that is no object is told to the model",
        (
            *_own("the_input_of_a_call_reaches_the_tool_as_it_was_streamed"),
            "tests/whole/test_turns.py::test_input_that_is_no_object",
        ),
    ),
    Item(
        "12.4.2",
        "tools that run locally",
        "all of appendix B, and the client's newer ones",
        ("tests/whole/test_tools.py::test_it_succeeds", *_own("every_tool_of_the_table_runs_here")),
        "`Task` is called `Agent` since 2.1.200; both names work",
    ),
    Item(
        "12.4.3",
        "results as `tool_result` blocks in user messages",
        "a record for each result; its block names the call, and says if it failed",
        _own("results_are_blocks_of_the_user_that_name_their_call"),
    ),
    Item(
        "12.4.4",
        "`toolUseResult` beside each result",
        "the fields of 2.1.325 for each tool; none of them is sent",
        (
            *_own("results_keep_what_the_client_keeps_of_them_and_nothing_of_it_is_sent"),
            f"{_FIELDS}::test_sessions_of_the_engine_do_not_drift",
        ),
    ),
    Item(
        "12.4.5",
        "several calls in one answer",
        "made at once where they only read, and in turn where they change something; all results "
        "are there before the next request",
        (
            *_own("results_of_parallel_calls_are_all_there_in_order_before_the_next_request"),
            "tests/agent/test_loop.py::test_calls_that_only_read_run_side_by_side",
        ),
    ),
    Item(
        "12.5.1",
        "a file for each sub-agent",
        "`<session>/subagents/agent-<id>.jsonl` and a `.meta.json` beside it",
        _own("a_sub_agent_has_a_file_and_a_note_beside_it"),
        "the document has it beside the session with 7 digits, as up to 2.0.76; 2.1.325 has 17 and a folder",
    ),
    Item(
        "12.5.2",
        "a conversation loop of its own, also below another",
        "a whole agent with its own tools and file, up to five deep",
        _own("a_sub_agent_asks_calls_and_answers_by_itself_also_below_another"),
    ),
    Item(
        "12.5.3",
        "`isSidechain` and `agentId` on its messages",
        "both on every record of it, with the session's `sessionId`; never in the session's file",
        _own("records_of_a_sub_agent_are_marked_and_name_the_session"),
    ),
    Item(
        "12.5.4",
        "its answer as the result of the call",
        "its last words; one in the background answers at once and tells later",
        (
            *_own("the_answer_of_a_sub_agent_is_the_result_of_its_call"),
            "tests/agent/test_subagents.py::test_one_in_the_background_tells_when_it_is_done",
        ),
    ),
    Item(
        "12.5.5",
        "`totalDurationMs`, `totalTokens`, `totalToolUseCount`",
        "in `toolUseResult`, counted from its own records",
        _own("the_totals_of_a_sub_agent_are_those_of_its_file"),
    ),
    Item(
        "12.6.1",
        "tokens tracked from the API's answers",
        "usage is recorded as the API says it, and measures the window",
        _own("what_answers_took_is_recorded_as_the_api_said_it"),
    ),
    Item(
        "12.6.2",
        "compaction near the limit of the context",
        "old output is left out first, then everything but the last turn is summed up",
        _own("a_conversation_that_grows_too_long_is_summed_up_before_it_is_refused"),
    ),
    Item(
        "12.6.3",
        "a summary and a `compact_boundary`",
        "a boundary with all figures of 2.1.325, and a user record with the summary below it",
        _own("a_compaction_is_a_boundary_with_its_figures_and_a_summary"),
        "the document writes a `summary` record; for the client that is a title, and it is never "
        "sent. What stays in view is said again behind the summary, not named by "
        "`preservedSegment`, which older clients do not know",
    ),
    Item(
        "12.6.4",
        "`parentUuid` null after a compaction",
        "on the boundary; `logicalParentUuid` names the record before, and the summary hangs on the boundary",
        _own("the_chain_begins_anew_at_a_boundary_that_names_what_was_before"),
        "the document has null on the message behind the boundary too",
    ),
    Item(
        "12.7.1",
        "progress of shell commands",
        "output is shown while it comes, and is no record",
        _own("what_a_command_prints_is_live_and_no_record", "the_newest_client_writes_no_progress_records"),
        "2.1.29 and 2.1.42 wrote `progress` records; 2.1.200 and later write none, nor does steno",
    ),
    Item(
        "12.7.2",
        "progress of sub-agents",
        "all that a sub-agent does is shown while it happens; its records are in its own file",
        _own("what_a_sub_agent_does_is_live_and_no_record"),
        "no `progress` record, as in 2.1.200 and later",
    ),
    Item(
        "12.7.3",
        "progress of hooks",
        "hooks are shown while they run; what they said is an attachment",
        (
            *_own("a_hook_that_runs_is_live_and_no_progress_record"),
            "tests/console/test_event_renderer.py::test_a_hook_is_a_line_while_it_runs",
        ),
        "no `progress` record, as in 2.1.200 and later",
    ),
    Item(
        "12.7.4",
        "`system` with `turn_duration` after each turn",
        "with the number of records before it and of sub-agents still at work; the next prompt hangs on it",
        _around(
            "each_turn_at_a_terminal_ends_with_how_long_it_took",
            "nobody_reads_durations_behind_a_prompt_without_a_terminal",
            "a_turn_that_was_broken_off_has_no_duration_and_one_that_failed_has",
            "the_client_counts_every_record_of_the_conversation_so_far",
        ),
        "only at a terminal, and not after an interruption, as the client",
    ),
    Item(
        "12.8.1",
        "the conversation read back from the file",
        "word for word, also from files of real clients and damaged ones",
        (
            *_own("a_session_is_read_back_as_it_was_said"),
            "tests/session/test_resume_table.py::test_every_case_is_predicted",
        ),
    ),
    Item(
        "12.8.2",
        "the chain built from `uuid` and `parentUuid`",
        "as the client builds it, branches and gaps included",
        (
            *_own("a_new_prompt_hangs_on_the_last_record_of_the_conversation"),
            "tests/session/test_resume_table.py::test_every_case_is_predicted",
        ),
    ),
    Item(
        "12.8.3",
        "the newest end of the chain found",
        "`last-prompt`, else the newest message; a new prompt hangs there",
        _own("a_new_prompt_hangs_on_the_last_record_of_the_conversation"),
    ),
    Item(
        "12.8.4",
        "blocks of an answer put together for the API",
        "records of one `message.id` are one message again",
        _own("a_session_is_read_back_as_it_was_said"),
        "the document groups by `requestId`; the client does not",
    ),
    Item(
        "12.8.5",
        "a compacted session goes on from its summary",
        "what stands before the boundary is not sent",
        _own("a_session_that_was_compacted_goes_on_from_its_summary"),
    ),
)
"""All 38 points."""
