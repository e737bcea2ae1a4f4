"""A rule whose hint sends people to `steno repair` tells the truth: a repair clears the finding."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.builders import session, text, thinking, tool
from tests.check.repair_checks import LOST, Records, at, late, talk

from steno.check.checkup import RULES, check
from steno.check.repair.repair_job import RepairOptions, run_repair
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.store.replace import StagingArea

NAME: Final = "aaaaaaaa-0000-4000-8000-000000000001"
PROMISED: Final = sorted(name for name, rule in RULES.items() if "`steno repair`" in rule.hint)


def changed(change: Callable[[Records], object]) -> bytes:
    records = talk().records()
    change(records)
    return b"".join(map(encode_line, records))


def message(number: int, **fields: Any) -> bytes:
    return changed(lambda records: at(records, number)["message"].update(fields))


def record(number: int, **fields: Any) -> bytes:
    return changed(lambda records: at(records, number).update(fields))


def without(number: int, field: str) -> bytes:
    return changed(lambda records: at(records, number).pop(field))


def in_first_line(odd: bytes) -> bytes:
    return b'{"odd":' + odd + b"," + talk().bytes()[1:]


def behind_first_line(odd: bytes) -> bytes:
    data = talk().bytes()
    first = data.index(b"\n") + 1
    return data[:first] + odd + data[first:]


def spliced() -> bytes:
    lines = talk().bytes().splitlines(keepends=True)
    return b"".join([lines[0], lines[1][: len(lines[1]) // 2], *lines[2:]])


def glued() -> bytes:
    return talk().bytes().replace(b"\n", b"", 1)


def compacted(*, title: bool) -> bytes:
    made = session(seed="compact").user("Old?").assistant("Old.").compact("All that was.")
    records = made.user("New?").assistant("New.").records()
    place = next(at for at, each in enumerate(records) if each.get("isCompactSummary"))
    summary = records.pop(place)
    follower = next(each for each in records if each.get("parentUuid") == summary["uuid"])
    follower["parentUuid"] = None
    if title:
        leaf = summary["parentUuid"]
        records.insert(place, {"type": "summary", "summary": "All that was.", "leafUuid": leaf})
    return b"".join(map(encode_line, records))


def nameless(records: Records) -> None:
    for each in records:
        if each["type"] == "assistant":
            each["message"].pop("id")


def mixed() -> bytes:
    made = session(seed="mixed").user("Why?").assistant(text("So."), thinking("Hm."), text("Yes."))
    records = made.records()
    answers = [each for each in records if each["type"] == "assistant"]
    answers[1]["message"]["id"] = "msg_other"
    return b"".join(map(encode_line, records))


def conflict(records: Records) -> None:
    later = at(records, 3)
    words = {**later["message"], "content": [text("Nothing.")]}
    records.insert(records.index(later), {**later, "message": words})


def snapshot(records: Records) -> None:
    uuid = at(records, 2)["uuid"]
    records.append({"type": "file-history-snapshot", "messageId": uuid, "uuid": uuid})


def swapped(records: Records) -> None:
    prompt, call, result, answer = (at(records, number) for number in range(4))
    result["parentUuid"] = prompt["uuid"]
    call["parentUuid"] = result["uuid"]
    answer["parentUuid"] = call["uuid"]


def unanswered(records: Records) -> None:
    result = at(records, 2)
    at(records, 3)["parentUuid"] = result["parentUuid"]
    records.remove(result)


def twice(records: Records) -> None:
    content = at(records, 2)["message"]["content"]
    content.append({**content[0], "content": "again"})


def reused() -> bytes:
    made = session(seed="ids").user("One?").assistant(tool("Bash", command="ls")).result("a.py")
    made.assistant("One.").user("Two?").assistant(tool("Bash", command="ls")).result("b.py")
    records = made.assistant("Two.").records()
    first = at(records, 1)["message"]["content"][0]["id"]
    at(records, 5)["message"]["content"][0]["id"] = first
    at(records, 6)["message"]["content"][0]["tool_use_id"] = first
    return b"".join(map(encode_line, records))


def beheaded(records: Records) -> None:
    at(records, 3)["parentUuid"] = None
    del records[: records.index(at(records, 3))]


BROKEN: Final[dict[str, Callable[[], bytes]]] = {
    "chain.cycle": lambda: changed(lambda records: at(records, 4).update(parentUuid=at(records, 6)["uuid"])),
    "chain.dangling": lambda: record(4, parentUuid=LOST),
    "chain.headless": lambda: changed(beheaded),
    "chain.lost-parent": lambda: record(5, parentUuid=None),
    "chain.self-parent": lambda: changed(lambda records: at(records, 5).update(parentUuid=at(records, 5)["uuid"])),
    "chain.unreachable": lambda: record(5, parentUuid=None),
    "compaction.no-summary": lambda: compacted(title=False),
    "compaction.title-form": lambda: compacted(title=True),
    "fields.dialect": lambda: record(1, message="words"),
    "fields.no-message": lambda: without(4, "message"),
    "fields.no-parent": lambda: without(4, "parentUuid"),
    "fields.no-uuid": lambda: without(4, "uuid"),
    "ids.conflict": lambda: changed(conflict),
    "ids.duplicate": lambda: changed(lambda records: records.append(at(records, 2))),
    "ids.file-name": lambda: talk().bytes().replace(talk().session_id.encode(), b"mine"),
    "ids.snapshot-collision": lambda: changed(snapshot),
    "line.control": lambda: in_first_line(b'"\x01"'),
    "line.glued": glued,
    "line.not-json": lambda: behind_first_line(b"no record\n"),
    "line.nul-run": lambda: behind_first_line(b"\0" * 512),
    "line.number": lambda: in_first_line(b"NaN"),
    "line.spliced": spliced,
    "line.torn": lambda: talk().bytes() + b'{"type":"user","mess',
    "message.empty-text": lambda: message(4, content=""),
    "message.image": lambda: message(4, content=[text("See."), {"type": "image", "source": 5}]),
    "message.mixed": mixed,
    "message.no-content": lambda: message(4, content=None),
    "message.no-id": lambda: changed(nameless),
    "message.unknown-block": lambda: message(4, content=[text("See."), {"type": "hologram"}]),
    "message.unsigned-thinking": lambda: message(5, content=[{"type": "thinking", "thinking": "Hm."}, text("Two.")]),
    "sidechain.all": lambda: changed(lambda records: [each.update(isSidechain=True) for each in records]),
    "time.missing": lambda: without(4, "timestamp"),
    "time.number": lambda: record(4, timestamp=1_763_184_000_000),
    "tools.duplicate-result": lambda: changed(twice),
    "tools.duplicate-use": reused,
    "tools.input": lambda: message(1, content=[{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": "ls"}]),
    "tools.orphan-result": lambda: message(
        4, content=[{"type": "tool_result", "tool_use_id": "toolu_none", "content": "x"}]
    ),
    "tools.result-before-use": lambda: changed(swapped),
    "tools.result-late": lambda: changed(late),
    "tools.unanswered": lambda: changed(unanswered),
}


@pytest.mark.parametrize("rule", PROMISED)
def test_a_finding_that_repair_is_said_to_mend_is_mended(rule: str) -> None:
    data = BROKEN[rule]()
    name = "mine" if rule == "ids.file-name" else NAME
    assert rule in {found.id for found in check(BytesSource(data), name=name).findings}
    with StagingArea() as bench:
        job = run_repair(BytesSource(data), name, RepairOptions(name=NAME), bench)
        after = check(job.source, name=NAME)
        assert rule not in {found.id for found in after.findings}
        assert job.is_verified
