"""Two sides → what they share, where they part, and how they differ."""

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

import msgspec

from steno.format.tool_catalogue import facts_of
from steno.report.compare.align import Aligned, align
from steno.report.compare.path import Item
from steno.report.compare.sides import Ran, Side, Touched

__all__ = [
    "Alike",
    "Comparison",
    "Figure",
    "Parting",
    "Shared",
    "Unit",
    "Which",
    "compare",
    "doing",
]

Which: TypeAlias = Literal["a", "b", ""]
Alike: TypeAlias = Literal["fork", "prompt", "project", ""]
"""fork     one was made from the other
prompt   both begin with the same words
project  both are about the same folder
"""
Unit: TypeAlias = Literal["count", "tokens", "seconds", "money", "share"]
T = TypeVar("T")


class Figure(msgspec.Struct, frozen=True):
    """One number of both; None where it is not known."""

    name: str
    a: float | None
    b: float | None
    unit: Unit = "count"
    better: Which = ""
    """Who did better, where less (or more) is better and one has it."""


class Parting(msgspec.Struct, frozen=True):
    """Where the paths part for the first time; None where one of them ends."""

    steps: int
    """How many steps are the same before it."""
    a: Item | None
    b: Item | None


class Shared(msgspec.Struct, frozen=True):
    """What both have word for word, because one was made from the other."""

    turns: int
    steps: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sessions side by side."""

    a: Side
    b: Side
    alike: Alike
    forked: Which
    """Which of them was made from the other."""
    shared: Shared | None
    prompts: Aligned
    """Over the prompts of both, in order."""
    path: Aligned
    """Over everything in `a.path` and `b.path`."""
    parting: Parting | None
    """None where both went the same way to the end."""
    common: int
    """How many steps both did, in the same order."""
    figures: tuple[Figure, ...]
    files: tuple[tuple[str, Touched | None, Touched | None], ...]
    """What both touched comes first."""
    commands: tuple[tuple[str, Ran | None, Ran | None], ...]
    tools: tuple[tuple[str, tuple[int, int] | None, tuple[int, int] | None], ...]


def compare(a: Side, b: Side) -> Comparison:
    """Lay two sides beside each other."""
    first, second = _prompts(a), _prompts(b)
    prompts = align([item.key for _, item in first], [item.key for _, item in second])
    ties = [
        (first[one][0], second[other][0])
        for part in prompts.parts
        if part.common
        for one, other in zip(part.a, part.b, strict=True)
    ]
    path = align([item.key for item in a.path], [item.key for item in b.path], ties=ties)
    shared = _shared(a, b, path)
    forked: Which = "a" if b.id in a.continues else "b" if a.id in b.continues else ""
    return Comparison(
        a=a,
        b=b,
        alike=_alike(a, b, forked=bool(forked) or shared is not None),
        forked=forked,
        shared=shared,
        prompts=prompts,
        path=path,
        parting=_parting(a, b, path),
        common=sum(
            not a.path[place].is_prompt for part in path.parts if part.common for place in part.a
        ),
        figures=tuple(_fair(figure, shared) for figure in _figures(a, b)),
        files=_joined(a.files, b.files, _by_change),
        commands=_joined(a.commands, b.commands),
        tools=_joined(a.tools, b.tools, _by_calls),
    )


def doing(item: Item | None, other: Item | None = None) -> str:
    """Return what happens at a place, as a sentence goes on behind a name; `other` is beside it."""
    if item is None:
        return "has ended"
    if item.is_prompt:
        return "is asked more" if other is None else "is asked something else"
    if item.kind == "agent":
        return f"starts {item.verb}"
    if item.kind == "error":
        return "meets an API error"
    verb = facts_of(item.verb).doing
    return f"{verb} {item.subject}" if verb else f"calls {item.verb}"


def _prompts(side: Side) -> list[tuple[int, Item]]:
    return [(place, item) for place, item in enumerate(side.path) if item.is_prompt]


def _alike(a: Side, b: Side, *, forked: bool) -> Alike:
    if forked:
        return "fork"
    one, other = _prompts(a), _prompts(b)
    if one and other and one[0][1].key == other[0][1].key and one[0][1].key[1]:
        return "prompt"
    return "project" if a.known.project and a.known.project == b.known.project else ""


def _shared(a: Side, b: Side, path: Aligned) -> Shared | None:
    """Count what both begin with that is one and the same record."""
    first = path.parts[0] if path.parts else None
    if first is None or not first.common:
        return None
    turns = steps = 0
    for one, other in zip(first.a, first.b, strict=True):
        mine, theirs = a.path[one], b.path[other]
        if not mine.uuid or mine.uuid != theirs.uuid:
            break
        turns += mine.is_prompt
        steps += not mine.is_prompt
    return Shared(turns, steps) if turns or steps else None


def _parting(a: Side, b: Side, path: Aligned) -> Parting | None:
    steps = 0
    for part in path.parts:
        if part.common:
            steps += sum(not a.path[place].is_prompt for place in part.a)
            continue
        # One may have something in between and then go on as the other does.
        mine = part.a.start if part.a.start < len(a.path) else None
        theirs = part.b.start if part.b.start < len(b.path) else None
        return Parting(
            steps,
            None if mine is None else a.path[mine],
            None if theirs is None else b.path[theirs],
        )
    return None


# Figures


def _figures(a: Side, b: Side) -> list[Figure]:
    made = [
        _less("Turns", a.turns, b.turns),
        _less("Steps", a.steps, b.steps),
        _less("Failed steps", a.failed, b.failed),
        _less("Time worked", a.worked or None, b.worked or None, "seconds"),
        _less("Cost", _cost(a), _cost(b), "money"),
        _less("Tokens read", _of(a, "context"), _of(b, "context"), "tokens"),
        _less("Tokens written", _of(a, "output"), _of(b, "output"), "tokens"),
        Figure("Read from cache", _cached(a), _cached(b), "share"),
        Figure("Sub-agents", a.agents, b.agents),
        Figure("Compactions", a.compactions, b.compactions),
        _less("Abandoned branches", a.branches, b.branches),
        _less("Abandoned tokens", a.abandoned, b.abandoned, "tokens"),
        Figure("Files changed", len(a.changed), len(b.changed)),
        Figure("Lines added", _lines(a, "added"), _lines(b, "added")),
        Figure("Lines removed", _lines(a, "removed"), _lines(b, "removed")),
    ]
    one, other = (side.last_tests and side.last_tests.failing for side in (a, b))
    if one is not None and other is not None:
        made.append(_less("Failing tests", one, other))
    return made


def _fair(figure: Figure, shared: Shared | None) -> Figure:
    """Judge nobody by tokens where one of them paid for what both have."""
    if shared is None or figure.unit not in ("money", "tokens"):
        return figure
    return msgspec.structs.replace(figure, better="")


def _less(name: str, a: float | None, b: float | None, unit: Unit = "count") -> Figure:
    better: Which = ""
    if a is not None and b is not None and a != b:
        better = "a" if a < b else "b"
    return Figure(name, a, b, unit, better)


def _cost(side: Side) -> int | None:
    figures = side.known.figures
    return None if figures is None else figures.cost


def _of(side: Side, name: str) -> int | None:
    return None if side.known.figures is None else getattr(side.known.figures, name)


def _cached(side: Side) -> float | None:
    figures = side.known.figures
    return figures.cache_read / figures.context if figures and figures.context else None


def _lines(side: Side, name: str) -> int:
    return sum(getattr(touch, name) for touch in side.files.values())


# Rows of both


def _by_change(row: tuple[str, Touched | None, Touched | None]) -> tuple[bool, int]:
    some = [each for each in row[1:] if each is not None]
    return not any(each.edits for each in some), -sum(each.added + each.removed for each in some)


def _by_calls(
    row: tuple[str, tuple[int, int] | None, tuple[int, int] | None],
) -> tuple[bool, int]:
    return False, -sum(each[0] for each in row[1:] if each is not None)


def _joined(
    a: dict[str, T],
    b: dict[str, T],
    rank: Callable[[tuple[str, T | None, T | None]], tuple[bool, int]] | None = None,
) -> tuple[tuple[str, T | None, T | None], ...]:
    """Return the rows of both by their names: those of both first, then as they came."""
    rows = [(name, a.get(name), b.get(name)) for name in dict.fromkeys((*a, *b))]
    rows.sort(key=lambda row: (row[1] is None or row[2] is None, row[1] is None))
    if rank is not None:
        rows.sort(key=lambda row: (row[1] is None or row[2] is None, rank(row), row[0]))
    return tuple(rows)
