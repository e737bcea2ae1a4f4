"""Ids of records, sessions and files; fields that records need; figures of responses."""

from typing import Any

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    SESSION,
    UNKNOWN,
    Records,
    call,
    calls,
    marker,
    note,
    output,
    prompt,
    reply,
    snapshot,
    thought,
    title,
    uuid,
    when,
    words,
)

__all__ = ["cases"]


def _talk() -> Records:
    return [prompt(1), reply(2), prompt(3), reply(4)]


def _used(*figures: dict[str, Any] | None, of: str = "m", **more: Any) -> Records:
    """Return a response whose lines have these figures."""
    made = [prompt(1)]
    for number, usage in enumerate(figures, 2):
        line = reply(number, of=of, **more)
        if usage is not None:
            line["message"]["usage"] = usage
        made.append(line)
    return made


def _tokens(out: Any, given: Any = 5, made: Any = 6, read: Any = 7) -> dict[str, Any]:
    return {
        "input_tokens": given,
        "output_tokens": out,
        "cache_creation_input_tokens": made,
        "cache_read_input_tokens": read,
    }


def _of_version(version: str, stop: Any = None, **more: Any) -> Records:
    made = _used(_tokens(1), version=version, **more)
    made[0]["version"] = version
    made[1]["message"]["stop_reason"] = stop
    return made


def _sessions(*names: str) -> Records:
    made = [prompt(1), reply(2), prompt(3), reply(4), prompt(5), reply(6)]
    for record, name in zip(made, names, strict=False):
        record["sessionId"] = name
    return made


def cases() -> dict[str, list[Case]]:
    """Return the files by what is looked at."""
    other = "5e551017-0000-4000-8000-000000000002"
    third = "5e551017-0000-4000-8000-000000000003"
    named = {"uuid": uuid(3)}
    synthetic = _used(_tokens(9), _tokens(1))
    for line in synthetic[1:]:
        line["message"]["model"] = "<synthetic>"
    return {
        "the file's name": [
            Case("none", _talk(), called=""),
            Case("no UUID, as the records say", _sessions(*["sess-1"] * 6), called="sess-1"),
            Case("no UUID, the records say else", _talk(), called="sess-1"),
            Case("no UUID, the first says nothing", _sessions("", *["sess-1"] * 5), called="sess-1"),
            Case("another UUID", _talk(), called=other),
            Case("an agent's", _talk(), called="agent-x"),
            Case("an agent's, marked", [each | {"isSidechain": True} for each in _talk()], "agent-x"),
            Case("no UUID, renamed", _sessions(*["s"] * 6), "s", wish={"name": SESSION}),
            Case("a UUID, renamed", _talk(), wish={"name": other}),
        ],
        "sessions": [
            Case("two", _sessions(SESSION, SESSION, other)),
            Case("three", _sessions(other, SESSION, third)),
            Case("four", _sessions(other, SESSION, third, UNKNOWN)),
            Case("none", _sessions(*[""] * 6)),
            Case("one and none", _sessions("", SESSION, "")),
            Case("none of them the file's", _sessions(*[other] * 3, *[third] * 3)),
            Case("none of them the file's, the first nothing", _sessions("", *[other] * 5)),
        ],
        "ids": [
            Case("no UUID", [prompt(1, uuid="x"), reply(2, parentUuid="x")]),
            Case("two no UUIDs", [prompt(1, uuid="x"), reply(2, uuid="y", parentUuid="x")]),
            Case("three no UUIDs", [*[prompt(n, on=0, uuid=f"x{n}") for n in (1, 2, 3)]]),
            Case("capitals", [prompt(1, uuid=uuid(1).replace("8", "A")), reply(2, on=0)]),
            Case("empty", [prompt(1, uuid=""), reply(2, parentUuid="")]),
            Case("a number", [prompt(1, uuid=5), reply(2, on=0)]),
        ],
        "one id": [
            Case("the same twice", [*_talk(), prompt(3)]),
            Case("the same thrice", [*_talk(), prompt(3), prompt(3)]),
            Case("at another time", [*_talk(), prompt(3, timestamp=when(9))]),
            Case("with another parent", [*_talk(), prompt(3, on=1)]),
            Case("with another field", [*_talk(), prompt(3, slug="x")]),
            Case("with a field less", [prompt(1), reply(2), prompt(3, slug="x"), reply(4), prompt(3)]),
            Case("with other words", [*_talk(), prompt(3, "Else?")]),
            Case("with other words, thrice", [*_talk(), prompt(3, "Else?"), prompt(3, "Or?")]),
            Case("of another type", [*_talk(), note(3, "attachment")]),
            Case("of another subtype", [*_talk(), note(5), note(5, subtype="x")]),
            Case(
                "of an attachment with other data",
                [*_talk(), note(5, "attachment"), note(5, "attachment", attachment=1)],
            ),
            Case("of a snapshot, behind", [*_talk(), snapshot(3, **named)]),
            Case("of a snapshot, before", [*_talk()[:2], snapshot(3, **named), *_talk()[2:]]),
            Case("of two snapshots", [*_talk(), snapshot(3, uuid=uuid(9)), snapshot(4, uuid=uuid(9))]),
            Case("of two snapshots and a prompt", [*_talk(), snapshot(3, **named), snapshot(4, **named)]),
            Case("abandoned", [prompt(1), prompt(9, on=1), prompt(9, "x", on=1), prompt(3, on=1), reply(4)]),
            Case("with the other first in time", [*_talk(), reply(4, timestamp=when(0)), prompt(5)]),
        ],
        "fields": [
            Case("no type", [prompt(1), reply(2), {"x": 1}, prompt(3), reply(4)]),
            Case("no type but an id", [*_talk(), {"uuid": uuid(5), "parentUuid": uuid(4)}]),
            Case("no type but a message", [*_talk(), {"message": {"role": "user", "content": "x"}}]),
            Case("no type, an answer", [*_talk(), _untyped(reply(5))]),
            Case("no type, an answer without a role", [*_talk(), _untyped(call(5, "a"), role=None)]),
            Case("no type, words of nobody", [*_talk(), _untyped(prompt(5), role="x")]),
            Case("no type, a text for a message", [*_talk(), {"message": "words"}]),
            Case("no type, null for a message", [*_talk(), {"message": None, "x": 1}]),
            Case("type empty", [*_talk(), prompt(5, type="")]),
            Case("type a number", [*_talk(), prompt(5, type=5)]),
            Case("no id", [prompt(1), reply(2, uuid=None), prompt(3), reply(4)]),
            Case("no id, the last", [*_talk(), prompt(5, uuid=None)]),
            Case("no id, an agent's", [*_talk(), prompt(5, uuid=None, isSidechain=True)]),
            Case("no message, an agent's", [*_talk(), _less(prompt(5, isSidechain=True), "message")]),
            Case("no message, an answer", [prompt(1), _less(reply(2), "message"), prompt(3), reply(4)]),
            Case("no cwd", [each | {"cwd": None} for each in _talk()]),
            Case("odd types", [prompt(1, cwd=5, gitBranch=[1]), reply(2, isSidechain="no")]),
            Case("odd flags", [prompt(1, isMeta="x", version=5), reply(2, agentId=7), prompt(3)]),
            Case("of a version", [prompt(1, version="2.1.325"), reply(2, version="2.1.325")]),
            Case("of a version, twice", [each | {"version": "2.1.325"} for each in _talk()]),
            Case("of an old version", [each | {"version": "1.0.128"} for each in _talk()]),
            Case("of no version", [_less(each, "version") for each in _talk()]),
            Case(
                "of a version, later of none",
                [prompt(1, version="2.1.325"), *[_less(each, "version") for each in _talk()[1:]]],
            ),
            Case(
                "of a version, others",
                [
                    title("x"),
                    {"type": "summary"},
                    {"type": "queue-operation", "operation": "enqueue"},
                    {"type": "queue-operation", "operation": 5},
                    {"type": "mode"},
                    {"type": "zzz", "x": 1},
                    *[each | {"version": "2.1.325"} for each in _talk()],
                    note(5, "attachment", version="2.1.325"),
                    note(6, "attachment", version="2.1.325", attachment={"type": "file"}),
                    note(7, "progress", version="2.1.325"),
                    note(8, version="2.1.325", subtype="api_error"),
                    note(9, version="2.1.325", subtype=""),
                    prompt(10, version="2.1.325", isMeta=True),
                    prompt(11, version="2.1.325", isCompactSummary=True),
                    call(12, "a", version="2.1.325"),
                    output(13, "a", version="2.1.325"),
                    reply(14, version="2.1.325", isApiErrorMessage=True),
                    reply(15, [{"type": "thinking", "thinking": "x", "signature": "s"}], version="2.1.325"),
                ],
            ),
            Case("a text for a message", [prompt(1, message="words"), reply(2, message="answer")]),
            Case(
                "of the other description",
                [
                    {"type": "human", "message": {"content": "x"}, "uuid": uuid(1), "timestamp": 5},
                    {
                        "type": "assistant",
                        "message": {"content": "y"},
                        "uuid": uuid(2),
                        "timestamp": 6,
                        "parentUuid": uuid(1),
                    },
                    {"type": "compact_prelude", "content": "z", "uuid": uuid(3), "parentUuid": uuid(2), "timestamp": 7},
                    {"type": "tool_result", "content": "z", "uuid": uuid(4), "parentUuid": uuid(3), "timestamp": 8},
                ],
            ),
            Case(
                "of the first description",
                [
                    {"type": "user", "message": "x", "uuid": uuid(1), "timestamp": when(1)},
                    {
                        "type": "assistant",
                        "subtype": "thinking",
                        "message": "y",
                        "uuid": uuid(2),
                        "parentUuid": uuid(1),
                        "timestamp": when(2),
                    },
                    {
                        "type": "assistant",
                        "subtype": "tool_use",
                        "toolName": "Bash",
                        "toolArguments": {"command": "ls"},
                        "message": "z",
                        "uuid": uuid(3),
                        "parentUuid": uuid(2),
                        "timestamp": when(3),
                    },
                    {
                        "type": "system",
                        "subtype": "tool_result",
                        "message": "out",
                        "uuid": uuid(4),
                        "parentUuid": uuid(3),
                        "timestamp": when(4),
                    },
                    {
                        "type": "assistant",
                        "message": "done",
                        "uuid": uuid(5),
                        "parentUuid": uuid(4),
                        "timestamp": when(5),
                    },
                ],
            ),
            Case(
                "a text on what is no message",
                [*_talk(), note(5, message="words"), note(6, "attachment", message={"role": "user"})],
            ),
            Case("a marker of an agent", [*_talk(), prompt(5, on=0, isSidechain=True), marker(5)]),
            Case("a marker of nothing", [*_talk(), marker(0)]),
            Case("a marker of an unknown", [*_talk(), {**marker(0), "leafUuid": UNKNOWN}]),
        ],
        "kinds of one form": [
            Case(
                "attachments",
                [
                    _told(note(n, "attachment", attachment={"type": kind}))
                    for n, kind in enumerate(("date", "hook_success", "remote_session_change", "date", "zzz"), 1)
                ],
            ),
            Case(
                "attachments of no type",
                [
                    _told(note(n, "attachment", attachment={"type": kind}))
                    for n, kind in enumerate((5, "date", None), 1)
                ],
            ),
            Case(
                "progress",
                [
                    _told(note(n, "progress", data={"type": kind}), "2.1.42")
                    for n, kind in enumerate(("hook_progress", "bash_progress", "zzz"), 1)
                ],
            ),
            Case(
                "operations",
                [
                    {"type": "queue-operation", "operation": kind, "version": "2.1.325"}
                    for kind in ("enqueue", "remove", "enqueue", "zzz")
                ],
            ),
            Case(
                "operations of no name",
                [{"type": "queue-operation", "operation": kind, "version": "2.1.325"} for kind in (5, 6, "remove")],
            ),
            Case(
                "prompts",
                [
                    _told(prompt(1, isMeta=False)),
                    _told(prompt(2, isMeta=True)),
                    _told(output(3, "a", isMeta=False)),
                    _told(output(4, "b", isMeta=True)),
                ],
            ),
            Case(
                "answers",
                [
                    _told(prompt(1)),
                    *[
                        _told(reply(n, content))
                        for n, content in enumerate(
                            ([words("x")], [thought()], calls("a"), [thought(), words("x")], "text"), 2
                        )
                    ],
                ],
            ),
            Case(
                "systems",
                [
                    _told(note(n, subtype=kind))
                    for n, kind in enumerate(("informational", "api_error", "turn_duration"), 1)
                ],
            ),
            Case(
                "of two versions", [_told(prompt(1), "2.0.76"), _told(prompt(2), "2.1.325"), _told(prompt(3), "2.0.76")]
            ),
            Case("a field missing twice", [_told(reply(1, on=0)), _told(reply(2, slug="x")), _told(call(3, "a"))]),
            Case(
                "a type odd twice",
                [_told(prompt(1, cwd=5)), _told(prompt(2, cwd=5, slug="x")), _told(reply(3, cwd=[1]))],
            ),
        ],
        "figures": [
            Case("the same", _used(_tokens(1), _tokens(1))),
            Case("growing", _used(_tokens(1), _tokens(2))),
            Case("output falls", _used(_tokens(2), _tokens(1))),
            Case("input falls", _used(_tokens(1, 5), _tokens(1, 4))),
            Case("written falls", _used(_tokens(1, 5, 6), _tokens(1, 5, 5))),
            Case("read falls", _used(_tokens(1, 5, 6, 7000), _tokens(1, 5, 6, 6000))),
            Case("falls twice", _used(_tokens(3), _tokens(2), _tokens(1))),
            Case("falls, then rises", _used(_tokens(3), _tokens(2), _tokens(4))),
            Case("rises, then falls", _used(_tokens(3), _tokens(4), _tokens(3))),
            Case("none, then some", _used(None, _tokens(1), _tokens(0))),
            Case("one figure missing", _used({"output_tokens": 2}, {"output_tokens": 1})),
            Case("texts", _used(_tokens("2"), _tokens("1"))),
            Case("some, then texts", _used(_tokens(2), _tokens("1"))),
            Case("null", _used(_tokens(None), _tokens(3), _tokens(None))),
            Case("no object", _used({}, None, _tokens(1))),
            Case("a list", [prompt(1), reply(2, message={**reply(2)["message"], "usage": [1]})]),
            Case("of what the client wrote itself", synthetic),
            Case("of two responses", [*_used(_tokens(5)), *_used(_tokens(1), of="n")[1:]]),
        ],
        "a placeholder": [
            Case("2.0.99", _of_version("2.0.99")),
            Case("2.1.0", _of_version("2.1.0")),
            Case("2.1.20", _of_version("2.1.20")),
            Case("2.1.52", _of_version("2.1.52")),
            Case("2.1.53", _of_version("2.1.53")),
            Case("2.2.0", _of_version("2.2.0")),
            Case("2.1.20, ended", _of_version("2.1.20", "end_turn")),
            Case("no version", _of_version("")),
            Case("twice", [*_of_version("2.1.20"), *_of_version("2.1.30", of="n")[1:]]),
            Case("later", [*_of_version("2.1.60"), *_of_version("2.1.30", of="n")[1:]]),
            Case("without figures", [prompt(1, version="2.1.20"), reply(2, version="2.1.20")]),
        ],
    }


def _told(record: dict[str, Any], version: str = "2.1.325") -> dict[str, Any]:
    return {**record, "version": version}


def _untyped(record: dict[str, Any], **message: Any) -> dict[str, Any]:
    del record["type"]
    return {**record, "message": {**record["message"], **message}}


def _less(record: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != field}
