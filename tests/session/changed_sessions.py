"""Session files of a few records, each with one thing changed at one place."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

Json = dict[str, Any]
Lines = list[bytes]


def _record(number: int, kind: str, parent: int | None, **fields: Any) -> Json:
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{parent}" if parent else None,
        "timestamp": f"2026-11-15T12:00:{number:02}.000Z",
        "sessionId": "s",
        **fields,
    }


def _user(number: int, parent: int | None, content: Any, **fields: Any) -> Json:
    return _record(number, "user", parent, message={"role": "user", "content": content}, **fields)


def _answer(number: int, parent: int | None, name: str, *blocks: Json) -> Json:
    message = {"id": name, "role": "assistant", "model": "claude-opus-5-5", "content": list(blocks)}
    return _record(number, "assistant", parent, message=message)


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _call(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def _result(name: str) -> list[Json]:
    return [{"type": "tool_result", "tool_use_id": name, "content": f"of {name}"}]


def _parallel() -> list[Json]:
    """Return a response of two lines, each with a call and a result that hangs on it."""
    return [
        _user(1, None, "Q1"),
        _answer(2, 1, "m1", _text("A1")),
        _answer(3, 2, "m1", _call("c")),
        _answer(4, 3, "m1", _call("d")),
        _user(5, 3, _result("c")),
        _user(6, 4, _result("d")),
        _record(7, "attachment", 5, attachment={"type": "queued_command", "prompt": "more"}),
        _answer(8, 6, "m2", _text("A2")),
        _user(9, 8, "Q2"),
        _answer(10, 9, "m3", _text("A3")),
    ]


def _compacted() -> list[Json]:
    """Return a conversation that was summed up, with a message that was kept word for word."""
    kept = {"preservedMessages": {"uuids": ["u3", "u4"]}}
    return [
        _user(1, None, "Q1"),
        _answer(2, 1, "m1", _text("A1")),
        _user(3, 2, "Q2"),
        _answer(4, 3, "m2", _text("A2")),
        _record(5, "system", None, subtype="compact_boundary", compactMetadata=kept),
        _user(6, 5, "SUMMARY", isCompactSummary=True),
        _user(7, 6, "Q3"),
        _answer(8, 7, "m3", _text("A3")),
    ]


def _branched() -> list[Json]:
    """Return a conversation that went back to its first prompt, with notes at both ends."""
    return [
        _user(1, None, "Q1"),
        _answer(2, 1, "m1", _text("A1")),
        _user(3, 2, "Q2"),
        _answer(4, 3, "m2", _text("A2")),
        _record(5, "system", 4, subtype="turn_duration"),
        _user(6, 2, "Q2 again"),
        _answer(7, 6, "m3", _text("A3")),
        _record(8, "system", 7, subtype="informational"),
    ]


def _set(**fields: Any) -> Callable[[list[Json], int], None]:
    def change(records: list[Json], place: int) -> None:
        records[place] = {**records[place], **fields}

    return change


def _parent(step: int) -> Callable[[list[Json], int], None]:
    def change(records: list[Json], place: int) -> None:
        other = records[(place + step) % len(records)]["uuid"]
        records[place] = {**records[place], "parentUuid": other}

    return change


def _moved(records: list[Json], place: int) -> None:
    records.append(records.pop(place))


def _dropped(records: list[Json], place: int) -> None:
    del records[place]


def _twice(records: list[Json], place: int) -> None:
    records.append(records[place])


def _marked(**fields: Any) -> Callable[[list[Json], int], None]:
    """Return what says at the end that the session was left at a record."""

    def change(records: list[Json], place: int) -> None:
        records.append({"type": "last-prompt", "leafUuid": records[place]["uuid"], **fields})

    return change


def _marked_before(records: list[Json], place: int) -> None:
    mark = {"type": "last-prompt", "leafUuid": records[place]["uuid"], "explicit": True}
    records.insert(len(records) - 1, mark)


def _passed_over(records: list[Json], place: int) -> None:
    link = _record(50 + place, "progress", place, uuid="link")
    records.insert(place, {**link, "parentUuid": records[place]["parentUuid"]})
    records[place + 1] = {**records[place + 1], "parentUuid": "link"}


_CHANGES: Final[dict[str, Callable[[list[Json], int], None]]] = {
    "dropped": _dropped,
    "last in the file": _moved,
    "twice": _twice,
    "without a parent": _set(parentUuid=None),
    "with a lost parent": _set(parentUuid="gone"),
    "below itself": _parent(0),
    "below the next": _parent(1),
    "below the one before the last": _parent(-2),
    "without a time": _set(timestamp=None),
    "with a number as time": _set(timestamp=5),
    "an hour earlier": _set(timestamp="2026-11-15T11:00:00.000Z"),
    "an hour later": _set(timestamp="2026-11-15T13:00:00.000Z"),
    "lost and six seconds late": _set(parentUuid="gone", timestamp="2026-11-15T12:00:16.000Z"),
    "of a sub-agent": _set(isSidechain=True),
    "not from the user": _set(isMeta=True),
    "without a message": _set(message=None),
    "without content": _set(message={"role": "user"}),
    "of no content": _set(message={"role": "user", "content": []}),
    "progress": _set(type="progress"),
    "of a new type": _set(type="zzz"),
    "behind a link": _passed_over,
    "marked": _marked(),
    "marked by the user": _marked(explicit=True),
    "marked, and gone on": _marked_before,
}


def _lines(records: list[Json]) -> Lines:
    return [msgspec.json.encode(record) + b"\n" for record in records]


def _glued(lines: Lines, place: int) -> None:
    lines[place] = lines[place][:-1]


def _cut(lines: Lines, place: int) -> None:
    lines[place] = lines[place][:-6] + b"\n"


_BREAKS: Final[dict[str, Callable[[Lines, int], None]]] = {"on one line with the next": _glued, "cut off": _cut}
BASES: Final = {"parallel": _parallel, "compacted": _compacted, "branched": _branched}


def changed_sessions() -> Iterator[tuple[str, bytes]]:
    """Yield every base, and every change of it at every place."""
    for name, base in BASES.items():
        yield name, b"".join(_lines(base()))
        for place in range(len(base())):
            for change, make in _CHANGES.items():
                records = base()
                make(records, place)
                yield f"{name}, record {place + 1} {change}", b"".join(_lines(records))
            for change, spoil in _BREAKS.items():
                lines = _lines(base())
                spoil(lines, place)
                yield f"{name}, record {place + 1} {change}", b"".join(lines)
    for metadata in (
        *({}, {"preservedMessages": 5}, {"preservedMessages": {"uuids": ["u4", 5, "u3", "u99"]}}),
        *({"preservedSegment": {"headUuid": "u3", "tailUuid": "u4"}},),
        *({"preservedSegment": {"headUuid": "u1", "tailUuid": "u4"}},),
        *({"preservedSegment": {"headUuid": "u9", "tailUuid": "u4"}},),
        *({"preservedSegment": {"headUuid": "u4", "tailUuid": 5}}, {"preservedSegment": 5}),
        *({"preservedMessages": {"uuids": ["u7"]}},),
    ):
        records = _compacted()
        records[4]["compactMetadata"] = metadata
        said = msgspec.json.encode(metadata).decode()
        yield f"compacted, {said}", b"".join(_lines(records))
        yield f"compacted, nothing behind, {said}", b"".join(_lines(records[:5]))
