"""When records were written: every form of a time, clocks that go back, and lost parents."""

from typing import Any, Final

from tests.check.check_answers import Case
from tests.check.small_sessions import UNKNOWN, Records, call, note, output, prompt, reply, title, uuid, when

__all__ = ["cases"]

_STAMPS: Final[dict[str, Any]] = {
    "usual": "2026-01-05T09:00:03.000Z",
    "without thousandths": "2026-01-05T09:00:03Z",
    "without seconds": "2026-01-05T09:00Z",
    "six digits": "2026-01-05T09:00:03.000123Z",
    "one digit": "2026-01-05T09:00:03.5Z",
    "a comma": "2026-01-05T09:00:03,500Z",
    "an offset": "2026-01-05T10:00:03.000+01:00",
    "an offset without a colon": "2026-01-05T10:00:03.000+0100",
    "an offset back": "2026-01-05T04:00:03.000-05:00",
    "no zone": "2026-01-05T09:00:03.000",
    "a space": "2026-01-05 09:00:03.000Z",
    "only a day": "2026-01-05",
    "no such day": "2026-02-30T09:00:03.000Z",
    "no such hour": "2026-01-05T24:00:03.000Z",
    "no such month": "2026-13-05T09:00:03.000Z",
    "words": "yesterday",
    "nothing": "",
    "very long": "2026-01-05T09:00:03.000Z" * 3,
    "a newline": "2026-01-05T09:00:03.000Z\n",
    "milliseconds": 1767603603000,
    "seconds": 1767603603,
    "a fraction": 1767603603000.5,
    "zero": 0,
    "below zero": -5,
    "a list": [1],
    "true": True,
}


def _talk() -> Records:
    return [prompt(1), reply(2), prompt(3), reply(4)]


def _at(line: int, stamp: Any, records: Records | None = None) -> Records:
    made = _talk() if records is None else records
    made[line - 1]["timestamp"] = stamp
    return made


def _times(*seconds: float) -> Records:
    made = [prompt(1), reply(2), prompt(3), reply(4), prompt(5), reply(6)]
    for record, second in zip(made, seconds, strict=False):
        record["timestamp"] = when(second)
    return made


def _bridged(*seconds: float | None, lost: int = 4) -> Records:
    """Return six records of which one lost its parent, each with a time."""
    made = _times()
    for record, second in zip(made, seconds, strict=True):
        record["timestamp"] = None if second is None else when(second)
    made[lost - 1]["parentUuid"] = UNKNOWN
    return made


def cases() -> dict[str, list[Case]]:
    """Return the files by what is said about time."""
    none = [record | {"timestamp": None} for record in _talk()]
    return {
        "a time": [
            *(Case(name, _at(3, stamp)) for name, stamp in _STAMPS.items()),
            *(Case(f"{name}, first", _at(1, stamp)) for name, stamp in list(_STAMPS.items())[-8:]),
        ],
        "a time of a note": [
            Case(name, _at(3, stamp, [prompt(1), reply(2), note(3), prompt(4), reply(5)]))
            for name, stamp in _STAMPS.items()
            if name in ("words", "milliseconds", "no zone", "usual")
        ],
        "a time of an agent": [
            Case(name, [*_talk(), prompt(5, on=0, isSidechain=True, agentId="x", timestamp=stamp)])
            for name, stamp in _STAMPS.items()
            if name in ("words", "milliseconds", "usual")
        ],
        "no time": [
            Case("the first", _at(1, None)),
            Case("the last", _at(4, None)),
            Case("two", _at(2, None, _at(3, None))),
            Case("all", none),
            Case("all, written then", none, wish={"written": 1767603600.0}),
            Case("all but a title", [title("x"), *none]),
            Case("a call", [prompt(1), call(2, "a", timestamp=None), prompt(3), reply(4)]),
            Case("a result", [prompt(1), call(2, "a"), output(3, "a", timestamp=None), reply(4)]),
        ],
        "the clock": [
            Case("60 seconds back", _times(100, 101, 41, 42, 43, 44)),
            Case("60.001 seconds back", _times(100, 101, 40.999, 42, 43, 44)),
            Case("2 minutes back", _times(200, 201, 80, 81, 82, 83)),
            Case("back twice", _times(200, 201, 80, 81, 10, 11)),
            Case("back and on", _times(200, 201, 80, 202, 203, 204)),
            Case("back a little", _times(5, 6, 5.5, 7, 8, 9)),
            Case("back over an odd one", _at(3, "2026-01-05 09:03:30", _times(200, 201, 0, 81, 82, 83))),
            Case("back over one of another zone", _at(3, "2026-01-05T10:00:10+01:00", _times(200, 201))),
            Case("back at a note without an id", [*_talk(), {"type": "x", "timestamp": when(-0)}]),
            Case("back at a title", [*_times(200, 201), title("x") | {"timestamp": when(1)}, reply(7)]),
        ],
        "the latest": [
            Case(name, [prompt(1), reply(2), prompt(3, on=1, timestamp=stamp), reply(4, on=2, timestamp=when(8))])
            for name, stamp in {
                "usual": when(9),
                "as usual, no such month": "2026-99-05T09:00:09.000Z",
                "as long as usual": "zzzz-99-05T09:00:09.000Z",
                "shorter": "2026-01-05T09:00:09Z",
                "a number": 1767603609000,
                "none": None,
                "the same": when(8),
                "earlier": when(7),
            }.items()
        ],
        "a lost parent": [
            Case("times as in the file", _bridged(1, 2, 3, 4, 5, 6)),
            Case("4.9 seconds later", _bridged(1, 2, 3, 7.9, 8, 9)),
            Case("5 seconds later", _bridged(1, 2, 3, 8, 9, 10)),
            Case("5.001 seconds later", _bridged(1, 2, 3, 8.001, 9, 10)),
            Case("times elsewhere", _bridged(1, 3, 2, 2.5, 5, 6)),
            Case("before all others", _bridged(10, 11, 12, 4, 13, 14)),
            Case("at the time of another", _bridged(1, 2, 3, 3, 5, 6)),
            Case("at the time of two", _bridged(1, 3, 3, 3, 5, 6)),
            Case("at the time of a later one", _bridged(1, 2, 3, 5, 5, 6)),
            Case("without a time", _bridged(1, 2, 3, None, 5, 6)),
            Case("no times around", _bridged(None, None, None, 4, None, None)),
            Case("the first, later than all", _bridged(9, 2, 3, 4, 5, 6, lost=1)),
            Case("the last", _bridged(1, 2, 3, 4, 5, 6, lost=6)),
            Case("later than what hangs on it", _bridged(1, 2, 3, 20, 5, 6)),
        ],
        "rings": [
            Case("of all", _ring(6)),
            Case("of three", _ring(3)),
            Case("of two", _ring(2)),
            Case("of two answers", [reply(1, on=2), reply(2, on=1), prompt(3), reply(4)]),
            Case("that an answer opens", [reply(1, on=3), prompt(2, on=1), reply(3), prompt(4)]),
            Case("two rings", [prompt(1, on=2), reply(2), prompt(3, on=4), reply(4), prompt(5), reply(6)]),
            Case(
                "an earlier prompt in it",
                [
                    reply(1, on=3, timestamp=when(20)),
                    prompt(2, on=1, timestamp=when(10)),
                    reply(3, on=2, timestamp=when(15)),
                    prompt(4),
                ],
            ),
            Case("of agents", [*_talk(), *_ring_of_agents()]),
            Case("beside the conversation", [*_talk(), prompt(5, on=6), reply(6), prompt(7, on=4)]),
        ],
        "order": [
            Case("backwards", list(reversed(_talk()))),
            Case("backwards, times too", _backwards()),
            Case("the answer first", [reply(2), prompt(1), prompt(3), reply(4)]),
            Case("hung on a later one", [prompt(1, on=4), reply(2), prompt(3), reply(4, on=0)]),
            Case("hung on a later one, then lost", [prompt(1, on=3), reply(2), prompt(3, parentUuid=UNKNOWN)]),
            Case(
                "a lost one behind a later one",
                [prompt(1), reply(2, on=5), prompt(3, on=2), reply(4, parentUuid=UNKNOWN), prompt(5, on=4)],
            ),
            Case(
                "a lost result under its call",
                [prompt(1), call(2, "a", on=4), reply(3, on=2), output(4, "a", parentUuid=UNKNOWN), reply(5, on=3)],
            ),
            Case(
                "two calls of one id, a lost result",
                [prompt(1), call(2, "a"), output(3, "a"), call(4, "a"), output(5, "a", parentUuid=UNKNOWN), reply(6)],
            ),
            Case(
                "a lost result behind a prompt",
                [prompt(1), call(2, "a"), prompt(3), output(4, "a", parentUuid=UNKNOWN), reply(5)],
            ),
            Case(
                "a lost result of an agent's call",
                [
                    prompt(1),
                    call(2, "a", isSidechain=True, agentId="x", on=0),
                    reply(3, on=1),
                    output(4, "a", parentUuid=UNKNOWN, isSidechain=True, agentId="y"),
                    output(5, "a", parentUuid=UNKNOWN, isSidechain=True, agentId="x"),
                ],
            ),
            Case("a lost note", [*_talk(), note(5, parentUuid=UNKNOWN)]),
            Case("a lost note that leads on", [*_talk(), note(5, parentUuid=UNKNOWN), prompt(6)]),
            Case("lost behind an unknown", [*_talk(), note(5, "zzz"), prompt(6), reply(7)]),
            Case("lost progress", [*_talk(), note(5, "progress", on=0), prompt(6), reply(7)]),
            Case("unknown at the top", [note(1, "zzz"), prompt(2), reply(3)]),
            Case("unknown at the end", [*_talk(), note(5, "zzz")]),
            Case("unknown with nothing on it", [*_talk(), note(5, "zzz", on=2), prompt(6, on=4)]),
        ],
    }


def _ring(size: int) -> Records:
    made = _times()
    made[0]["parentUuid"] = uuid(size)
    return made


def _ring_of_agents() -> Records:
    marked: dict[str, Any] = {"isSidechain": True, "agentId": "x"}
    return [prompt(5, on=6, **marked), reply(6, on=5, **marked)]


def _backwards() -> Records:
    made = _talk()
    for record, second in zip(made, (4, 3, 2, 1), strict=True):
        record["timestamp"] = when(second)
    return made
