"""The catalogue names what the real client writes, and says when."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from steno.format.catalogue import Field, Fields, catalogue, json_type, version_key
from steno.format.lines import read_bytes
from steno.format.records import Record
from tools import make_format_docs

CATALOGUE = Path(__file__).parents[2] / "src" / "steno" / "format" / "catalogue.json"
GRAPH = "parentUuid isSidechain userType cwd sessionId version gitBranch type uuid timestamp slug"
KNOWN = {
    "user/prompt": f"{GRAPH} message thinkingMetadata todos permissionMode promptSource origin",
    "user/meta": f"{GRAPH} message isMeta promptId sourceToolUseID turnCompanion",
    "user/tool_result": f"{GRAPH} toolUseResult sourceToolAssistantUUID permissionDecision mcpMeta",
    "user/compact_summary": f"{GRAPH} isCompactSummary isVisibleInTranscriptOnly turnPosition",
    "assistant/text": f"{GRAPH} message requestId apiBlockIndex effort attributionSkill forkedFrom",
    "assistant/thinking": f"{GRAPH} message thinkingDurationMs thinkingDisplay",
    "assistant/tool_use": f"{GRAPH} message toolInputStreamMs wireIngestContext agentId",
    "assistant/redacted_thinking": f"{GRAPH} message requestRef requestedModel",
    "assistant/api_error": f"{GRAPH} isApiErrorMessage apiError error apiErrorStatus refusingModel",
    "system/api_error": f"{GRAPH} subtype error retryInMs retryAttempt maxRetries source cause",
    "system/compact_boundary": f"{GRAPH} logicalParentUuid content level compactMetadata",
    "system/microcompact_boundary": f"{GRAPH} content microcompactMetadata",
    "system/informational": f"{GRAPH} content isMeta level",
    "system/local_command": f"{GRAPH} content commandRun contextUsage isDisplayOnly",
    "system/model_refusal_no_fallback": f"{GRAPH} originalModel refusedUserMessageUuid",
    "system/stop_hook_summary": f"{GRAPH} hookCount hookInfos hookErrors preventedContinuation",
    "system/turn_duration": f"{GRAPH} durationMs messageCount pendingBackgroundAgentCount",
    "system/away_summary": f"{GRAPH} content isMeta",
    "system/scheduled_task_fire": f"{GRAPH} content",
    "attachment/hook_success": f"{GRAPH} attachment rendered renderedRole",
    "attachment/prompt_snapshot": f"{GRAPH} attachment session_id sessionKind",
    "attachment/queued_command": f"{GRAPH} attachment renderedInHumanTurn",
    "progress/bash_progress": f"{GRAPH} data toolUseID parentToolUseID",
    "queue-operation/enqueue": "type operation timestamp sessionId content",
    "queue-operation/dequeue": "type operation timestamp sessionId",
    "queue-operation/remove": "operation content reason commandUuid deliveryId",
    "queue-operation/popAll": "operation content",
    "agent-color": "type agentColor sessionId",
    "agent-name": "type agentName sessionId",
    "agent-setting": "type agentSetting sessionId",
    "ai-title": "type aiTitle sessionId",
    "api-request": "id querySource shapeHash params keep tail cacheControl requestDigest base agentId",
    "api-request-blob": "hash message agentId",
    "api-request-shape": "shapeHash shape timestamp version",
    "atis-latch": "atis sessionId",
    "bridge-session": "bridgeSessionId lastSequenceNum sessionId",
    "cost-state": "totalCostUSD totalAPIDuration modelUsage startTime hasUnknownModelCost",
    "custom-title": "customTitle sessionId",
    "file-history-delta": "messageId snapshotMessageId trackingPath backup timestamp",
    "file-history-snapshot": "messageId snapshot isSnapshotUpdate",
    "last-prompt": "lastPrompt leafUuid explicit sessionId",
    "mode": "mode sessionId",
    "permission-mode": "permissionMode sessionId",
    "pr-link": "prNumber prUrl prRepository timestamp",
    "relocated": "relocatedCwd sessionId",
    "summary": "summary leafUuid",
    "tag": "tag",
    "tools-used": "tools sessionId",
    "worktree-state": "worktreeSession sessionId",
}
INNER = {
    "attachment/agent_listing_delta": "addedTypes addedLines removedTypes isInitial builtInTypes",
    "attachment/auto_mode": "autoModeConsentFlow bashFirst bypass steerOnly",
    "attachment/command_permissions": "allowedTools",
    "attachment/date": "date",
    "attachment/deferred_tools_delta": "addedNames addedLines removedNames failedMcpServers",
    "attachment/deferred_tools_record": "entries",
    "attachment/directory": "path content displayPath",
    "attachment/edited_text_file": "filename snippet",
    "attachment/environment": "snapshot changes",
    "attachment/file": "filename content displayPath savedCopyFraming",
    "attachment/fork_briefing": "text",
    "attachment/goal_status": "met sentinel condition",
    "attachment/hook_additional_context": "content hookName toolUseID hookEvent",
    "attachment/hook_blocking_error": "hookName toolUseID hookEvent blockingError",
    "attachment/hook_non_blocking_error": "stderr stdout exitCode command durationMs",
    "attachment/hook_success": "hookName toolUseID hookEvent content stdout stderr exitCode",
    "attachment/hook_system_message": "content hookName toolUseID hookEvent",
    "attachment/instructions": "files",
    "attachment/mcp_instructions_delta": "addedNames addedBlocks removedNames",
    "attachment/model": "identity text",
    "attachment/nested_memory": "path content displayPath",
    "attachment/plan_mode": "reminderType isSubAgent planFilePath planExists",
    "attachment/plan_mode_exit": "planFilePath planExists",
    "attachment/prompt_snapshot": "systemPrompt tools cliPrefix keptReminders",
    "attachment/queued_command": "prompt commandMode origin humanTurn imagePasteIds source_uuid",
    "attachment/read_truncation_notice": "banner toolUseID",
    "attachment/remote_session_change": "url commit pr managedPr",
    "attachment/selected_lines_in_ide": "ideName lineStart lineEnd filename content",
    "attachment/session_context": "context",
    "attachment/silent_turn_reminder": "text",
    "attachment/skill_listing": "content skillCount isInitial names digests",
    "attachment/structured_output": "data toolUseID",
    "attachment/task_reminder": "content itemCount",
    "attachment/todo_reminder": "content itemCount",
    "attachment/total_tokens_reminder": "text",
    "attachment/ultrathink_effort": "type",
    "attachment/unknown_command_fallback": "commandName availableCommandNames",
    "progress/agent_progress": "message prompt agentId normalizedMessages resume",
    "progress/bash_progress": "output fullOutput elapsedTimeSeconds totalLines timeoutMs taskId",
    "progress/hook_progress": "hookEvent hookName command",
    "progress/mcp_progress": "status serverName toolName elapsedTimeMs",
    "progress/query_update": "query",
    "progress/search_results_received": "resultCount query",
    "progress/waiting_for_task": "taskDescription taskType",
}
CLAIMED = (
    "agents_killed artifact-autoreact-ledger artifact-comment-monitor attribution-snapshot "
    "content-replacement continued-in ended file_snapshot fork-context-ref frame-link "
    "isolation-latch marble-origami-commit marble-origami-snapshot model_refusal_fallback "
    "post_turn_summary result speculation-accept started tag task-summary"
)
RESULTS = {
    "Agent": "isAsync status agentId resolvedModel outputFile canContinueAgent",
    "AskUserQuestion": "questions answers annotations",
    "Bash": "stdout stderr interrupted isImage backgroundTaskId persistedOutputPath",
    "Edit": "filePath oldString newString originalFile structuredPatch userModified replaceAll",
    "ExitWorktree": "action restoredCwd discardedFiles",
    "Glob": "filenames durationMs numFiles truncated totalMatches",
    "Grep": "mode numFiles filenames content numLines appliedLimit",
    "NotebookEdit": "new_source cell_type old_source updated_file",
    "Read": "type file",
    "Task": "content totalTokens usage status",
    "TaskOutput": "retrieval_status task",
    "TodoWrite": "oldTodos newTodos",
    "ToolSearch": "matches query total_deferred_tools",
    "WebFetch": "bytes code codeText result url",
    "WebSearch": "query results durationSeconds",
    "Write": "type filePath content structuredPatch originalFile",
}


def every_field(fields: Fields) -> Iterator[Field]:
    for field in fields.values():
        yield field
        for inner in (field.sub, field.items, field.values):
            yield from every_field(inner)


def everything() -> Iterator[Field]:
    facts = catalogue()
    for kind in facts.kinds():
        yield from every_field(facts.fields(kind))
    for block in facts.blocks.values():
        yield from every_field(block.fields)
    for tool in facts.tools.values():
        yield from every_field(tool.input)
        yield from every_field(tool.result)
    yield from every_field(facts.usage)


@pytest.mark.parametrize("name", KNOWN)
def test_a_kind_names_its_fields(name: str) -> None:
    kind = catalogue().kind(name, "claude")
    assert kind is not None
    assert set(KNOWN[name].split()) <= catalogue().fields(kind).keys()


@pytest.mark.parametrize("name", INNER)
def test_an_attachment_or_progress_kind_names_what_it_carries(name: str) -> None:
    kind = catalogue().kind(name, "claude")
    assert kind is not None
    body = kind.fields["data" if name.startswith("progress") else "attachment"]
    assert set(INNER[name].split()) <= body.sub.keys()


def test_exactly_the_kinds_told_by_others_are_marked_as_claimed() -> None:
    claimed = {kind.name.removeprefix("system/") for kind in catalogue().kinds() if kind.claimed}
    # No client writes `steno-aside`: a repair does.
    assert claimed == {*CLAIMED.split(), "steno-aside"}


def test_a_side_record_has_no_envelope() -> None:
    kind = catalogue().kind("summary")
    assert kind is not None
    assert kind.family == "side"
    assert catalogue().fields(kind).keys() == {"type", "summary", "leafUuid"}


def test_published_dialects_have_their_own_kinds_and_envelopes() -> None:
    facts = catalogue()
    human, call = facts.kind("human"), facts.kind("assistant/tool_use", "spec-000")
    assert human is not None
    assert human.dialect == "spec-004"
    assert facts.fields(human)["timestamp"].types == ("num",)
    assert facts.fields(human)["is_active"].types == ("bool",)
    assert call is not None
    assert facts.fields(call)["message"].types == ("str",)
    assert call.fields["toolArguments"].types == ("obj",)
    assert facts.kind("human", "claude") is None


def test_a_kind_of_several_dialects_is_the_real_clients_unless_asked_otherwise() -> None:
    found = catalogue().kind("assistant/tool_use")
    assert found is not None
    assert found.dialect == "claude"


def test_an_unknown_name_is_none() -> None:
    facts = catalogue()
    assert facts.kind("no-such-kind") is None
    assert facts.block("no-such-block") is None
    assert facts.tool("NoSuchTool") is None


def test_blocks_and_usage_are_described() -> None:
    facts = catalogue()
    expected = "text thinking redacted_thinking tool_use server_tool_use web_search_tool_result"
    assert set(f"{expected} tool_result image document tool_reference fallback".split()) == set(facts.blocks)
    assert facts.usage["cache_creation"].sub.keys() == {"ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"}
    assert {"server_tool_use", "iterations", "speed", "output_tokens_details"} <= facts.usage.keys()


@pytest.mark.parametrize("name", RESULTS)
def test_a_tool_names_the_fields_of_its_result(name: str) -> None:
    tool = catalogue().tool(name)
    assert tool is not None
    assert "obj" in tool.result_types
    assert set(RESULTS[name].split()) <= tool.result.keys()


def test_every_tool_of_an_mcp_server_goes_by_one_entry() -> None:
    assert catalogue().tool("mcp__git__status") is catalogue().tool("mcp__*")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queue-operation.operation", "popAll"),
        ("permissionMode", "bypassPermissions"),
        ("message.stop_reason", "refusal"),
        ("system.level", "suggestion"),
        ("origin.kind", "task-notification"),
        ("promptSource", "typed"),
        ("compactMetadata.trigger", "auto"),
        ("hookEvent", "SubagentStop"),
        ("compact_system.message", "conversation_restored"),
    ],
)
def test_known_values_are_listed(name: str, value: str) -> None:
    assert value in catalogue().enums[name]


def test_versions_are_real_and_in_order() -> None:
    known = {*catalogue().client_versions.known, *catalogue().client_versions.claimed}
    for field in everything():
        assert len(field.versions) in (0, 2)
        assert set(field.versions) <= known
        assert sorted(field.versions, key=version_key) == list(field.versions)


def test_a_field_says_whether_a_version_is_within_its_range() -> None:
    kind = catalogue().kind("assistant/text", "claude")
    assert kind is not None
    assert kind.fields["apiBlockIndex"].known_in("2.1.325")
    assert not kind.fields["apiBlockIndex"].known_in("2.0.76")
    assert Field(types=("str",)).known_in("0.0.1")


def test_versions_sort_as_numbers_and_odd_ones_do_not_hurt() -> None:
    odd = ["", "latest", "2.1.9-beta.7", "9" * 5000, "\uff12.\uff11", "2..1"]
    assert version_key("2.1.42") < version_key("2.1.200") < version_key("2.1.325")
    assert version_key("2.1.9-beta.7") == (2, 1, 9)
    assert all(isinstance(version_key(version), tuple) for version in odd)


@pytest.mark.parametrize(
    ("value", "name"), [(None, "null"), (True, "bool"), (1, "num"), (0.5, "num"), ("", "str"), ({}, "obj"), ([], "arr")]
)
def test_json_types_have_the_catalogues_names(value: object, name: str) -> None:
    assert json_type(value) == name


def test_the_data_is_sorted_so_that_changes_show() -> None:
    data = json.loads(CATALOGUE.read_bytes())
    for section in (data["records"], data["blocks"], data["tools"], data["enums"], data["usage"]):
        assert list(section) == sorted(section)
    for record in data["records"].values():
        assert list(record["fields"]) == sorted(record["fields"])


def test_the_format_reference_is_up_to_date() -> None:
    assert make_format_docs.main(["--check"]) == 0


def test_the_format_reference_names_every_kind_block_and_tool() -> None:
    facts, page = catalogue(), make_format_docs.build(catalogue())
    names = [kind.name for kind in facts.kinds()] + list(facts.blocks) + list(facts.tools)
    assert [name for name in names if f"`{name}`" not in page] == []


def real_records(shared: Path, *folders: str) -> Iterator[tuple[str, Record]]:
    """Yield every session record with the client version that wrote it."""
    for folder in folders:
        for path in sorted((shared / "corpus" / folder).rglob("*.jsonl")):
            if path.name == "history.jsonl":
                continue
            version = path.relative_to(shared / "corpus" / folder).parts[0]
            for piece in read_bytes(path.read_bytes()):
                if isinstance(piece, Record):
                    yield piece.envelope.version or version, piece


@pytest.mark.corpus
def test_every_kind_and_field_of_the_real_client_is_known(shared: Path) -> None:
    facts = catalogue()
    unknown: Counter[str] = Counter()
    records = 0
    for _, record in real_records(shared, "real-client"):
        records += 1
        kind = facts.kind(record.kind, record.dialect)
        if kind is None:
            unknown[record.kind] += 1
            continue
        fields = facts.fields(kind)
        for name, value in record.fields.items():
            if name not in fields:
                unknown[f"{kind.name}.{name}"] += 1
            elif json_type(value) not in fields[name].types:
                unknown[f"{kind.name}.{name}: {json_type(value)}"] += 1
    assert records > 1000
    assert unknown == {}


@pytest.mark.corpus
def test_a_field_said_to_be_always_there_is_there(shared: Path) -> None:
    facts = catalogue()
    missing: Counter[str] = Counter()
    for version, record in real_records(shared, "real-client", "public"):
        kind = facts.kind(record.kind, record.dialect)
        if kind is None or not version[0].isdigit():
            continue
        present = record.fields
        for name, field in facts.fields(kind).items():
            if not field.optional and name not in present and field.known_in(version):
                missing[f"{kind.name}.{name} in {version}"] += 1
    assert missing == {}
