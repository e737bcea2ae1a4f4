"""Which turns are drawn in full, and which as one row: a page stays small however long the session."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from steno.session.story.turns import Turn
from steno.web.story.seams import Seam, seam_of
from steno.web.story.steps import Manner
from steno.web.story.tale import Tale
from steno.web.story.turns import (
    Fold,
    More,
    SideBox,
    TurnBox,
    fold_of,
    more_of,
    side_of,
    turn_of,
)

__all__ = ["Piece", "all_sides", "around", "between", "full_range"]

Piece: TypeAlias = TurnBox | Fold | Seam | SideBox | More
_TURNS: Final = {"prompts": 120, "answers": 40, "steps": 16, "everything": 10}
_STEPS: Final = 200
_ALL: Final = 30
_ROWS: Final = 60
"""Rows before, and behind, what is drawn in full."""
_SIDES: Final = 8
"""Abandoned branches behind one turn that are drawn at once."""
_BEFORE: Final = 3
"""One in so many turns is drawn before the wanted one, the others behind it."""


def full_range(turns: Sequence[Turn], wanted: int, detail: str) -> range:
    """Return the numbers of the turns that are drawn in full, the wanted one among them."""
    if not turns:
        return range(0)
    weigh = detail in ("steps", "everything")
    steps = [len(turn.steps) if weigh else 0 for turn in turns]
    most = _TURNS[detail]
    if len(turns) <= max(_ALL, most) and sum(steps) <= _STEPS:
        return range(1, len(turns) + 1)
    first = last = min(max(wanted, 1), len(turns)) - 1
    weight = steps[first]
    while last - first + 1 < most and weight < _STEPS:
        back = first > 0 and ((last - first) % _BEFORE == _BEFORE - 1 or last == len(turns) - 1)
        if not back and last == len(turns) - 1:
            break
        if back:
            first -= 1
            weight += steps[first]
        else:
            last += 1
            weight += steps[last]
    return range(first + 1, last + 2)


def around(tale: Tale, manner: Manner, wanted: int, branch: int = 0) -> list[Piece]:
    """Return the whole of a conversation, drawn in full around one turn."""
    return list(
        _drawn(tale, manner, tale.turns, full_range(tale.turns, wanted, manner.detail), branch)
    )


def between(
    tale: Tale, manner: Manner, first: int, last: int, full: range | None = None
) -> list[Piece]:
    """Return some turns: those of `full`, else as many as may be, in full; the others as rows."""
    chosen = [turn for turn in tale.turns if first <= turn.number <= last]
    if not chosen:
        return []
    if full is None:
        some = full_range(chosen, 1, manner.detail)
        shift = chosen[0].number - 1
        full = range(some.start + shift, some.stop + shift)
    return list(_drawn(tale, manner, chosen, full, 0))


def _drawn(
    tale: Tale, manner: Manner, turns: Sequence[Turn], full: range, branch: int
) -> Iterator[Piece]:
    if turns and turns[0].number == 1:
        yield from _sides(tale, manner, 0, branch)
    size = max(1, -(-max(full.start - 1, len(turns) - full.stop + 1, 1) // _ROWS))
    row: list[Turn] = []
    for turn in turns:
        shown = turn.number in full
        if row and (shown or len(row) >= size or turn.seams):
            yield fold_of(row, tale, manner)
            row = []
        before = tale.turns[turn.number - 2] if turn.number > 1 else None
        if turn.opening is not None:
            yield seam_of(turn.opening, before, tale, manner)
        if shown:
            yield turn_of(turn, tale, manner)
            yield from _sides(tale, manner, turn.number, branch)
        else:
            row.append(turn)
        # A row has no room for those within the turn: they stand behind it.
        behind = () if shown else turn.inner_seams
        for seam in (*behind, turn.closing):
            if seam is None:
                continue
            if row:
                yield fold_of(row, tale, manner)
                row = []
            yield seam_of(seam, turn, tale, manner)
    if row:
        yield fold_of(row, tale, manner)


def _sides(tale: Tale, manner: Manner, after: int, branch: int) -> Iterator[SideBox | More]:
    """Yield what was abandoned behind a turn; of very much, the first and what is asked for."""
    sides = tale.sides_by_turn.get(after, [])
    shown = [side for place, side in enumerate(sides) if place < _SIDES or side.number == branch]
    for side in shown:
        yield side_of(side, tale, manner, opened=side.number == branch)
    if len(sides) > len(shown):
        yield more_of(after, len(sides) - len(shown), tale, manner)


def all_sides(tale: Tale, manner: Manner, after: int) -> list[Piece]:
    """Return everything that was abandoned behind a turn."""
    return [side_of(side, tale, manner) for side in tale.sides_by_turn.get(after, ())]
