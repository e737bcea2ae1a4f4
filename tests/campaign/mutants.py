"""Damaged sessions by the thousand, and what must hold for each of them."""

import json
import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tests.builders import VERSIONS, session, text, thinking, tool

from steno.check.checkup import check
from steno.check.repair.repair_job import repair_bytes
from steno.format.encode import encode_line
from steno.format.lines import read_bytes
from steno.format.records import Record
from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed
from steno.session.session import Session as Opened
from steno.session.transcript import load

Records: TypeAlias = list[dict[str, Any]]

_TOKENS: Final = (
    *(b"\0", b"\n", b"\r", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e999"),
    *(b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud800", b"-0", b"NaN", b'{"', b'"}', b"}{"),
    *(b"9" * 30, b'"uuid":"x",', b'"type":5,', b"\xe2\x80\xa8", b"[" * 70, b'"parentUuid":null,'),
)
_UNKNOWN: Final = "bbbbbbbb-0000-4000-8000-00000000dead"


def dice(seed: str) -> random.Random:
    """Return chance that is the same for the same seed."""
    return random.Random(seed)


def story(version: str) -> bytes:
    """Return a session with calls, parallel calls, a compaction and a branch."""
    made = session(version, seed="campaign").user("Where?")
    made.assistant(thinking("Look."), text("I look."), tool("Read", file_path="/a.py"))
    made.result("x = 1").assistant("There.").done().compact("It is there.")
    made.user("Plot it.").assistant(tool("Bash", command="plot"), tool("Grep", pattern="x"))
    made.results("ok", "a.py").assistant("Plotted.").done()
    made.user("Print it.").assistant("No printer.").done().rewind(len(made.prompts) - 1)
    return made.user("And now?").assistant("All.").done().bytes()


STORIES: Final = [story(version) for version in VERSIONS]


def byte_mutant(dice: random.Random) -> bytes:
    """Return a session after some changes to its bytes."""
    data = bytearray(dice.choice(STORIES))
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << dice.randrange(8)
            case 1:
                del data[at : at + dice.choice((1, 2, 16, 300, 4096))]
            case 2:
                data[at:at] = dice.choice(_TOKENS)
            case 3:
                token = dice.choice(_TOKENS)
                data[at : at + len(token)] = token
            case 4:
                data[at:at] = bytes(dice.randint(1, 700))
            case 5:
                start = dice.randrange(len(data) + 1)
                data[at:at] = data[start : start + dice.choice((1, 40, 600, 4096))]
            case _:
                del data[at - at % 4096 if dice.random() < 0.5 and at > 4096 else at :]
    return bytes(data)


def _drop(records: Records, dice: random.Random) -> None:
    del records[dice.randrange(len(records))]


def _duplicate(records: Records, dice: random.Random) -> None:
    records.insert(dice.randrange(len(records) + 1), dict(dice.choice(records)))


def _reorder(records: Records, dice: random.Random) -> None:
    record = records.pop(dice.randrange(len(records)))
    records.insert(dice.randrange(len(records) + 1), record)


def _retarget(records: Records, dice: random.Random) -> None:
    dice.choice(records)["parentUuid"] = dice.choice(records).get("uuid")


def _lose_parent(records: Records, dice: random.Random) -> None:
    dice.choice(records)["parentUuid"] = _UNKNOWN


def _swap_ids(records: Records, dice: random.Random) -> None:
    one, other = dice.choice(records), dice.choice(records)
    one["uuid"], other["uuid"] = other.get("uuid"), one.get("uuid")


def _cycle(records: Records, dice: random.Random) -> None:
    members = dice.sample(records, min(len(records), dice.randint(2, 4)))
    for one, other in zip(members, [*members[1:], members[0]], strict=True):
        one["parentUuid"] = other.get("uuid")


def _own_parent(records: Records, dice: random.Random) -> None:
    record = dice.choice(records)
    record["parentUuid"] = record.get("uuid")


def _second_root(records: Records, dice: random.Random) -> None:
    dice.choice(records)["parentUuid"] = None


def _diamond(records: Records, dice: random.Random) -> None:
    top = dice.choice(records).get("uuid")
    for record in dice.sample(records, min(len(records), 3)):
        record["parentUuid"] = top


def _long_chain(records: Records, dice: random.Random) -> None:
    base = dice.choice(records)
    parent = base.get("uuid")
    for number in range(dice.randint(50, 300)):
        link = {**base, "uuid": f"aaaaaaaa-0000-4000-8000-{number:012}", "parentUuid": parent}
        records.append(link)
        parent = link["uuid"]


def _swap_calls(records: Records, dice: random.Random) -> None:
    blocks = [
        block
        for record in records
        if isinstance(record.get("message"), dict) and isinstance(record["message"].get("content"), list)
        for block in record["message"]["content"]
        if isinstance(block, dict) and ("tool_use_id" in block or block.get("type") == "tool_use")
    ]
    if blocks:
        one, other = dice.choice(blocks), dice.choice(blocks)
        key = "tool_use_id" if "tool_use_id" in one else "id"
        one[key] = other.get("tool_use_id", other.get("id"))


def _same_response(records: Records, dice: random.Random) -> None:
    said = [record["message"] for record in records if isinstance(record.get("message"), dict)]
    if said:
        dice.choice(said)["id"] = dice.choice(said).get("id")


STRUCTURAL: Final[dict[str, Callable[[Records, random.Random], None]]] = {
    change.__name__.strip("_"): change
    for change in (
        *(_drop, _duplicate, _reorder, _retarget, _lose_parent, _swap_ids, _cycle, _own_parent),
        *(_second_root, _diamond, _long_chain, _swap_calls, _same_response),
    )
}


def changed(name: str, dice: random.Random) -> bytes:
    """Return a session after one named change to its records."""
    records: Records = [json.loads(line) for line in dice.choice(STORIES).splitlines()]
    STRUCTURAL[name](records, dice)
    return b"".join(encode_line(record) for record in records)


def structural_mutant(dice: random.Random) -> tuple[list[str], bytes]:
    """Return a session after some changes to its records, and the names of the changes."""
    records: Records = [json.loads(line) for line in dice.choice(STORIES).splitlines()]
    names = [dice.choice(list(STRUCTURAL)) for _ in range(dice.choice((1, 1, 2, 3, 5)))]
    for name in names:
        if len(records) > 1:
            STRUCTURAL[name](records, dice)
    return names, b"".join(encode_line(record) for record in records)


def holds(data: bytes) -> None:
    """Read, check and repair; every byte is accounted for and the repair settles everything."""
    _is_tiled(data)
    opened = Opened(load(BytesSource(data)), name="00000000-0000-4000-8000-000000000000")
    opened.as_resumed()
    opened.turns()
    assert opened.branches is not None
    for finding in check(BytesSource(data)).findings:
        span = finding.location.span
        assert 0 <= span.offset <= span.offset + span.length <= len(data), finding
    done = repair_bytes(data)
    assert done.settled
    _is_tiled(done.data)
    found = {one.id for one in check(BytesSource(done.data)).findings if one.severity == "error"}
    sent = as_resumed(done.transcript, LATEST, prompt="Go on.")
    if sent is None:
        assert found & {"chain.empty"}, found
    else:
        assert found == set()
        assert find_breaches(sent) == []
    again = repair_bytes(done.data)
    assert again.edits == []
    assert again.data == done.data


def _is_tiled(data: bytes) -> None:
    place = 0
    for piece in read_bytes(data):
        assert piece.offset == place
        place += piece.length
        if isinstance(piece, Record):
            assert piece.line in data
    assert place == len(data)
