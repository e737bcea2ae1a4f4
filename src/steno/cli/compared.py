"""Two sessions side by side, for people and programs."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.cli.table import Column, layout
from steno.cli.touched import minus, plus
from steno.report import clock, words
from steno.report.compare import Comparison, Side
from steno.report.compare.figures import Row, rows_of
from steno.report.compare.path import Item
from steno.report.compare.sides import Ran, Touched
from steno.report.compare.told import ALIKE, asked_of, limits_of, said_of, shared_of
from steno.report.compare.weigh import doing
from steno.report.deeds.suites import Verdict
from steno.safe.terminal import Line, cut, one_line, width, wrap

__all__ = [
    "call_cell",
    "comparison_json",
    "comparison_lines",
    "file_cell",
    "item_text",
    "name_of",
    "ran_cell",
    "when_of",
]

_SHORT: Final = 8
_ROWS: Final = 15
_HEAD: Final = 3
_TAIL: Final = 2
_SIDE: Final = 12
_STYLES: Final = {"A": "cyan", "B": "magenta", " ": ""}
_SUBJECT: Final = 160
_CELL: Final = 28


def name_of(side: Side) -> str:
    """Return what a session is called."""
    return one_line(side.known.title, 200) or "(no title)"


def when_of(side: Side, now: float) -> str:
    """Return where and when a session was."""
    when = (
        ""
        if side.started is None
        else f"{words.day(side.started, now)} {words.clock(side.started)}"
    )
    parts = (words.project_name(side.known.project), side.known.branch, when)
    return ", ".join(one_line(part, 60) for part in parts if part)


def comparison_lines(
    found: Comparison, columns: int, now: float, *, everything: bool
) -> Iterator[Line]:
    """Yield what differs, where they part, and what each asked, touched and ran."""
    for letter, side in (("A", found.a), ("B", found.b)):
        about = when_of(side, now)
        room = max(12, columns - width(about) - _SHORT - 8)
        yield [
            (letter, f"bold {_STYLES[letter]}"),
            ("  " + side.id[:_SHORT], "bold"),
            f"  {cut(name_of(side), room)}  ",
            (about, "dim"),
        ]
    yield [(f"   {ALIKE[found.alike]}", "dim")]
    for text in wrap(shared_of(found), columns - 3) if found.shared else ():
        yield ["   ", text]
    yield []
    yield from _figures(rows_of(found), columns)
    yield []
    yield from _path(found, columns, everything=everything)
    yield from _prompts(found, columns, everything=everything)
    most = None if everything else _ROWS
    yield from _both("FILES", found.files, file_cell, columns, most)
    yield from _both("COMMANDS", found.commands, ran_cell, columns, most)
    yield from _both("TOOLS", found.tools, call_cell, columns, most)
    for text in limits_of(found):
        yield [(text, "yellow")]


def _figures(rows: Sequence[Row], columns: int) -> Iterator[Line]:
    heads, lines = layout(
        [
            Column("", [row.name for row in rows], "dim"),
            Column("A", [_starred(row.a, better=row.better == "a") for row in rows], _STYLES["A"]),
            Column("B", [_starred(row.b, better=row.better == "b") for row in rows], _STYLES["B"]),
            Column("B AGAINST A", [row.delta for row in rows], "dim"),
        ],
        columns - 1,
    )
    yield [" ", *heads]
    for line in lines:
        yield [" ", *line]


def _starred(text: str, *, better: bool) -> str:
    return f"{text} ✓" if better else text


# The paths


def _path(found: Comparison, columns: int, *, everything: bool) -> Iterator[Line]:
    yield [("PATH", "bold"), f"  {said_of(found)}"]
    parted = False
    for part in found.path.parts:
        mine = [found.a.path[place] for place in part.a]
        theirs = [found.b.path[place] for place in part.b]
        if part.common:
            lines = [_together(*pair, columns) for pair in zip(mine, theirs, strict=True)]
            yield from _folded(lines, _HEAD, _TAIL, everything=everything)
            continue
        yield [(_parting(found, mine, theirs, again=parted, columns=columns), "bold yellow")]
        parted = True
        for letter, items in (("A", mine), ("B", theirs)):
            lines = [_item(letter, item, item_text(item), columns) for item in items]
            yield from _folded(lines, _SIDE, 0, everything=everything)
    yield []


def _parting(
    found: Comparison, mine: Sequence[Item], theirs: Sequence[Item], *, again: bool, columns: int
) -> str:
    if again:
        return "  apart again"
    parting = found.parting
    one = parting.a if parting is not None else None
    other = parting.b if parting is not None else None
    if one is not None and other is not None and one.is_prompt and other.is_prompt:
        return "  they are asked different things"
    near = next((item for item in (*mine, *theirs) if not item.is_prompt), None)
    where = f"step {near.number:,}: " if near is not None else ""
    said = f"{where}A {doing(one, other)}, B {doing(other, one)}"
    return f"  {one_line(said, columns - 2)}"


def _together(one: Item, other: Item, columns: int) -> Line:
    said = item_text(one)
    if (one.outcome, one.state) != (other.outcome, other.state):
        said = f"{_what(one)}  A: {_came(one)}  B: {_came(other)}"
    return _item(" ", one, said, columns)


def item_text(item: Item) -> str:
    """Return a prompt or a step, and what came of it, on one line."""
    came = _came(item)
    return f"{_what(item)}  {came}" if came and not item.is_prompt else _what(item)


def _what(item: Item) -> str:
    if item.is_prompt:
        return f"“{one_line(item.subject, _SUBJECT)}”"
    return one_line(f"{item.verb} {item.subject}", _SUBJECT)


def _came(item: Item) -> str:
    if item.added or item.removed:
        return " ".join(filter(None, (plus(item.added), minus(item.removed))))
    return one_line(item.outcome, 60) or ("" if item.state == "ok" else item.state)


def _item(letter: str, item: Item, said: str, columns: int) -> Line:
    style = "bold" if item.is_prompt else "red" if item.state == "failed" else _STYLES[letter]
    return [(f"  {letter} ", f"bold {_STYLES[letter]}".strip()), (cut(said, columns - 4), style)]


def _folded(lines: list[Line], head: int, tail: int, *, everything: bool) -> Iterator[Line]:
    if everything or len(lines) <= head + tail + 1:
        yield from lines
        return
    yield from lines[:head]
    yield [(f"    … {len(lines) - head - tail:,} more", "dim")]
    yield from lines[len(lines) - tail :]


def _prompts(found: Comparison, columns: int, *, everything: bool) -> Iterator[Line]:
    asked = list(asked_of(found))
    most = len(asked) if everything else _ROWS
    yield [("PROMPTS", "bold")]
    for in_a, in_b, text in asked[:most]:
        yield [
            ("  " + ("A" if in_a else " "), _STYLES["A"]),
            ("B " if in_b else "  ", _STYLES["B"]),
            one_line(text, columns - 5) or "(no words)",
        ]
    if len(asked) > most:
        yield [(f"     … {len(asked) - most:,} more", "dim")]
    yield []


# Tables of both


def _both(
    head: str,
    rows: Sequence[tuple[str, Any, Any]],
    cell: Any,
    columns: int,
    most: int | None,
) -> Iterator[Line]:
    if not rows:
        return
    shown = rows[:most]
    room = max(16, columns - 2 * _CELL - 6)
    heads, lines = layout(
        [
            Column(head, [one_line(name, 400) for name, _, _ in shown], most=room),
            Column("A", [cell(a) for _, a, _ in shown], _STYLES["A"], most=_CELL),
            Column("B", [cell(b) for _, _, b in shown], _STYLES["B"], most=_CELL),
        ],
        columns - 2,
    )
    yield [" ", *heads]
    for line in lines:
        yield [" ", *line]
    if len(rows) > len(shown):
        yield [(f"  … {len(rows) - len(shown):,} more", "dim")]
    yield []


def file_cell(touch: Touched | None) -> str:
    """Return what one session did to a file."""
    if touch is None:
        return "-"
    if not touch.edits:
        return "read"
    return " ".join(filter(None, (plus(touch.added), minus(touch.removed)))) or "±0"


def ran_cell(ran: Ran | None) -> str:
    """Return how a command ended in one session."""
    if ran is None:
        return "-"
    said = one_line(str(ran.tests or ran.outcome or ran.state), 28)
    return f"{said} ({ran.times} times)" if ran.times > 1 else said


def call_cell(calls: tuple[int, int] | None) -> str:
    """Return how often one session called a tool."""
    if calls is None:
        return "-"
    return f"{calls[0]:,}, {calls[1]:,} failed" if calls[1] else f"{calls[0]:,}"


# For programs


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison for programs; places are told by the items themselves."""
    parting = found.parting
    return {
        "a": _side_json(found.a),
        "b": _side_json(found.b),
        "alike": found.alike or None,
        "forked": found.forked or None,
        "shared": msgspec.to_builtins(found.shared),
        "said": said_of(found),
        "parting": None
        if parting is None
        else {
            "steps": parting.steps,
            "a": None if parting.a is None else _item_json(parting.a),
            "b": None if parting.b is None else _item_json(parting.b),
        },
        "common_steps": found.common,
        "figures": [msgspec.to_builtins(figure) for figure in found.figures],
        "prompts": [{"a": a, "b": b, "text": text} for a, b, text in asked_of(found)],
        "path": [
            {
                "common": part.common,
                "a": [_item_json(found.a.path[place]) for place in part.a],
                "b": [_item_json(found.b.path[place]) for place in part.b],
            }
            for part in found.path.parts
        ],
        "files": [_pair_json("path", row) for row in found.files],
        "commands": [_pair_json("command", row) for row in found.commands],
        "tools": [
            {"tool": name, "a": _calls_json(a), "b": _calls_json(b)} for name, a, b in found.tools
        ],
        "limits": list(limits_of(found)),
    }


def _side_json(side: Side) -> dict[str, Any]:
    figures = side.known.figures
    return {
        "session": side.id,
        "title": side.known.title,
        "project": side.known.project,
        "branch": side.known.branch,
        "models": side.known.models,
        "started": clock.iso(side.started),
        "ended": clock.iso(side.ended),
        "seconds_worked": side.worked,
        "standing": side.standing,
        "cost_micro_usd": None if figures is None else figures.cost,
        "tests": _tests_json(side.last_tests),
    }


def _tests_json(tests: Verdict | None) -> dict[str, Any] | None:
    if tests is None:
        return None
    numbers = tests.numbers
    return {
        "ok": tests.ok,
        "passed": None if numbers is None else numbers.passed,
        "failed": None if numbers is None else numbers.failed,
    }


def _item_json(item: Item) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "turn": item.turn,
        "step": item.number,
        "verb": item.verb or None,
        "subject": item.subject,
        "outcome": item.outcome or None,
        "state": item.state,
        "seconds": item.seconds,
        "added": item.added,
        "removed": item.removed,
        "uuid": item.uuid or None,
        "agent": item.agent or None,
    }


def _pair_json(name: str, row: tuple[str, Any, Any]) -> dict[str, Any]:
    return {name: row[0], "a": msgspec.to_builtins(row[1]), "b": msgspec.to_builtins(row[2])}


def _calls_json(calls: tuple[int, int] | None) -> dict[str, int] | None:
    return None if calls is None else {"calls": calls[0], "failed": calls[1]}
