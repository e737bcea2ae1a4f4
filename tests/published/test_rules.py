"""Each rule of the two dialects' documents, with the least file that breaks it."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.published.forms import Flat, Json, Nested, call

from steno.check.checkup import check
from steno.check.rules.dialects import DialectRules
from steno.format.source import BytesSource

Broken = Callable[[], bytes]


def flat(change: Callable[[list[Json]], Any]) -> Broken:
    """Return a correct session of 000 with something changed."""

    def made() -> bytes:
        file = Flat()
        file.user("Question")
        file.calls("Read")
        file.result("Result")
        file.says("Answer.")
        file.compacts("compacted", metadata={"preservedMessages": 9})
        change(file.records)
        return file.data()

    return made


def nested(change: Callable[[list[Json]], Any]) -> Broken:
    """Return a correct session of 004 with something changed."""

    def made() -> bytes:
        file = Nested()
        file.human("Question")
        file.says("I look.", call("toolu_1", "Read", file_path="a.py"))
        file.result("toolu_1", "Result")
        file.says("Answer.")
        change(file.records)
        return file.data()

    return made


def sidechain_of_000(records: list[Json]) -> None:
    records[0]["isSidechain"] = True
    records[2]["isSidechain"] = True


def sidechain_of_004(records: list[Json]) -> None:
    records[1]["isSidechain"] = True


def image(**source: Any) -> Callable[[list[Json]], None]:
    block = {"type": "image", "source": source}
    return lambda records: records[0]["message"].update(content=[block])


def call_and_result_without_id(records: list[Json]) -> None:
    del records[1]["message"]["content"][1]["id"]
    del records[2]["message"]["content"][0]["tool_use_id"]


def unflagged_prompt(records: list[Json]) -> None:
    for record in records[1:3]:
        record["isSidechain"] = True


def unflagged_answer(records: list[Json]) -> None:
    for record in records[:3]:
        record["isSidechain"] = True


def picture_in_a_result(records: list[Json]) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "%"}
    block = {"type": "image", "source": source}
    records[2]["message"]["content"][0]["content"] = [block]


BROKEN: dict[str, tuple[str, str, Broken]] = {
    **{
        f"000 has no {what}": (
            "dialect.unknown-type",
            "info",
            flat(lambda records, change=change: records[3].update(change)),
        )
        for what, change in {
            "type of that name": {"type": "novel"},
            "subtype of that name": {"subtype": "odd"},
            "subtype of the system of that name": {"type": "system", "subtype": "brand_new"},
        }.items()
    },
    "004 has no type of that name": (
        "dialect.unknown-type",
        "info",
        nested(lambda records: records[3].update(type="novel")),
    ),
    **{
        f"000 {name} says nothing": (
            "dialect.required-field",
            "error",
            flat(lambda records, name=name: records[3].update({name: ""})),
        )
        for name in ("uuid", "timestamp", "sessionId", "type")
    },
    **{
        f"004 rule 1, {name} says nothing": (
            "dialect.required-field",
            "error",
            nested(lambda records, name=name: records[3].update({name: ""})),
        )
        for name in ("uuid", "sessionId", "type")
    },
    "000 rule 4, sessionId": ("dialect.message-shape", "error", flat(lambda records: records[3].update(sessionId=123))),
    "000 rule 6, an answer of the main conversation": (
        "dialect.sidechain",
        "error",
        flat(lambda records: records[3].update(isSidechain=True)),
    ),
    "004 rule 5, an answer of the main conversation": (
        "dialect.sidechain",
        "error",
        nested(lambda records: records[3].update(isSidechain=True)),
    ),
    "000 rule 5, an empty name": ("dialect.tool-fields", "error", flat(lambda records: records[1].update(toolName=""))),
    "000 empty metadata of conversation_compacted": (
        "dialect.metadata",
        "warning",
        flat(lambda records: records[4].update(metadata={})),
    ),
    "000 rule 6, the prompt": ("dialect.sidechain", "error", flat(unflagged_prompt)),
    "004 rule 5, the prompt": ("dialect.sidechain", "error", nested(unflagged_prompt)),
    "004 rule 5, the last answer": ("dialect.sidechain", "error", nested(unflagged_answer)),
    "004 rule 4, no ids at all": ("dialect.unmatched-result", "error", nested(call_and_result_without_id)),
    "004 rule 6, a call without a name": (
        "dialect.content",
        "error",
        nested(lambda records: records[1]["message"]["content"][1].pop("name")),
    ),
    "004 rule 6, a text without text": (
        "dialect.content",
        "error",
        nested(lambda records: records[1]["message"]["content"][0].pop("text")),
    ),
    "004 rule 7, in a result": ("dialect.image", "error", nested(picture_in_a_result)),
    "004 timestamp in seconds": (
        "dialect.timestamp",
        "error",
        nested(lambda records: records[3].update(timestamp=1738160130)),
    ),
    **{
        f"000 requires {name}": (
            "dialect.required-field",
            "error",
            flat(lambda records, name=name: records[3].pop(name)),
        )
        for name in ("uuid", "timestamp", "sessionId")
    },
    "000 requires type": ("dialect.required-field", "error", flat(lambda records: records[3].pop("type"))),
    "000 requires message of compact_system": (
        "dialect.required-field",
        "error",
        flat(lambda records: records[4].pop("message")),
    ),
    "000 requires metadata of conversation_compacted": (
        "dialect.metadata",
        "warning",
        flat(lambda records: records[4].pop("metadata")),
    ),
    "000 has four operations": (
        "dialect.operation",
        "error",
        flat(lambda records: records[4].update(message="conversation_folded")),
    ),
    "000 requires message of a user": (
        "dialect.no-message",
        "warning",
        flat(lambda records: records[0].pop("message")),
    ),
    "000 requires message of the system": (
        "dialect.no-message",
        "warning",
        flat(lambda records: records[2].pop("message")),
    ),
    "000 rule 1": ("dialect.duplicate-uuid", "error", flat(lambda records: records[3].update(uuid="msg-001"))),
    "000 rule 2": ("dialect.timestamp", "error", flat(lambda records: records[3].update(timestamp="yesterday"))),
    "000 rule 2, a number": (
        "dialect.timestamp",
        "error",
        flat(lambda records: records[3].update(timestamp=1738160130123)),
    ),
    "a message of the client in a file of 000": (
        "dialect.mixed",
        "warning",
        flat(lambda records: records[0].update(message={"role": "user", "content": "Question"})),
    ),
    "a message of 004 in a file of 000": (
        "dialect.mixed",
        "warning",
        flat(lambda records: records[0].update(type="human", message={"content": "Question"})),
    ),
    "000 rule 3": ("dialect.missing-parent", "error", flat(lambda records: records[3].update(parentUuid="msg-999"))),
    "000 rule 4, message": (
        "dialect.message-shape",
        "error",
        flat(lambda records: records[3].update(message={"text": "Answer."})),
    ),
    "000 rule 4, flag": ("dialect.message-shape", "error", flat(lambda records: records[3].update(isSidechain="no"))),
    "000 rule 4, metadata": ("dialect.message-shape", "error", flat(lambda records: records[4].update(metadata=[15]))),
    "000 rule 5, name": ("dialect.tool-fields", "error", flat(lambda records: records[1].pop("toolName"))),
    "000 rule 5, arguments": ("dialect.tool-fields", "error", flat(lambda records: records[1].pop("toolArguments"))),
    "000 rule 6": ("dialect.sidechain", "error", flat(sidechain_of_000)),
    "000 a result follows its call": (
        "dialect.unmatched-result",
        "error",
        flat(lambda records: records[1].update(subtype="response", message="No call.")),
    ),
    **{
        f"004 rule 1, {name}": (
            "dialect.required-field",
            "error",
            nested(lambda records, name=name: records[3].pop(name)),
        )
        for name in ("uuid", "parentUuid", "sessionId", "type", "timestamp", "message")
    },
    "004 timestamp": (
        "dialect.timestamp",
        "error",
        nested(lambda records: records[3].update(timestamp="2025-01-27T10:00:00Z")),
    ),
    "004 rule 2": ("dialect.duplicate-uuid", "error", nested(lambda records: records[3].update(uuid="msg_human_001"))),
    "004 rule 3": (
        "dialect.missing-parent",
        "error",
        nested(lambda records: records[3].update(parentUuid="msg_nowhere")),
    ),
    "000 rule 3, itself": (
        "dialect.cycle",
        "error",
        flat(lambda records: records[3].update(parentUuid=records[3]["uuid"])),
    ),
    "004 rule 3, a circle": (
        "dialect.cycle",
        "error",
        nested(lambda records: records[0].update(parentUuid=records[3]["uuid"])),
    ),
    "004 rule 4": (
        "dialect.unmatched-result",
        "error",
        nested(lambda records: records[1]["message"]["content"][1].update(id="toolu_9")),
    ),
    "004 rule 4, a call behind its result": (
        "dialect.unmatched-result",
        "error",
        nested(lambda records: records.insert(1, records.pop(2))),
    ),
    "004 rule 4, no id": (
        "dialect.unmatched-result",
        "error",
        nested(lambda records: records[2]["message"].update(content="Result")),
    ),
    "004 rule 5": ("dialect.sidechain", "error", nested(sidechain_of_004)),
    "004 rule 6, a number": (
        "dialect.content",
        "error",
        nested(lambda records: records[3]["message"].update(content=7)),
    ),
    "004 rule 6, a list of text": (
        "dialect.content",
        "error",
        nested(lambda records: records[3]["message"].update(content=["Answer."])),
    ),
    "004 rule 6, no object": (
        "dialect.content",
        "error",
        nested(lambda records: records[3].update(message=["Answer."])),
    ),
    "004 rule 7, no base64": (
        "dialect.image",
        "error",
        nested(image(type="base64", media_type="image/png", data="not base64!")),
    ),
    "004 rule 7, no media type": ("dialect.image", "error", nested(image(type="base64", data="aGk="))),
    "004 rule 7, another media type": (
        "dialect.image",
        "error",
        nested(image(type="base64", media_type="text/plain", data="aGk=")),
    ),
    "004 rule 7, an address": ("dialect.image", "error", nested(image(type="url", url="file:///a.png"))),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_breach_is_found_where_it_lies(rule: str) -> None:
    wanted, severity, made = BROKEN[rule]
    found = check(BytesSource(made())).findings
    assert (wanted, severity) in [(each.id, each.severity) for each in found]


@pytest.mark.parametrize("file", [flat(lambda _: None), nested(lambda _: None)])
def test_the_files_are_correct_before_they_are_broken(file: Broken) -> None:
    findings = check(BytesSource(file())).findings
    assert [each.id for each in findings if each.severity != "info"] == []


def test_an_empty_uuid_is_no_circle() -> None:
    made = flat(lambda records: records[3].update(uuid=""))()
    assert "dialect.cycle" not in [each.id for each in check(BytesSource(made)).findings]


@pytest.mark.parametrize("time", ["20250127T100003Z", "2025-01-27T10:00:03,5+02:00"])
def test_every_form_of_iso_8601_is_a_time(time: str) -> None:
    made = flat(lambda records: records[3].update(timestamp=time))()
    assert [each.id for each in check(BytesSource(made)).findings] == ["fields.dialect"]


def test_every_rule_is_tried() -> None:
    assert {rule.id for rule in DialectRules.rules} == {wanted for wanted, _, _ in BROKEN.values()}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_file_is_read_all_the_same(rule: str) -> None:
    """Whatever is wrong, the other records are read."""
    data = BROKEN[rule][2]()
    evidence = check(BytesSource(data))
    lines = data.count(b"\n")
    assert len(evidence.as_written.transcript.nodes) == lines
    assert len(evidence.transcript.nodes) >= lines
