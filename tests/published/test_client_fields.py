"""Every field that 001, 002 and 003 list: it is known, its type is checked, and so is its absence."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from tests.published.examples import EXAMPLES

from steno.check.checkup import check
from steno.check.drift import Observer
from steno.format.catalogue import catalogue
from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.format.source import BytesSource


class Field(NamedTuple):
    """A field of a record in an example, and whether its document requires it."""

    item: str
    example: str
    kind: str
    path: str
    required: bool = False


def _fields(document: str, example: str, kind: str, required: str, optional: str = "") -> Iterator[Field]:
    for names, needed in ((required, True), (optional, False)):
        for path in names.split():
            yield Field(f"{document}.{path}", example, kind, path, needed)


_ENVELOPE = "uuid sessionId timestamp type isSidechain userType cwd version"
_USAGE = "input_tokens cache_creation_input_tokens cache_read_input_tokens output_tokens"
_USAGE_PATHS = " ".join(f"message.usage.{name}" for name in _USAGE.split())
_CACHE = "message.usage.cache_creation.ephemeral_"
FIELDS: tuple[Field, ...] = (
    *_fields("001.3", "skill_and_response", "user/prompt", _ENVELOPE, "gitBranch slug"),
    *_fields("001.3", "skill_and_response", "user/meta", "parentUuid", "isMeta"),
    *_fields("001.3", "sub_agent", "user/prompt", "", "agentId"),
    *_fields(
        "001.A.user", "skill_and_response", "user/prompt",
        f"{_ENVELOPE} parentUuid message message.role message.content",
        "gitBranch slug permissionMode",
    ),
    *_fields("001.A.user", "skill_and_response", "user/tool_result", "", "toolUseResult"),
    *_fields("001.A.user", "skill_and_response", "user/meta", "", "isMeta"),
    *_fields(
        "001.A.assistant", "skill_and_response", "assistant/text",
        "uuid parentUuid sessionId timestamp type message message.model message.id "
        "message.role message.content message.stop_reason message.usage",
        "requestId",
    ),
    *_fields("001.4.2", "skill_and_response", "assistant/text", "", _USAGE_PATHS),
    *_fields("001.4.2.thinking", "skill_and_response", "assistant/thinking",
             "message.content.0.thinking message.content.0.signature"),
    *_fields("001.4.2.tool_use", "skill_and_response", "assistant/tool_use",
             "message.content.0.id message.content.0.name message.content.0.input"),
    *_fields("001.4.2.text", "skill_and_response", "assistant/text", "message.content.0.text"),
    *_fields("001.4.1.tool_result", "skill_and_response", "user/tool_result",
             "message.content.0.tool_use_id", "message.content.0.content"),
    *_fields("001.4.3.compact_boundary", "compacted", "system/compact_boundary", "subtype",
             "logicalParentUuid content level compactMetadata compactMetadata.trigger "
             "compactMetadata.preTokens"),
    *_fields("001.4.3.turn_duration", "timing_and_commands", "system/turn_duration", "durationMs"),
    *_fields("001.4.3.local_command", "timing_and_commands", "system/local_command", "content",
             "level"),
    *_fields("001.4.4", "compacted", "summary", "", "summary leafUuid"),
    *_fields("001.4.5.bash", "progress_of_tools", "progress/bash_progress",
             "data data.output data.fullOutput toolUseID parentToolUseID"),
    *_fields("001.4.5.agent", "progress_of_tools", "progress/agent_progress", "data.message"),
    *_fields("001.4.5.hook", "progress_of_tools", "progress/hook_progress",
             "data.hookEvent data.hookName", "data.command"),
    *_fields("001.4.5.query", "progress_of_tools", "progress/query_update", "data.query"),
    *_fields("001.4.5.results", "progress_of_tools", "progress/search_results_received",
             "data.resultCount data.query"),
    *_fields("001.4.5.task", "progress_of_tools", "progress/waiting_for_task",
             "data.taskDescription data.taskType"),
    *_fields("001.4.6", "text_in_snapshot", "file-history-snapshot",
             "messageId snapshot snapshot.messageId snapshot.trackedFileBackups "
             "snapshot.timestamp isSnapshotUpdate"),
    *_fields("001.4.7", "queue_and_pull_request", "queue-operation", "operation timestamp sessionId"),
    *_fields("001.4.8", "queue_and_pull_request", "pr-link",
             "sessionId prNumber prUrl prRepository timestamp"),
    *_fields("001.7.3.Task", "sub_agent", "user/tool_result",
             "", "toolUseResult.status toolUseResult.prompt toolUseResult.agentId "
             "toolUseResult.content toolUseResult.totalDurationMs toolUseResult.totalTokens "
             "toolUseResult.totalToolUseCount"),
    *_fields("002.1", "command_turn", "queue-operation", "operation timestamp sessionId"),
    *_fields("002.2", "command_turn", "user/prompt",
             f"{_ENVELOPE} message message.role message.content", "parentUuid gitBranch slug"),
    *_fields("002.2", "command_turn", "user/tool_result", "",
             "toolUseResult toolUseResult.stdout toolUseResult.stderr toolUseResult.interrupted "
             "toolUseResult.isImage message.content.0.tool_use_id"),
    *_fields("002.2", "failed_command", "user/tool_result", "", "message.content.0.is_error"),
    *_fields("002.2", "expanded_skill", "user/meta", "", "isMeta sourceToolUseID"),
    *_fields("002.3", "command_turn", "assistant/text",
             "type uuid sessionId timestamp isSidechain message message.model message.id "
             "message.type message.role message.content message.stop_reason message.usage",
             f"parentUuid requestId {_USAGE_PATHS} {_CACHE}5m_input_tokens "
             f"{_CACHE}1h_input_tokens message.usage.service_tier"),
    *_fields("002.5", "summary_at_the_end", "summary", "leafUuid summary"),
    *_fields("002.6", "snapshot_of_session", "file-history-snapshot",
             "messageId snapshot isSnapshotUpdate"),
    *_fields("003.common", "thread_of_turns", "user/prompt", _ENVELOPE,
             "parentUuid gitBranch slug"),
    *_fields("003.1", "thread_of_turns", "user/prompt", "message.role message.content",
             "permissionMode thinkingMetadata thinkingMetadata.maxThinkingTokens"),
    *_fields("003.1", "thread_of_turns", "user/tool_result", "",
             "toolUseResult sourceToolAssistantUUID"),
    *_fields("003.2", "thread_of_turns", "assistant/text",
             "message.id message.model message.role message.content message.stop_reason "
             "message.usage", f"{_CACHE}1h_input_tokens message.usage.service_tier"),
    *_fields("003.3.bash", "progress_with_sizes", "progress/bash_progress",
             "data.output data.fullOutput data.elapsedTimeSeconds data.totalLines"),
    *_fields("003.3.agent", "progress_with_sizes", "progress/agent_progress",
             "data.prompt data.agentId data.message"),
    *_fields("003.3.hook", "progress_with_sizes", "progress/hook_progress",
             "data.hookEvent data.hookName", "data.command"),
    *_fields("003.4.microcompact", "system_events", "system/microcompact_boundary",
             "", "microcompactMetadata microcompactMetadata.trigger microcompactMetadata.preTokens "
             "microcompactMetadata.tokensSaved microcompactMetadata.compactedToolIds"),
    *_fields("003.4.stop_hook", "system_events", "system/stop_hook_summary", "hookCount"),
    *_fields("003.4.api_error", "system_events", "system/api_error", "retryAttempt maxRetries"),
    *_fields("003.4.duration", "system_events", "system/turn_duration", "durationMs"),
    *_fields("003.5", "backup_of_file", "file-history-snapshot",
             "messageId isSnapshotUpdate snapshot.messageId snapshot.timestamp "
             "snapshot.trackedFileBackups"),
    *_fields("003.6", "queue_of_tasks", "queue-operation", "operation timestamp sessionId",
             "content"),
)  # fmt: skip


def records_of(example: str) -> list[dict[str, Any]]:
    """Return the records of an example and of its sub-agents."""
    every = EXAMPLES[example]
    texts = [every.data, *(data for path, data in every.beside.items() if path.endswith("jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def drifts(records: list[dict[str, Any]]) -> set[tuple[str, str, str, int]]:
    """Return what the catalogue does not know of records: code, kind, path and how often."""
    observer = Observer(catalogue())
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    for piece in read_bytes(data):
        if isinstance(piece, Record):
            observer.feed(piece)
    observer.end_file()
    return {(each.code, each.kind, each.path, each.count) for each in observer.drifts()}


@cache
def before(example: str) -> frozenset[tuple[str, str, str, int]]:
    return frozenset(drifts(records_of(example)))


@cache
def found_before(example: str) -> frozenset[tuple[str, str]]:
    return frozenset(findings(records_of(example)))


def findings(records: list[dict[str, Any]]) -> set[tuple[str, str]]:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    return {(each.id, each.message) for each in check(BytesSource(data)).findings}


def at(value: Any, step: str) -> Any:
    """Return what a name or a number leads to; nothing where there is none."""
    return value[int(step)] if isinstance(value, list) else value.get(step, {})


def place_of(records: list[dict[str, Any]], field: Field) -> tuple[Any, str | int]:
    """Return what holds a field, and its name there, of the first record that has it."""
    for record in records:
        (piece,) = read_bytes(json.dumps(record).encode())
        assert isinstance(piece, Record)
        if not piece.kind.startswith(field.kind):
            continue
        *way, last = field.path.split(".")
        value: Any = record
        for step in way:
            value = at(value, step)
        if isinstance(value, list):
            return value, int(last)
        if last in value:
            return value, last
    raise AssertionError(field)


def wrong(value: Any) -> Any:
    """Return a value of another type."""
    return 7 if isinstance(value, str | dict | list | bool | None) else "seven"


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.item)
def test_a_field_is_known(field: Field) -> None:
    """As it stands in the example it is nothing new."""
    place_of(records_of(field.example), field)
    name = field.path.rpartition(".")[2]
    new = [each for each in before(field.example) if each[0] == "NEW_FIELD"]
    assert [each for each in new if each[2].rpartition(".")[2] == name and name != "isMeta"] == []


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.item)
def test_a_field_of_another_type_is_reported(field: Field) -> None:
    records = records_of(field.example)
    holder, name = place_of(records, field)
    holder[name] = wrong(holder[name])
    odd = drifts(records) - before(field.example)
    assert odd or findings(records) - found_before(field.example), holder


@pytest.mark.parametrize("field", [field for field in FIELDS if field.required], ids=lambda field: field.item)
def test_a_required_field_that_is_missing_is_reported(field: Field) -> None:
    records = records_of(field.example)
    holder, name = place_of(records, field)
    del holder[name]
    odd = drifts(records) - before(field.example)
    assert odd or findings(records) - found_before(field.example), holder
