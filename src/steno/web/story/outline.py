"""Every turn in a line: what was asked, the mix of what was done, what it cost."""

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report import words
from steno.session.story.compactions import Compaction, sizes_of
from steno.session.story.steps import one_line
from steno.session.story.turns import Turn
from steno.web.paint import money
from steno.web.story.steps import Manner
from steno.web.story.tale import Tale
from steno.web.story.turns import PRIME, context_at

__all__ = ["Row", "outline_of"]

_WIDE: Final = 44.0
_FULL: Final = 24.0
_MOST: Final = 1_500
_SAID: Final = 90
_SIDES: Final = 8
"""Abandoned branches behind one turn that are listed one by one."""
_RECT: Final = Markup('<rect class="{}" x="{:.1f}" width="{:.1f}" height="6"/>')


class Row(msgspec.Struct):
    """One row."""

    number: str
    text: str
    href: str
    cost: str = ""
    turn: int = 0
    mix: Markup | None = None
    old: bool = False
    cut: str = ""
    """Not a turn, but a compaction."""
    errors: int = 0
    held: str = ""


def outline_of(tale: Tale, manner: Manner) -> list[Row]:
    """Return the outline; of a very long session only the newest turns."""
    rows: list[Row] = []
    _old(rows, tale, manner, 0)
    for turn in tale.turns[-_MOST:]:
        if turn.opening is not None:
            rows.append(_seam(turn.opening))
        rows.append(
            Row(
                str(turn.number),
                one_line(turn.prompt.text, _SAID) if turn.prompt is not None else "(no prompt)",
                _href(tale, manner, turn.number),
                money(tale.cost(turn).known) if turn.usage.messages else "",
                turn.number,
                _mix(turn, tale),
                errors=turn.errors,
                held=words.tokens(context_at(tale, turn.nodes)) if turn.usage.messages else "",
            )
        )
        rows += [_seam(seam) for seam in turn.inner_seams]
        _old(rows, tale, manner, turn.number)
        if turn.closing is not None:
            rows.append(_seam(turn.closing))
    return rows


def _seam(seam: Compaction) -> Row:
    said = words.shrunk(*sizes_of(seam)).removesuffix(" tokens")
    return Row("", "", "", cut=f"compacted, {said}" if said else "compacted")


def _href(tale: Tale, manner: Manner, turn: int) -> str:
    detail = "" if manner.detail == "steps" else manner.detail
    if tale.agent:
        return manner.links.agent(manner.key, tale.agent, f"t{turn}", turn=turn, detail=detail)
    return manner.links.session(manner.key, f"t{turn}", turn=turn, detail=detail)


def _old(rows: list[Row], tale: Tale, manner: Manner, after: int) -> None:
    sides = tale.sides_by_turn.get(after, [])
    for side in sides[:_SIDES]:
        asked = next((node for node in side.branch.nodes if node.type == "user"), None)
        said = tale.transcript.record(asked).text if asked is not None else ""
        rows.append(
            Row(
                f"{side.first}{PRIME * side.depth}",
                one_line(said, _SAID) or "(nothing was said)",
                manner.links.session(
                    manner.key, f"b{side.number}", turn=after or 1, branch=side.number
                ),
                money(tale.cost_of_side(side).known),
                old=True,
            )
        )
    if len(sides) > _SIDES:
        first = sides[_SIDES].number
        rows.append(
            Row(
                "",
                f"{len(sides) - _SIDES:,} more abandoned",
                manner.links.session(manner.key, f"b{first}", turn=after or 1, branch=first),
                old=True,
            )
        )


def _mix(turn: Turn, tale: Tale) -> Markup | None:
    parts: dict[str, int] = {}
    for step in turn.steps:
        if step.kind in ("note", "hook", "queued"):
            continue
        if step.state == "failed":
            name = "fbad"
        elif step.agent is not None:
            name = f"fag{tale.colour(step.agent)}"
        elif step.kind in ("words", "thought"):
            name = "f1"
        else:
            name = "fink"
        parts[name] = parts.get(name, 0) + 1
    return _bars(list(parts.items())) if parts else None


def _bars(parts: Sequence[tuple[str, int]]) -> Markup:
    total = sum(number for _, number in parts)
    x = 0.0
    made: list[Markup] = []
    for name, number in parts:
        width = number / total * _WIDE * min(1.0, total / _FULL + 0.15)
        made.append(_RECT.format(name, x, max(width - 0.8, 0.8)))
        x += width
    return Markup('<svg viewBox="0 0 44 6" aria-hidden="true">{}</svg>').format(
        Markup("").join(made)
    )
