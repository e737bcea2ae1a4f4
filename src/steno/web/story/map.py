"""The whole session in one narrow picture: what was asked, done, failed, compacted, abandoned."""

from typing import Final

from markupsafe import Markup

from steno.session.story.steps import Step
from steno.session.story.turns import Turn
from steno.web.story.tale import Tale

__all__ = ["map_of"]

_MARKS: Final = 900
_HIGH: Final = 780.0
"""A short session does not fill the strip."""
_LEAST: Final = 3
_WIDE: Final = 27.0
_QUIET: Final = frozenset(("note", "hook"))
_WEIGHTY: Final = 1_500
_RECT: Final = Markup('<rect class="{}" x="6" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')


class _Pen:
    def __init__(self) -> None:
        self.made: list[Markup] = []
        self.y = 8.0

    def bar(self, cls: str, width: float, height: float = 2.0, gap: float = 1.6) -> None:
        self.made.append(_RECT.format(cls, self.y, width, height))
        self.y += height + gap


def map_of(tale: Tale) -> Markup:
    """Return the map; where each turn begins is told to the script that moves the frame."""
    pen = _Pen()
    most = max(_LEAST, _MARKS // max(1, len(tale.turns)))
    starts: list[str] = []
    _sides(pen, tale, 0)
    for turn in tale.turns:
        if turn.opening is not None:
            _seam(pen)
        starts.append(f"{pen.y - 3:.1f}")
        _turn(pen, turn, tale, most)
        for _ in turn.inner_seams:
            _seam(pen)
        pen.y += 5
        _sides(pen, tale, turn.number)
    starts.append(f"{pen.y:.1f}")
    return Markup(
        '<svg data-turns="{}" viewBox="0 0 39 {:.1f}" preserveAspectRatio="none" role="img" '
        'aria-label="Map of the session; the frame is what you see">{}'
        '<rect class="view" x=".5" y="0" width="38" height="0" rx="2"/></svg>'
    ).format(",".join(starts), max(_HIGH, pen.y + 8), Markup("").join(pen.made))


def _seam(pen: _Pen) -> None:
    pen.made.append(
        Markup('<line class="seamline" x1="2" x2="37" y1="{0:.1f}" y2="{0:.1f}"/>').format(pen.y)
    )
    pen.y += 7


def _turn(pen: _Pen, turn: Turn, tale: Tale, most: int) -> None:
    pen.bar("p", _WIDE, 3, 2)
    steps = [step for step in turn.steps if step.kind not in _QUIET]
    # Of very many, every so manyth; those that failed are always there.
    every = max(1, -(-len(steps) // most))
    for place, step in enumerate(steps):
        if place % every == 0 or step.state == "failed":
            pen.bar(_class(step, tale), _width(step))
    if turn.answer:
        for _ in range(min(4, 1 + len(turn.answer) // 600)):
            pen.bar("an", 24, 1, 1.4)


def _class(step: Step, tale: Tale) -> str:
    if step.state == "failed":
        return "fbad"
    if step.agent is not None:
        return f"ag{tale.colour(step.agent)}"
    return "an" if step.kind in ("words", "thought") else "t"


def _width(step: Step) -> float:
    return 5 + min(1.0, (step.tokens or 0) / _WEIGHTY) * (_WIDE - 5)


def _sides(pen: _Pen, tale: Tale, after: int) -> None:
    for side in tale.sides_by_turn.get(after, ())[:8]:
        top = pen.y
        for _ in range(min(8, max(1, side.branch.turns * 2))):
            pen.bar("an", 14)
        pen.made.append(
            Markup(
                '<rect class="gone" x="3.5" y="{:.1f}" width="32" height="{:.1f}" rx="2"/>'
            ).format(top - 2, pen.y - top + 2)
        )
        pen.y += 4
