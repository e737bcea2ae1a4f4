"""What the index takes from each small transcript is exactly what is recorded."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.index.transcripts import TRANSCRIPTS
from tests.recorded_answers import assert_recorded, plain

from steno.format.source import BytesSource, Source
from steno.index.line_decoder import decode_lines
from steno.index.session_stats import Extraction, ExtractionState, decode_state, encode_state
from steno.index.sync import extract as reading
from steno.index.sync.extract import extract_rows
from steno.session.session import Session
from steno.session.transcript import load
from steno.session.turns.session_facts import count_session

ANSWERS: Final = Path(__file__).with_name("answers")
_FILE: Final = 1
_LISTS: Final = (
    "messages", "turns", "calls", "late_results", "edits", "links", "usage",
    "edit_sizes", "documents",
)  # fmt: skip
_GROUPS: Final = 6


def _leave_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what was counted line by line, also of a session that is not plain."""

    def leave(source: Source, state: ExtractionState) -> None:
        assert source.size >= 0
        assert state.messages >= 0

    monkeypatch.setattr(reading, "_count_in_full", leave)


def _changed(struct: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a struct that are not as in a new one."""
    new = type(struct)()
    found: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct) and name != "full_counts":
            value = _changed(value)
            if value:
                found[name] = value
        elif value != getattr(new, name):
            found[name] = value
    return found


def _answer(made: Extraction) -> dict[str, Any]:
    answer: dict[str, Any] = {"done": made.end}
    if made.has_more:
        answer["more"] = True
    for name in _LISTS:
        rows = [_row(row) for row in getattr(made, name)]
        if rows:
            answer[name] = rows if len(rows) < 20 else [len(rows), rows[0], rows[-1]]
    answer["state"] = _changed(made.state)
    answer["ending"] = made.state.ending
    return _shortened(plain(answer))


def _row(row: Any) -> list[Any]:
    """Return a row without the number of its file, which is in every id."""
    values = list(msgspec.structs.astuple(row)) if isinstance(row, msgspec.Struct) else list(row)
    return [value - (_FILE << 40) if _is_id(value) else value for value in values]


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and _FILE << 40 <= value < (_FILE << 40) + (1 << 32)


def _shortened(value: Any) -> Any:
    """Return a value with its long texts and lists cut in the middle, their lengths kept."""
    if isinstance(value, str) and len(value) > 300:
        return f"{value[:20]}…{len(value)}…{value[-20:]}"
    if isinstance(value, dict):
        short = {name: _shortened(each) for name, each in value.items()}
        names = list(short)
        if len(names) > 40:
            return {"length": len(names), **{name: short[name] for name in (names[0], names[-1])}}
        return short
    if isinstance(value, list):
        items = [_shortened(each) for each in value]
        return items if len(items) <= 40 else [len(items), items[0], items[-1]]
    return value


def _group(number: int) -> list[str]:
    return list(TRANSCRIPTS)[number::_GROUPS]


@pytest.mark.parametrize("number", range(_GROUPS))
def test_every_transcript_gives_the_recorded_rows(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows, all texts to search, and all that reading on has to know."""
    _leave_untold(monkeypatch)
    answers = {name: _answer(extract_rows(BytesSource(TRANSCRIPTS[name]().bytes()), _FILE)) for name in _group(number)}
    assert_recorded(ANSWERS / f"rows_{number}.json", answers)


@pytest.mark.parametrize("number", range(_GROUPS))
def test_a_transcript_read_line_by_line_is_read_as_at_once(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of stretches, put together as the tables do it, are those of the whole file."""
    _leave_untold(monkeypatch)
    for name in _group(number):
        data = TRANSCRIPTS[name]().bytes()
        if data.count(b"\n") > 100 or extract_rows(BytesSource(data), _FILE).in_dialect:
            # A file with records in a dialect is converted as a whole.
            continue
        whole = extract_rows(BytesSource(data), _FILE)
        parts = _in_stretches(data)
        assert _joined(parts) == _joined([whole]), name
        assert encode_state(parts[-1].state) == encode_state(whole.state), name


def _in_stretches(data: bytes) -> list[Extraction]:
    """Read a file that grows by one line at a time."""
    parts: list[Extraction] = []
    start, state, end = 0, ExtractionState(), 0
    while end < len(data):
        end = data.index(b"\n", end) + 1
        made = extract_rows(BytesSource(data[:end]), _FILE, start, state)
        assert (made.start, made.end, made.has_more) == (start, end, False)
        parts.append(made)
        start, state = made.end, decode_state(encode_state(made.state))
    return parts


def _joined(parts: list[Extraction]) -> dict[str, Any]:
    calls = {row[:2]: list(row) for part in parts for row in part.calls}
    edits = {row[:2]: list(row) for part in parts for row in part.edits}
    for part in parts:
        for message, ended, failed, asked, place in part.late_results:
            calls[asked, place][8:] = [message, ended, failed]
        for added, removed, asked, place in part.edit_sizes:
            if (asked, place) in edits:
                edits[asked, place][5:7] = [added, removed]
    usage: dict[str, list[Any]] = {}
    for row in (row for part in parts for row in part.usage):
        before = usage.get(row[1])
        if before is None:
            usage[row[1]] = list(row)
        elif row[10] >= before[10]:
            usage[row[1]] = [*row[:3], before[3] + row[3], *before[4:6], *row[6:]]
        else:
            before[3] += row[3]
    return {
        "messages": [row for part in parts for row in part.messages],
        "turns": sorted({row[1]: row for part in parts for row in part.turns}.items()),
        "links": [row for part in parts for row in part.links],
        "docs": [doc for part in parts for doc in part.documents],
        "calls": sorted(calls.items()),
        "edits": sorted(edits.items()),
        "usage": usage,
    }


def test_a_stretch_that_goes_on_gives_the_recorded_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line alone, with what was kept of those before it."""
    _leave_untold(monkeypatch)
    answers: dict[str, Any] = {}
    for name in TRANSCRIPTS:
        data = TRANSCRIPTS[name]().bytes()
        cut = data.rfind(b"\n", 0, len(data) - 1) + 1
        before = extract_rows(BytesSource(data[:cut]), _FILE)
        made = extract_rows(BytesSource(data), _FILE, cut, before.state)
        kept = {"answers": made.late_results, "sizes": made.edit_sizes, "turns": made.turns}
        rows = {field: [_row(row) for row in value] for field, value in kept.items() if value}
        answers[name] = [made.start, made.end, rows]
    assert_recorded(ANSWERS / "rows_of_last_lines.json", answers)


def test_every_transcript_has_the_figures_of_its_story() -> None:
    """What the index counts of a whole file is what the page of the session shows."""
    figures: dict[str, Any] = {}
    for name, script in TRANSCRIPTS.items():
        data = script().bytes()
        state = extract_rows(BytesSource(data), _FILE).state
        counted = msgspec.structs.replace(state.stats.current_figures(), model=state.model)
        session = Session(load(BytesSource(data)))
        if state.main:
            told = count_session(session)
            assert msgspec.structs.replace(counted, model="") == msgspec.structs.replace(told, model=""), name
        figures[name] = " ".join(f"{k}={v}" for k, v in msgspec.structs.asdict(counted).items() if v)
    assert_recorded(ANSWERS / "figures.json", figures)


def test_a_line_that_is_not_finished_is_left_for_later() -> None:
    data = TRANSCRIPTS["call"]().bytes()
    last = data.rfind(b"\n", 0, len(data) - 1) + 1
    torn = extract_rows(BytesSource(data[: last + 20]), _FILE)
    assert (torn.end, torn.has_more) == (last, True)
    whole = extract_rows(BytesSource(data[:-1]), _FILE)
    assert (whole.end, whole.has_more) == (len(data) - 1, False)
    assert len(decode_lines(data)) == data.count(b"\n")


def test_a_stretch_ends_with_the_piece_that_reaches_its_limit() -> None:
    """Reading stops as soon as the limit is reached, and goes on from there."""
    data = TRANSCRIPTS["call"]().bytes() * 400
    first = extract_rows(BytesSource(data), _FILE, limit=1)
    assert (first.has_more, 0 < first.end < len(data)) == (True, True)
    for limit, done in ((first.end - 1, first.end), (first.end, first.end)):
        assert extract_rows(BytesSource(data), _FILE, limit=limit).end == done
    assert extract_rows(BytesSource(data), _FILE, limit=first.end + 1).end > first.end
    second = extract_rows(BytesSource(data), _FILE, first.end, first.state, limit=1)
    assert (second.start, second.end > first.end) == (first.end, True)
    assert extract_rows(BytesSource(data), _FILE).end == len(data)
