"""Small sessions of every form, each with one thing wrong with one record, whichever it is."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    UNKNOWN,
    Records,
    boundary,
    call,
    marker,
    note,
    output,
    prompt,
    reply,
    summary,
    uuid,
    when,
)

__all__ = ["STORIES", "VARIATIONS", "cases"]

STORIES: Final[dict[str, Records]] = {
    "parallel": [
        prompt(1),
        call(2, "a", of="m"),
        call(3, "b", of="m"),
        output(4, "a", on=2),
        output(5, "b", on=3),
        reply(6),
        prompt(7),
        reply(8),
    ],
    "in turn": [prompt(1), call(2, "a"), output(3, "a"), call(4, "b"), output(5, "b"), reply(6)],
    "compacted": [prompt(1), reply(2), boundary(3), summary(4), prompt(5), call(6, "a"), output(7, "a"), reply(8)],
    "branched": [prompt(1), reply(2), prompt(3), reply(4), prompt(5, on=2), reply(6), marker(6, explicit=True)],
    "noted": [
        prompt(1),
        note(2, "attachment"),
        call(3, "a"),
        note(4, "progress"),
        output(5, "a", on=3),
        reply(6),
        note(7),
        prompt(8),
        reply(9),
    ],
    "with an agent": [
        prompt(1),
        call(2, "a"),
        prompt(3, on=0, isSidechain=True, agentId="x"),
        reply(4, isSidechain=True, agentId="x"),
        output(5, "a", on=2),
        reply(6),
    ],
}
"""Each with nothing wrong."""

_Change = Callable[[Records, int], object]


def _set(**fields: Any) -> _Change:
    return lambda records, at: records[at].update(deepcopy(fields))


def _without(field: str) -> _Change:
    return lambda records, at: records[at].pop(field, None)


def _self(records: Records, at: int) -> None:
    records[at]["parentUuid"] = records[at].get("uuid")


def _shift(seconds: int) -> _Change:
    return lambda records, at: records[at].update(timestamp=when(300 + at + seconds))


def _id_of(step: int) -> _Change:
    """Give a record the id of one before or behind it."""

    def change(records: Records, at: int) -> None:
        if 0 <= at + step < len(records):
            records[at]["uuid"] = records[at + step].get("uuid")

    return change


def _again(*, at_end: bool = False, **fields: Any) -> _Change:
    def change(records: Records, at: int) -> None:
        copy = {**deepcopy(records[at]), **fields}
        records.insert(len(records) if at_end else at + 1, copy)

    return change


def _swap(records: Records, at: int) -> None:
    if at + 1 < len(records):
        records[at], records[at + 1] = records[at + 1], records[at]


def _hang(on: int) -> _Change:
    def change(records: Records, at: int) -> None:
        if on < len(records) and "uuid" in records[on] and "parentUuid" in records[at]:
            records[at]["parentUuid"] = records[on]["uuid"]

    return change


VARIATIONS: Final[dict[str, _Change]] = {
    "nothing": lambda _records, _at: None,
    "left out": lambda records, at: records.pop(at),
    "cut before": lambda records, at: records.__delitem__(slice(0, at)),
    "parent null": _set(parentUuid=None),
    "no parent": _without("parentUuid"),
    "parent unknown": _set(parentUuid=UNKNOWN),
    "parent itself": _self,
    "no time": _without("timestamp"),
    "time a number": _set(timestamp=1767603607500),
    "time no time": _set(timestamp="yesterday"),
    "time local": _set(timestamp="2026-01-05T09:00:03"),
    "later by 2 minutes": _shift(-180),
    "no id": _without("uuid"),
    "id of the one before": _id_of(-1),
    "id of the one behind": _id_of(1),
    "twice": _again(),
    "again at the end": _again(at_end=True),
    "again later": _again(at_end=True, timestamp=when(20)),
    "again elsewhere": _again(at_end=True, parentUuid=uuid(1)),
    "to the end": lambda records, at: records.append(records.pop(at)),
    "to the front": lambda records, at: records.insert(0, records.pop(at)),
    "swapped": _swap,
    "unknown type": _set(type="zzz"),
    "no type": _without("type"),
    "a progress": _set(type="progress"),
    "marked": _set(isSidechain=True),
    "no message": _without("message"),
    "message null": _set(message=None),
    "message a text": _set(message="words"),
    "content null": lambda records, at: (records[at].get("message") or {}).update(content=None),
    "another session": _set(sessionId=UNKNOWN),
    "go on from here": lambda records, at: records.append(marker(at + 1)),
    "go on from here, explicit": lambda records, at: records.append(marker(at + 1, explicit=True)),
    **{f"hung on {on + 1}": _hang(on) for on in range(9)},
}
"""What is done to one record. The first is done to none."""
_OF_VALUES: Final = ("time", "message", "content", "no message", "no type", "again", "unknown type")
_FEW: Final = ("left out", "parent unknown", "to the end", "no time")


def _stories(name: str) -> tuple[str, ...]:
    """Return the stories to try a change on: all, unless the form of a session hardly matters."""
    if name.startswith("hung"):
        return ("parallel", "compacted", "with an agent")
    return ("in turn", "compacted", "noted") if name.startswith(_OF_VALUES) else tuple(STORIES)


def _varied(name: str, change: _Change) -> Iterator[tuple[str, Records]]:
    """Yield every story with a change of each of its records, where that changes anything."""
    for story in _stories(name):
        records = STORIES[story]
        for at in range(len(records)):
            made = deepcopy(records)
            change(made, at)
            if made != records or (name == "nothing" and not at):
                yield f"{story} {at + 1}", made


def cases() -> dict[str, list[Case]]:
    """Return the files by what was done to them."""
    groups: dict[str, list[Case]] = {}
    for name, change in VARIATIONS.items():
        groups[name] = [Case(story, made) for story, made in _varied(name, change)]
    for client in ("2.1.42", "2.1.200"):
        for name in ("nothing", *_FEW):
            groups[f"{name}, for {client}"] = [
                Case(story, made, wish={"client": client})
                for story, made in _varied(name, VARIATIONS[name])
                if not story.startswith(("in turn", "noted"))
            ]
    return groups
