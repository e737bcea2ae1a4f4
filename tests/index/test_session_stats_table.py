"""Whatever comes behind whatever, a conversation is counted exactly as recorded."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.recorded_answers import assert_recorded

from steno.index.line_decoder import IndexedLine, LineBlock, LineMessage
from steno.index.session_stats import SessionStats, TurnStats
from steno.session.turns.session_facts import SessionCounts

ANSWERS: Final = Path(__file__).with_name("answers")


def _body(*content: LineBlock, model: str = "m") -> LineMessage:
    return LineMessage(id="r", model=model, content=list(content))


_SAYS: Final = IndexedLine(type="assistant", message=_body(LineBlock("text", text="x")))
_CALLS: Final = IndexedLine(type="assistant", message=_body(LineBlock("tool_use", id="c")))
_BLANK: Final = IndexedLine(type="assistant", message=_body(LineBlock("text", text=" \n"), LineBlock("text")))
_MUTE: Final = IndexedLine(type="assistant")
_ERROR: Final = IndexedLine(type="assistant", is_api_error_message=True, message=_body())
_CLIENT: Final = IndexedLine(type="assistant", message=_body(LineBlock("text", text="x"), model="<synthetic>"))

_EVENTS: Final[dict[str, Callable[[SessionStats, int], None]]] = {
    "human": lambda stats, time: stats.add_prompt("human", time),
    "command": lambda stats, time: stats.add_prompt("command", time),
    "summary": lambda stats, time: stats.add_prompt("summary", time),
    "interrupt": lambda stats, time: stats.add_prompt("interrupt", time),
    "hook": lambda stats, time: stats.add_prompt("hook", time),
    "seam": lambda stats, _: stats.add_compaction(),
    "answer": lambda stats, time: stats.add_response_line(_SAYS, time),
    "call": lambda stats, time: stats.add_response_line(_CALLS, time),
    "blank": lambda stats, time: stats.add_response_line(_BLANK, time),
    "mute": lambda stats, time: stats.add_response_line(_MUTE, time),
    "error": lambda stats, time: stats.add_response_line(_ERROR, time),
    "client": lambda stats, time: stats.add_response_line(_CLIENT, time),
    "result": lambda stats, time: stats.add_results(time, all_expected=True, failed=0),
    "failure": lambda stats, time: stats.add_results(time, all_expected=True, failed=2),
    "stray": lambda stats, time: stats.add_results(time, all_expected=False, failed=0),
    "retry": lambda stats, time: stats.add_api_error(time, retried=True),
    "measured": lambda stats, _: stats.set_duration(12.6),
    "note": lambda stats, _: stats.add_note(),
}


def _short(stats: SessionStats) -> str:
    """Return what differs from new statistics, in one line."""
    words = [
        f"{name}={getattr(stats, name)}"
        for name in ("turns", "worked", "steps", "failed", "compactions")
        if getattr(stats, name)
    ]
    words += ["needs_full_count"] * stats.needs_full_count
    new = TurnStats()
    for name in new.__struct_fields__:
        value: Any = getattr(stats.turn, name)
        if value != getattr(new, name):
            words.append(name if value is True else f"{name}={value}")
    figures = stats.current_figures()
    return f"{' '.join(words)} | {figures.turns} turns, {figures.worked} ms"


def _after(*events: str) -> str:
    stats = SessionStats()
    for number, event in enumerate(events, 1):
        _EVENTS[event](stats, 1000 * number)
    return _short(stats)


def test_every_two_events_are_counted_as_recorded() -> None:
    answers = {f"{one}, {two}": _after(one, two) for one, two in product(_EVENTS, _EVENTS)}
    assert_recorded(ANSWERS / "course_of_two.json", answers)


def test_every_event_within_a_turn_is_counted_as_recorded() -> None:
    """Behind a turn that is over, an error that was tried again, and a compaction."""
    before = {
        "a turn": ("human", "answer"),
        "a retry": ("human", "retry"),
        "a retry, a note": ("human", "retry", "note"),
        "an error": ("human", "error"),
        "a turn, a command": ("human", "answer", "command"),
        "a turn, a seam": ("human", "answer", "seam"),
        "a turn, a seam, a summary": ("human", "answer", "seam", "summary"),
    }
    answers = {f"{name}, {event}": _after(*events, event) for (name, events), event in product(before.items(), _EVENTS)}
    assert_recorded(ANSWERS / "course_of_turns.json", answers)


@pytest.mark.parametrize(
    ("blocks", "steps", "speaks", "loose"),
    [
        ([], 0, False, False),
        ([LineBlock("text")], 0, False, False),
        ([LineBlock("text", text=" \t\n")], 0, False, False),
        ([LineBlock("text", text=" x ")], 0, True, False),
        ([LineBlock("text", text="x"), LineBlock("text", text=" ")], 0, True, False),
        ([LineBlock("text", text=" "), LineBlock("text", text="x")], 0, True, False),
        ([LineBlock("tool_use"), LineBlock("text", text="")], 1, True, False),
        ([LineBlock("server_tool_use"), LineBlock("tool_use")], 2, True, False),
        ([LineBlock("thinking")], 0, True, False),
        ([LineBlock("redacted_thinking"), LineBlock("text")], 0, True, False),
        ([LineBlock("image")], 0, False, True),
        ([LineBlock("unheard"), LineBlock("tool_use")], 1, True, True),
        (None, 0, False, False),
        ("", 0, False, False),
        (" \n", 0, False, False),
        (" x", 0, True, False),
    ],
)
def test_a_response_that_says_something_lasts_until_then(
    blocks: list[LineBlock] | str | None, steps: int, *, speaks: bool, loose: bool
) -> None:
    stats = SessionStats()
    stats.turn.ends_with_error = speaks
    stats.add_response_line(IndexedLine(type="assistant", message=LineMessage(content=blocks)), 7)
    assert (stats.steps, stats.turn.ended, stats.needs_full_count) == (steps, 7 if speaks else None, loose)
    assert (stats.turn.answered, stats.turn.ends_with_error) == (True, False)
    if not speaks:
        # Of an error before it nobody knows whether it is the last thing.
        stats.turn.ends_with_error = True
        stats.add_response_line(IndexedLine(type="assistant", message=LineMessage(content=blocks)), 7)
        assert (stats.needs_full_count, stats.turn.ends_with_error) == (True, True)


# Where records hang


def _line(uuid: str | None, parent: str | None, kind: str = "user", **fields: Any) -> IndexedLine:
    return IndexedLine(uuid=uuid, parent_uuid=parent, type=kind, **fields)


def _calling(uuid: str, parent: str, response: str, *calls: str) -> IndexedLine:
    blocks = [LineBlock("tool_use", id=call) for call in calls]
    return _line(uuid, parent, "assistant", message=LineMessage(id=response, content=blocks))


def _result(uuid: str, parent: str, *calls: str) -> IndexedLine:
    blocks = [LineBlock("tool_result", tool_use_id=call) for call in calls]
    return _line(uuid, parent, message=LineMessage(content=blocks))


_CHAINS: Final[dict[str, tuple[IndexedLine, ...]]] = {
    "a first one with a parent": (_line("a", "x"),),
    "a plain chain": (_line("a", None), _calling("b", "a", "r"), _line("c", "b")),
    "a parent that is not near": (_line("a", None), _line("b", "a"), _line("c", "a")),
    "no parent in the middle": (_line("a", None), _line("b", None)),
    "a name twice": (_line("a", None), _line("a", "a")),
    "a progress elsewhere": (_line("a", None), _line("b", "x", "progress")),
    "a progress": (_line("a", None), _line("b", "a", "progress"), _line("c", "b")),
    "a call elsewhere": (_line("a", None), _calling("b", "x", "r", "c1"), _result("c", "b", "c1")),
    "more of a response elsewhere": (_line("a", None), _calling("b", "x", "r", "c1"), _calling("c", "b", "r", "c2")),
    "a response in two lines": (
        _line("a", None),
        _calling("b", "a", "r", "c1"),
        _calling("c", "b", "r", "c2"),
        _result("d", "b", "c1"),
        _result("e", "c", "c2"),
    ),
    "two responses": (_calling("a", "", "r", "c1"), _calling("b", "a", "s", "c2")),
    "a response without a name": (_calling("a", "", "", "c1"), _calling("b", "a", "", "c2")),
    "a result of another call": (_calling("a", "", "r", "c1"), _result("b", "a", "c2")),
    "results of which one is known": (_calling("a", "", "r", "c1"), _result("b", "a", "c1", "c2")),
    "a note of the client": (_calling("a", "", "r", "c1"), _line("b", "a", is_meta=True)),
    "a system record": (_line("a", None), _line("b", "a", "system"), _line("c", "a")),
    "an attachment": (_line("a", None), _line("b", "a", "attachment"), _line("c", "b")),
    "a seam": (_line("a", None), _line("b", None, "system", subtype="compact_boundary", logical_parent_uuid="a")),
    "a seam elsewhere": (
        _line("a", None),
        _line("b", None, "system", subtype="compact_boundary", logical_parent_uuid="x"),
    ),
    "a seam with both": (
        _line("a", None),
        _line("b", "x", "system", subtype="compact_boundary", logical_parent_uuid="a"),
    ),
    "no seam": (_line("a", None), _line("b", None, "system", subtype="other", logical_parent_uuid="a")),
    "no system record": (
        _line("a", None),
        _line("b", None, "user", subtype="compact_boundary", logical_parent_uuid="a"),
    ),
    "a kind that is not known": (_line("a", None), _line("b", "a", "unheard")),
    "a sub-agent": (_line("a", None), _line("b", "a", is_sidechain=True)),
    "a last prompt of the last": (_line("a", None), _line(None, None, "last-prompt", leaf_uuid="a")),
    "a last prompt of another": (_line("a", None), _line(None, None, "last-prompt", leaf_uuid="x")),
    "a last prompt of none": (_line("a", None), _line(None, None, "last-prompt")),
    "a message without a name": (_line("a", None), _line(None, "a")),
    "a message of a dialect": (_line("a", None), _line(None, "a", "human")),
    "a mode": (_line("a", None), _line(None, None, "mode")),
    "no kind": (_line("a", None), IndexedLine()),
}


def test_every_chain_of_records_hangs_as_recorded() -> None:
    answers: dict[str, object] = {}
    for name, lines in _CHAINS.items():
        stats = SessionStats()
        told = [stats.follow_record(line, irregular=False) for line in lines]
        answers[name] = [told, stats.needs_full_count, stats.parents, stats.uses, stats.response]
    assert_recorded(ANSWERS / "course_chains.json", answers)
    odd = SessionStats()
    assert odd.follow_record(_line("a", None), irregular=True)
    assert odd.needs_full_count


@pytest.mark.parametrize(("number", "loose"), [(255, False), (256, False), (257, True)])
def test_at_most_256_records_may_stand_between_two_messages(number: int, *, loose: bool) -> None:
    stats = SessionStats()
    for at in range(number):
        stats.follow_record(_line(f"u{at}", f"u{at - 1}", "attachment"), irregular=False)
    assert stats.needs_full_count is loose
    assert stats.parents == [f"u{at}" for at in range(number)][-256:]


def test_what_was_told_is_counted_on_from_there() -> None:
    stats = SessionStats()
    for event in ("human", "call", "failure", "seam"):
        _EVENTS[event](stats, 1000)
    stats.parents = ["a", "b"]
    told = SessionCounts(turns=50, steps=60, failed=70, worked=80, compactions=90, agents=5, branches=6, model="m")
    stats.needs_full_count = True
    stats.set_full_figures(told, "b")
    assert not stats.needs_full_count
    assert stats.current_figures() == msgspec.structs.replace(told, model="")
    stats.add_prompt("human", 5000)
    stats.add_response_line(_CALLS, 5007)
    stats.add_results(5010, all_expected=True, failed=1)
    stats.add_compaction()
    stats.add_prompt("human", 6000)
    now = stats.current_figures()
    assert (now.turns, now.steps, now.failed) == (52, 61, 71)
    assert (now.worked, now.compactions, now.agents, now.branches) == (90, 91, 5, 6)
    stats.set_full_figures(told, "x")
    assert stats.needs_full_count
