"""Every item of the five published descriptions, and the test that proves what steno does with it.

An item is a record type, a field, a form of content, a rule, a step of a flow, a tool or a command.
Its id is the document, the section and the item. Where the document and the real client differ, the
client wins, and `differs` says how.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.published.dialect_examples import FLAT_TOOLS, NESTED_TOOLS
from tests.published.test_client_fields import FIELDS
from tests.published.test_dialect_fields import READ
from tests.published.test_documented_tools import TOOLS

_HERE: Final = "tests/published/"
DOCUMENTS: Final = {
    "000": "Message Type Specification",
    "001": "Claude Code Session Protocol Schema",
    "002": "Claude Code Session File Format Specification (frago)",
    "003": "Claude Code Session Format (OpenContext)",
    "004": "Claude Code Message Format Specification",
}


class Item(NamedTuple):
    """One item."""

    id: str
    words: str
    test: str
    differs: str = ""


def rule(name: str) -> str:
    return f"{_HERE}test_rules.py::test_a_breach_is_found_where_it_lies[{name}]"


def sent(name: str) -> str:
    return f"{_HERE}test_dialects.py::test_everything_but_what_is_hidden_is_sent[{name}]"


def repaired(name: str) -> str:
    return f"{_HERE}test_dialects.py::test_the_converted_file_is_sound[{name}]"


def turns(name: str) -> str:
    return f"{_HERE}test_examples.py::test_turns_begin_with_the_prompts[{name}]"


def dialect(name: str) -> str:
    return f"{_HERE}test_dialect_fields.py::{name}"


def reading(document: str, item: str) -> str:
    reader = {"001": "the_protocol_schema", "002": "the_reader_of_2_0_76", "003": "the_reader_of_2_1_42"}
    return f"{_HERE}test_reading_{document}.py::test_a_file_is_read_as_{reader[document]}_means[{item}]"


def checklist(item: str) -> str:
    return f"{_HERE}test_protocol_checklist.py::test_the_agent_does_what_the_checklist_asks[{item}]"


NO_CLIENT: Final = "No client writes this form; the converted file has the client's."
DIFFERS: Final = {
    "000.1.compact_system": "The client writes `system/compact_boundary` and a summary.",
    "000.2.message": "The client's `message` is an object with `role` and `content`.",
    "000.2.sidechain-root": "The client's sub-agents are chains without a parent.",
    "000.3.toolName": "The client writes a `tool_use` block.",
    "000.3.toolArguments": "The client writes a `tool_use` block.",
    "000.4.type": "The client's results are `user` records.",
    "000.5.message": "The client has one boundary record and no operations.",
    "000.7.isDeleted": "No client writes it.",
    "000.7.isAborted": "The client writes a message that says so behind it.",
    "004.2.type": "The client writes `user`.",
    "004.2.timestamp": "The client writes ISO 8601 text.",
    "004.2.is_active": "No client writes it; order and `last-prompt` decide.",
    "004.2.isDeleted": "No client writes it.",
    "004.3.human": "The client writes `user`.",
    "004.3.tool_result": "The client writes `user` with `tool_result` blocks.",
    "004.3.compact_prelude": "The client writes `system/compact_boundary`.",
    "004.3.compact_recap": "The client writes `user` with `isCompactSummary`.",
    "001.3.slug": "The client writes it only behind a plan, a tool or a compaction.",
    "001.3.agentId": "Newer ids are longer than seven hex digits.",
    "001.A.assistant.requestId": "It is missing on errors of the client itself.",
    "001.A.user.isMeta": "The client leaves it out where it is false.",
    "001.4.6.snapshot.trackedFileBackups": "The client writes names of backups, not text.",
    "002.5.summary": "The client writes no `sessionId` into it.",
    "002.6.snapshot": "The client writes no `sessionId` into it.",
}


OF: Final = {
    "000.1": "type",
    "000.2": "user record:",
    "000.3": "answer:",
    "000.4": "system record:",
    "000.5": "operation:",
    "000.7": "flag",
    "004.2": "every record:",
    "004.3": "type",
    "004.4": "content:",
    "004.5": "pattern:",
    "004.7": "tool:",
}
"""What the fields of a section belong to."""


def _fields() -> Iterator[Item]:
    for item, *_ in READ:
        section, _, name = item.rpartition(".")
        test = dialect(f"test_a_field_of_a_dialect_becomes_the_clients[{item}]")
        words = name.replace("-", " ") if "-" in name else f"`{name}`"
        yield Item(item, f"{OF[section]} {words}", test, DIFFERS.get(item, ""))
    test = f"{_HERE}test_client_fields.py::test_a_field_of_another_type_is_reported"
    for field in FIELDS:
        words = f"`{field.path}` of `{field.kind}`" + (", required" if field.required else "")
        yield Item(field.item, words, f"{test}[{field.item}]", DIFFERS.get(field.item, ""))


def _tools() -> Iterator[Item]:
    test = dialect("test_a_tool_of_a_dialect_is_a_call_with_its_result")
    for tool in FLAT_TOOLS:
        yield Item(f"000.3.tool.{tool}", f"tool `{tool}`", f"{test}[flat_tools-{tool}]")
    for tool in NESTED_TOOLS:
        yield Item(f"004.6.{tool}", f"tool `{tool}`", f"{test}[nested_tools-{tool}]")
    test = f"{_HERE}test_documented_tools.py::test_a_tool_with_its_documented_input_is_nothing_new"
    for document, tools in TOOLS.items():
        for tool in tools:
            name = f"{document}.{tool}"
            yield Item(name, f"tool `{tool}` and its input", f"{test}[{name}]")


_CLOSED: Final = "The newest client writes no `progress` records; who watches is told live."
OTHERS: Final = (
    # 000
    Item("000.2.example", "a prompt of a person", turns("flat_examples")),
    Item("000.6.1", "a call, then its result", sent("tool_usage"), NO_CLIENT),
    Item("000.6.2", "three calls, then three results", sent("parallel_on_the_last"), NO_CLIENT),
    Item("000.6.3", "three calls, results on their calls", sent("parallel_on_their_calls")),
    Item("000.6.4", "three calls side by side, results in a row", sent("parallel_in_a_row")),
    Item(
        "000.7.roles",
        "who speaks in a sub-agent's records",
        dialect("test_in_a_sidechain_the_user_is_the_model_that_delegates"),
    ),
    Item("000.8.1", "flow: linear", repaired("linear")),
    Item("000.8.2", "flow: tool usage", repaired("tool_usage")),
    Item("000.8.3", "flow: sidechain", repaired("sidechain")),
    Item("000.8.4", "flow: error recovery", repaired("error_recovery")),
    Item("000.8.5", "flow: compaction", repaired("compaction")),
    Item("000.9.1", "an edited message begins a branch", sent("edited")),
    Item("000.10.user", "what a user record requires", rule("000 requires message of a user")),
    Item("000.10.assistant", "what a tool call requires", rule("000 rule 5, arguments")),
    Item("000.10.system", "what a system record requires", rule("000 requires message of the "
         "system")),
    Item("000.10.compact", "what an operation requires",
         rule("000 requires message of compact_system")),
    Item("000.10.metadata", "what a finished compaction requires",
         rule("000 requires metadata of conversation_compacted")),
    Item("000.10.operations", "only four operations", rule("000 has four operations")),
    Item("000.10.uuid", "`uuid` is required", rule("000 requires uuid")),
    Item("000.10.timestamp", "`timestamp` is required", rule("000 requires timestamp")),
    Item("000.10.sessionId", "`sessionId` is required", rule("000 requires sessionId")),
    Item("000.10.type", "`type` is required", rule("000 requires type")),
    Item("000.11.1", "uuids are unique", rule("000 rule 1")),
    Item("000.11.2", "times are ISO 8601", rule("000 rule 2")),
    Item("000.11.3", "parents exist", rule("000 rule 3")),
    Item("000.11.4", "shape fits the type", rule("000 rule 4, message")),
    Item("000.11.5", "calls have a tool and arguments", rule("000 rule 5, name")),
    Item("000.11.6", "sidechains are marked throughout", rule("000 rule 6")),
    Item("000.12.restore", "flow: compaction and restoration", repaired("restoration")),
    Item("000.12.drop", "what a compaction left out", sent("dropped_by_compaction")),
    Item("000.12.figures", "figures of a compaction in the turn behind it",
         dialect("test_the_figures_of_a_compaction_reach_the_turn_behind_it")),
    Item("000.12.parents", "`parentUuid` may be missing everywhere", repaired("no_parents")),
    # 004
    Item("004.1.lines", "one object in a line, each read alone",
         dialect("test_lines_are_read_one_by_one_and_in_utf_8")),
    Item("004.1.utf8", "UTF-8", dialect("test_lines_are_read_one_by_one_and_in_utf_8")),
    Item("004.1.bytes", "read and given back without loss",
         f"{_HERE}test_examples.py::test_every_byte_is_read_and_given_back[development]"),
    Item("004.1.location", "`~/.claude/conversations/`",
         f"{_HERE}test_surfaces.py::test_title_project_dialect_and_turns_are_the_same_everywhere"
         "[active_branch]", "Clients write below `~/.claude/projects/`."),
    Item("004.1.project", "the folder's name is the project, `/` as `_`",
         f"{_HERE}test_surfaces.py::test_title_project_dialect_and_turns_are_the_same_everywhere"
         "[delegation]", "The client writes `-` for all that is no letter or digit."),
    Item("004.1.names", "files are named by time",
         f"{_HERE}test_examples.py::test_every_surface_is_asked_about_every_example",
         "The client names them by the session's id."),
    Item("004.2.isMeta", "`isMeta`", dialect("test_a_meta_message_of_004_is_not_a_prompt")),
    Item("004.2.compactMetadata", "`compactMetadata`",
         dialect("test_unknown_fields_and_a_missing_version_cost_nothing")),
    Item("004.2.subtype", "`subtype`",
         dialect("test_unknown_fields_and_a_missing_version_cost_nothing")),
    Item("004.2.no-version", "`version` may be missing",
         dialect("test_unknown_fields_and_a_missing_version_cost_nothing")),
    Item("004.3.example", "the records of the document as one session",
         turns("nested_examples")),
    Item("004.5.sidechain", "a sub-agent's records", repaired("delegation"),
         "The client keeps them in a chain, or a file, of their own."),
    Item("004.5.indicators", "marks of a sub-agent's records", turns("nested_sidechain")),
    Item("004.5.roles", "who speaks in a sub-agent's records",
         dialect("test_in_a_sidechain_the_user_is_the_model_that_delegates")),
    Item("004.5.compaction", "a prelude and a recap", sent("compact_messages")),
    Item("004.5.branch", "the active branch", sent("active_branch")),
    Item("004.5.flags", "failed, deleted and aborted", sent("failed_and_deleted")),
    Item("004.8.1", "flow: development", repaired("development")),
    Item("004.8.2", "flow: delegation", sent("delegation")),
    *(
        Item(f"004.9.1.{name}", f"`{name}` is required", rule(f"004 rule 1, {name}"))
        for name in ("uuid", "parentUuid", "sessionId", "type", "timestamp", "message")
    ),
    Item("004.9.2", "uuids are unique", rule("004 rule 2")),
    Item("004.9.3", "parents exist", rule("004 rule 3")),
    Item("004.9.4", "results name an earlier call", rule("004 rule 4")),
    Item("004.9.5", "sidechains are marked", rule("004 rule 5")),
    Item("004.9.6", "content is text or a list of objects", rule("004 rule 6, a number")),
    Item("004.9.7", "images are base64 with a media type", rule("004 rule 7, no base64")),
    Item("004.10.unknown", "unknown fields cost nothing",
         dialect("test_unknown_fields_and_a_missing_version_cost_nothing")),
    # 001
    Item("001.1.1", "files only grow", reading("001", "001.1.1")),
    Item("001.1.2", "records are a graph", reading("001", "001.1.2")),
    Item("001.1.3", "a line for each block", reading("001", "001.1.3")),
    Item("001.1.4", "results are messages of the user", reading("001", "001.1.4")),
    Item("001.2.1", "the file is named by the session", reading("001", "001.2.1")),
    Item("001.2.2", "a sub-agent's file beside it", reading("001", "001.2.2"),
         "From 2.1.29 on it lies in the session's folder."),
    Item("001.2.3", "the folder is named by the project", reading("001", "001.2.3"),
         "Every character that is no ASCII letter or digit becomes `-`."),
    Item("001.4.1.1", "a prompt", reading("001", "001.4.1.1")),
    Item("001.4.1.2", "an expanded skill", reading("001", "001.4.1.2")),
    Item("001.4.1.3", "a result, and what is not sent of it", reading("001", "001.4.1.3")),
    Item("001.4.2.3", "signed thinking", reading("001", "001.4.2.3")),
    Item("001.4.3.1", "`compact_boundary`", reading("001", "001.4.3.1")),
    Item("001.4.3.2", "`turn_duration`", reading("001", "001.4.3.2")),
    Item("001.4.3.3", "`local_command`", reading("001", "001.4.3.3")),
    Item("001.4.4.1", "`summary`", reading("001", "001.4.4.1"), "It is a title, never sent."),
    Item("001.4.4.2", "several summaries", reading("001", "001.4.4.2")),
    Item("001.4.5.0", "progress is not sent", reading("001", "001.4.5.0"),
         "2.1.29 and 2.1.42 link through such records; newer clients write none."),
    Item("001.4.5.3", "progress of a hook", reading("001", "001.4.5.3")),
    Item("001.4.5.4", "progress of a web search", reading("001", "001.4.5.4")),
    Item("001.4.6.1", "a snapshot and its update", reading("001", "001.4.6.1")),
    Item("001.4.6.2", "text in `trackedFileBackups`", reading("001", "001.4.6.2"),
         "The client writes the names of backups."),
    Item("001.4.7.1", "a queue operation", reading("001", "001.4.7.1")),
    Item("001.5.1", "the first record has no parent", reading("001", "001.5.1")),
    Item("001.5.2", "each follows the one before", reading("001", "001.5.2")),
    Item("001.5.3", "blocks of a response are chained", reading("001", "001.5.3")),
    Item("001.5.4", "results follow the last block", reading("001", "001.5.4"),
         "From 2.1.29 on each result follows its call."),
    Item("001.5.5", "parallel results are one message", reading("001", "001.5.5")),
    Item("001.5.6", "sub-agents bear the session's id", reading("001", "001.5.6")),
    Item("001.6.1", "steps of a turn", reading("001", "001.6.1")),
    Item("001.7.2", "calls and results by id", reading("001", "001.7.2")),
    *(
        Item(f"001.7.3.{tool}", f"result of `{tool}`", reading("001", f"001.7.3.{tool}"))
        for tool in ("Read", "Glob", "Bash", "Write", "Edit", "TodoWrite", "Grep", "Task")
    ),
    Item("001.8.1", "a call starts a sub-agent", reading("001", "001.8.1")),
    Item("001.8.3", "a sub-agent's first record", reading("001", "001.8.3")),
    Item("001.8.4", "a sub-agent's own calls", reading("001", "001.8.4")),
    Item("001.8.5", "a sub-agent's report", reading("001", "001.8.5")),
    Item("001.9.1", "the summary before a boundary", reading("001", "001.9.1"),
         "The client writes it as a message below the boundary."),
    Item("001.9.2", "what `check` says of it",
         f"{_HERE}test_examples.py::test_only_known_faults_are_found[compacted]",
         "No client sends such a summary."),
    Item("001.9.3", "work from before the boundary", reading("001", "001.9.3")),
    Item("001.10.1", "a response of several lines", reading("001", "001.10.1"),
         "Lines are grouped by `message.id`."),
    Item("001.10.2", "reasons to stop", reading("001", "001.10.2"),
         "2.1.29 and 2.1.42 write null everywhere, 2.1.200 the reason everywhere."),
    Item("001.11.1", "the complete session", turns("full_conversation")),
    Item("001.12.1.1", "a new id for a session", checklist("001.12.1.1")),
    Item("001.12.1.2", "where the file lies", checklist("001.12.1.2")),
    Item("001.12.1.3", "the project's name", checklist("001.12.1.3"), "The leading `-` stays."),
    Item("001.12.1.4", "a readable name of a session", checklist("001.12.1.4"),
         "The client writes it only behind a plan, a tool or a compaction."),
    Item("001.12.1.5", "folder, branch and version", checklist("001.12.1.5")),
    Item("001.12.2.1", "one line for each record", checklist("001.12.2.1")),
    Item("001.12.2.2", "an id for each record", checklist("001.12.2.2")),
    Item("001.12.2.3", "parents", checklist("001.12.2.3")),
    Item("001.12.2.4", "snapshots of files", checklist("001.12.2.4"),
         "The newest client writes a `file-history-delta` for each change."),
    Item("001.12.2.5", "times", checklist("001.12.2.5")),
    Item("001.12.3.1", "roles on the wire", checklist("001.12.3.1")),
    Item("001.12.3.2", "definitions of tools", checklist("001.12.3.2")),
    Item("001.12.3.3", "a line for each block", checklist("001.12.3.3")),
    Item("001.12.3.4", "one `requestId` for a response", checklist("001.12.3.4")),
    Item("001.12.3.5", "reasons to stop", checklist("001.12.3.5")),
    Item("001.12.4.1", "calls in answers", checklist("001.12.4.1")),
    Item("001.12.4.2", "tools run here", checklist("001.12.4.2")),
    Item("001.12.4.3", "results as messages", checklist("001.12.4.3")),
    Item("001.12.4.4", "`toolUseResult`", checklist("001.12.4.4")),
    Item("001.12.4.5", "calls side by side", checklist("001.12.4.5")),
    Item("001.12.5.1", "a sub-agent's file", checklist("001.12.5.1"),
         "It lies in the session's folder, not beside the session."),
    Item("001.12.5.2", "a sub-agent's own loop", checklist("001.12.5.2")),
    Item("001.12.5.3", "marks of a sub-agent's records", checklist("001.12.5.3")),
    Item("001.12.5.4", "a sub-agent's report", checklist("001.12.5.4")),
    Item("001.12.5.5", "a sub-agent's totals", checklist("001.12.5.5")),
    Item("001.12.6.1", "tokens", checklist("001.12.6.1")),
    Item("001.12.6.2", "compaction", checklist("001.12.6.2")),
    Item("001.12.6.3", "records of a compaction", checklist("001.12.6.3"),
         "The summary is a message below the boundary, and no `summary` record."),
    Item("001.12.6.4", "a new root behind a compaction", checklist("001.12.6.4")),
    Item("001.12.7.1", "progress of commands", checklist("001.12.7.1"), _CLOSED),
    Item("001.12.7.2", "progress of sub-agents", checklist("001.12.7.2"), _CLOSED),
    Item("001.12.7.3", "progress of hooks", checklist("001.12.7.3"),
         "The newest client writes an `attachment`."),
    Item("001.12.7.4", "duration of a turn",
         "tests/whole/test_turn_records.py::"
         "test_each_turn_at_a_terminal_ends_with_how_long_it_took",
         "Only at a terminal, and not after an interruption."),
    Item("001.12.7.5", "no duration without a terminal", checklist("001.12.7.4")),
    Item("001.12.8.1", "a session is read again", checklist("001.12.8.1")),
    Item("001.12.8.2", "its graph", checklist("001.12.8.2")),
    Item("001.12.8.3", "its last record", checklist("001.12.8.3")),
    Item("001.12.8.4", "its responses", checklist("001.12.8.4"),
         "The client groups by `message.id`."),
    Item("001.12.8.5", "from the compaction on", checklist("001.12.8.5")),
    Item("001.C", "messages from a file", reading("001", "001.C"),
         "`isMeta` records are sent, a `summary` is not, and lines group by `message.id`."),
    # 002
    Item("002.0.path", "the folder is named by the project", reading("002", "002.0.path"),
         "Every character that is no ASCII letter or digit becomes `-`."),
    Item("002.1.skipped", "queue operations are no steps", reading("002", "002.1.skipped")),
    Item("002.2.text-or-list", "content is text or a list", reading("002", "002.2.text-or-list")),
    Item("002.2.error-text", "`toolUseResult` is text", reading("002", "002.2.error-text")),
    Item("002.2.result-text-or-list", "a result is text or a list",
         reading("002", "002.2.result-text-or-list")),
    Item("002.2.types", "kinds of steps", reading("002", "002.2.types")),
    Item("002.4.skipped", "system events are no steps", reading("002", "002.4.skipped")),
    Item("002.4.retry", "`system/error` with figures of retries", reading("002", "002.4.retry"),
         "The client writes `system/api_error`."),
    Item("002.5.skipped", "a summary is no step", reading("002", "002.5.skipped")),
    Item("002.6.skipped", "a snapshot is no step", reading("002", "002.6.skipped")),
    Item("002.7.thinking", "thinking without a signature", reading("002", "002.7.thinking"),
         "The API refuses it; the client always writes one."),
    Item("002.8.usage", "tokens", reading("002", "002.8.usage")),
    Item("002.9.skill", "an expanded skill", reading("002", "002.9.skill")),
    Item("002.9.sidechain", "a sub-agent's file", reading("002", "002.9.sidechain")),
    Item("002.10.fields", "ids and times of steps", reading("002", "002.10.fields")),
    Item("002.10.summary", "the words of a step", reading("002", "002.10.summary")),
    Item("002.10.discarded", "what steps leave out", reading("002", "002.10.discarded")),
    Item("002.10.calls", "calls and results of steps", reading("002", "002.10.calls")),
    Item("002.10.files", "`steps.jsonl` and `metadata.json`",
         f"{_HERE}test_examples.py::test_exported_steps_and_tables_have_every_session"),
    Item("002.11.empty", "empty files are skipped", reading("002", "002.11.empty")),
    Item("002.11.names", "files with other names are skipped", reading("002", "002.11.names")),
    Item("002.11.running", "a running session is listed", reading("002", "002.11.running")),
    Item("002.11.many", "ten steps are listed", reading("002", "002.11.many")),
    Item("002.11.few", "four steps are not", reading("002", "002.11.few")),
    Item("002.11.unanswered", "nor are nine without an answer",
         reading("002", "002.11.unanswered")),
    *(
        Item(f"002.12.{code}", f"`{code}`", f"{_HERE}test_documented_tools.py::"
             f"test_a_change_of_the_format_has_the_documented_name[{code}]")
        for code in ("UNKNOWN_TYPE", "NEW_FIELD", "TYPE_MISMATCH", "MISSING_FIELD")
    ),
    Item("002.12.command", "a file or a folder is checked",
         f"{_HERE}test_documented_tools.py::test_drift_takes_a_file_or_a_folder"),
    # 003
    Item("003.1.filter", "what begins a turn", reading("003", "003.1.filter"),
         "Background tasks, shell commands and lists with pictures begin turns too."),
    Item("003.1.interrupt", "an interrupt", reading("003", "003.1.interrupt")),
    Item("003.2.streaming", "a response of several lines", reading("003", "003.2.streaming")),
    Item("003.3.progress", "progress belongs to its turn", reading("003", "003.3.progress")),
    Item("003.4.microcompact", "`microcompact_boundary`", reading("003", "003.4.microcompact")),
    Item("003.4.api_error", "`api_error`", reading("003", "003.4.api_error")),
    Item("003.4.stop_hook", "`stop_hook_summary`", reading("003", "003.4.stop_hook")),
    Item("003.4.duration", "`turn_duration`", reading("003", "003.4.duration")),
    Item("003.5.backup", "backups fill what no tool recorded",
         "tests/report/test_file_history.py::test_backups_fill_what_no_tool_recorded"),
    Item("003.5.names", "names of backups",
         "tests/format/test_paths.py::test_the_name_of_a_backup_is_the_one_the_real_client_gave"),
    Item("003.6.complete", "`complete`", reading("003", "003.6.complete"),
         "Clients write `enqueue`, `dequeue`, `remove` and `popAll`."),
    Item("003.7.composition", "what a turn is made of", reading("003", "003.7.composition")),
    Item("003.7.sidechains", "sub-agents in the session's folder",
         reading("003", "003.7.sidechains")),
    Item("003.8.folders", "only sessions are taken for sessions",
         f"{_HERE}test_documented_tools.py::"
         "test_the_folders_of_the_client_hold_sessions_only_where_documented"),
    Item("003.8.encoding", "the folder is named by the project",
         f"{_HERE}test_reading_001.py::test_a_file_is_read_as_the_protocol_schema_means"
         "[001.2.3]", "The name is not URL-encoded."),
    Item("003.9.intent", "what was asked", reading("003", "003.9.intent")),
    Item("003.9.texts", "every text of a turn", reading("003", "003.9.texts")),
    Item("003.9.calls", "calls with their input", reading("003", "003.9.calls")),
    Item("003.9.files", "files that were changed", reading("003", "003.9.files")),
    Item("003.9.commands", "commands", reading("003", "003.9.commands")),
    Item("003.9.agents", "work of sub-agents", reading("003", "003.9.agents")),
    Item("003.9.snapshots", "snapshots of a turn", reading("003", "003.9.snapshots")),
    Item("003.9.microcompact", "tokens that were saved", reading("003", "003.9.microcompact")),
    Item("003.9.skip", "what a brief leaves out", reading("003", "003.9.skip")),
)  # fmt: skip


def _in_order(item: Item) -> tuple[str, tuple[tuple[int, str], ...]]:
    document, *rest = item.id.split(".")
    return document, tuple((int(part), "") if part.isdigit() else (99, part) for part in rest)


ITEMS: Final = sorted((*_fields(), *_tools(), *OTHERS), key=_in_order)
