"""Every record is called what the catalogue calls it, whether its line is plain or takes a look."""

from typing import Any

import pytest
from tests.check.small_sessions import blank, call, data_of, note, output, prompt, reply, thought, words

from steno.check.evidence import RecordView, RuleHooks, gather_evidence
from steno.check.findings import Findings
from steno.format.source import BytesSource

_SERVED = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
_REDACTED = {"type": "redacted_thinking", "data": "x"}


def _without(record: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != field}


@pytest.mark.parametrize(
    ("record", "kind", "dialect"),
    [
        (prompt(1), "user/prompt", "claude"),
        (prompt(1, isMeta=True), "user/meta", "claude"),
        (prompt(1, isCompactSummary=True), "user/compact_summary", "claude"),
        (prompt(1, isCompactSummary=False), "user/prompt", "claude"),
        (prompt(1, isMeta=True, isCompactSummary=True), "user/compact_summary", "claude"),
        (output(1, "a"), "user/tool_result", "claude"),
        (output(1, "a", isMeta=True), "user/tool_result", "claude"),
        (output(1, "a", isCompactSummary=True), "user/tool_result", "claude"),
        (reply(1), "assistant/text", "claude"),
        (reply(1, "words"), "assistant/text", "claude"),
        (reply(1, [blank()]), "assistant/text", "claude"),
        (reply(1, isApiErrorMessage=True), "assistant/api_error", "claude"),
        (reply(1, isApiErrorMessage=False), "assistant/text", "claude"),
        (call(1, "a", isApiErrorMessage=True), "assistant/api_error", "claude"),
        (call(1, "a"), "assistant/tool_use", "claude"),
        (reply(1, [words("x"), *call(1, "a")["message"]["content"]]), "assistant/tool_use", "claude"),
        (reply(1, [thought()]), "assistant/thinking", "claude"),
        (reply(1, [thought(), words("x")]), "assistant/thinking", "claude"),
        (reply(1, [words("x"), thought()]), "assistant/text", "claude"),
        (reply(1, [_REDACTED]), "assistant/redacted_thinking", "claude"),
        (reply(1, [_SERVED]), "assistant/tool_use", "claude"),
        (reply(1, [words("x"), _SERVED]), "assistant/tool_use", "claude"),
        (reply(1, [{"type": "zzz"}]), "assistant/text", "claude"),
        (reply(1, [{"text": "x"}]), "assistant/text", "claude"),
        (reply(1, ["x"]), "assistant/text", "claude"),
        (reply(1, [{"type": 5}]), "assistant/text", "claude"),
        (reply(1, message={"role": "assistant", "content": []}), "assistant/text", "claude"),
        (reply(1, message={"role": "assistant", "content": None}), "assistant/text", "claude"),
        (reply(1, message={"role": "assistant"}), "assistant/text", "claude"),
        (reply(1, message={"content": "x"}), "assistant/text", "claude"),
        (reply(1, message={}), "assistant/text", "claude"),
        (reply(1, message="x"), "assistant/text", "spec-000"),
        (prompt(1, message="x"), "user/prompt", "spec-000"),
        (prompt(1, timestamp=5), "user/prompt", "claude"),
        (prompt(1, timestamp=5, message={"content": "x"}), "user/prompt", "spec-004"),
        (note(1), "system/turn_duration", "claude"),
        (note(1, subtype=""), "system", "claude"),
        (note(1, subtype="zzz"), "system/zzz", "claude"),
        (note(1, subtype="tool_result"), "system/tool_result", "spec-000"),
        (note(1, message="x"), "system/turn_duration", "claude"),
        (note(1, timestamp=5), "system/turn_duration", "claude"),
        (note(1, "attachment"), "attachment/todo", "claude"),
        (note(1, "attachment", attachment={}), "attachment", "claude"),
        (note(1, "attachment", attachment=[1]), "attachment", "claude"),
        (note(1, "attachment", attachment={"type": 5}), "attachment", "claude"),
        (note(1, "progress"), "progress/hook_progress", "claude"),
        (note(1, "progress", data=None), "progress", "claude"),
        (note(1, "zzz"), "zzz", "claude"),
        (note(1, "compact_system"), "compact_system", "spec-000"),
        (note(1, "human"), "human", "spec-004"),
        (note(1, "compact_recap"), "compact_recap", "spec-004"),
        ({"type": "queue-operation", "operation": "enqueue"}, "queue-operation/enqueue", "claude"),
        ({"type": "queue-operation"}, "queue-operation", "claude"),
        ({"type": "queue-operation", "operation": ""}, "queue-operation", "claude"),
        ({"type": "summary", "summary": "x"}, "summary", "claude"),
        (_without(prompt(1), "message"), "user/prompt", "claude"),
        (_without(reply(1), "message"), "assistant/text", "claude"),
        (_without(reply(1, subtype="thinking"), "message"), "assistant/thinking", "spec-000"),
        ({"uuid": "x"}, "untyped", "claude"),
        ({"type": 5}, "untyped", "claude"),
    ],
)
def test_a_record_has_its_kind_and_dialect(record: dict[str, Any], kind: str, dialect: str) -> None:
    said: list[tuple[str, str, str, str]] = []

    def look(seen: RecordView, _: Findings) -> None:
        # Asked for first, before its record is made of the line.
        told = seen.kind
        said.append((told, seen.record.dialect, seen.record.kind, seen.record.line.decode()))

    plain = data_of([record])
    odd = plain.replace(b"{", b'{ "odd" : 1, "odd" : 2,', 1)
    watchers = RuleHooks(((look, None),))
    for data in (plain, plain[:-1], odd):
        gather_evidence(BytesSource(data), hooks=watchers)
    assert [each[:3] for each in said] == [(kind, dialect, kind)] * 3
    assert [each[3] for each in said] == [each.decode().rstrip("\n") for each in (plain, plain, odd)]
