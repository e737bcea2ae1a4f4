"""Two pictures of the context: what fills it now, and how it grew from turn to turn."""

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from steno.report import words
from steno.report.context import KINDS, Context, Kind, Point

__all__ = ["CLASSES", "filled", "growth"]

CLASSES: Final[dict[Kind, str]] = {
    "system": "f7",
    "memory": "f5",
    "summary": "f4",
    "prompts": "f6",
    "files": "f1",
    "output": "f3",
    "answers": "f2",
}
_WIDE: Final = 320.0
_HIGH: Final = 132.0
_LEFT: Final = 34.0
_TOP: Final = 8.0
_DEEP: Final = 106.0
_MOST: Final = 160
_ENOUGH: Final = 2
_GRID: Final = 4
_LABELS: Final = 3
_THOUSAND: Final = 1000
_NONE: Final = Markup("")


def filled(context: Context) -> Markup:
    """Return a bar of what the model has before it."""
    last = context.last
    x = 0.0
    made = [Markup('<rect class="rest" width="1000" height="12"/>')]
    for kind, tokens in zip(KINDS, last.parts if last is not None else (), strict=False):
        width = tokens / context.limit * 1000
        if tokens:
            made.append(
                Markup('<rect class="{}" x="{:.1f}" width="{:.1f}" height="12"/>').format(
                    CLASSES[kind], x, max(width - 3, 1)
                )
            )
        x += width
    return Markup(
        '<svg class="stackbar" viewBox="0 0 1000 12" preserveAspectRatio="none" '
        'aria-hidden="true">{}</svg>'
    ).format(_NONE.join(made))


def growth(context: Context) -> Markup:
    """Return how the context grew, with its compactions; nothing for a single turn."""
    points = _thinned(context.points, set(context.cuts))
    if len(points) < _ENOUGH:
        return _NONE
    top = max(point.total for point in points) * 1.12 or 1.0
    plot = _Plot(points, top)
    made = [*plot.grid(), *plot.areas(), *plot.cuts(context.cuts), *plot.turns()]
    return Markup(
        '<svg class="chart" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(
        _WIDE,
        _HIGH,
        f"Context by source over {words.count(len(context.points), 'turn')}, "
        f"with {words.count(len(context.cuts), 'compaction')}",
        _NONE.join(made),
    )


def _thinned(points: Sequence[Point], cuts: set[int]) -> list[Point]:
    """Return as many points as can be told apart; those around a compaction stay."""
    every = max(1, -(-len(points) // _MOST))
    last = len(points) - 1
    return [
        point
        for place, point in enumerate(points)
        if place % every == 0
        or place == last
        or point.turn in cuts
        or (place < last and points[place + 1].turn in cuts)
    ]


class _Plot:
    def __init__(self, points: Sequence[Point], top: float) -> None:
        self._points = points
        self._top = top

    def _x(self, place: float) -> float:
        return _LEFT + place / (len(self._points) - 1) * (_WIDE - _LEFT - 2)

    def _y(self, tokens: float) -> float:
        return _TOP + _DEEP - tokens / self._top * _DEEP

    def grid(self) -> Iterator[Markup]:
        """Yield the lines that figures are read off."""
        for place in range(_GRID + 1):
            y = self._y(self._top * place / _GRID)
            yield Markup(
                '<line class="grid" x1="{:.0f}" x2="{:.0f}" y1="{:.1f}" y2="{:.1f}"/>'
            ).format(_LEFT, _WIDE - 2, y, y)
            if place % 2 == 0:
                yield Markup('<text x="{:.0f}" y="{:.1f}" text-anchor="end">{}</text>').format(
                    _LEFT - 6, y + 4, _round(self._top * place / _GRID)
                )

    def areas(self) -> Iterator[Markup]:
        """Yield one area for each source, on top of each other."""
        base = [0.0] * len(self._points)
        for kind, name in enumerate(KINDS):
            upper = [low + point.parts[kind] for low, point in zip(base, self._points, strict=True)]
            if upper != base:
                there = [(self._x(k), self._y(v)) for k, v in enumerate(upper)]
                back = [(self._x(k), self._y(v)) for k, v in enumerate(base)][::-1]
                yield Markup('<polygon class="{}" points="{}"/>').format(
                    CLASSES[name], _path([*there, *back])
                )
            base = upper
        edge = [(self._x(k), self._y(v)) for k, v in enumerate(base)]
        yield Markup('<polyline class="edge" points="{}"/>').format(_path(edge))

    def cuts(self, turns: Sequence[int]) -> Iterator[Markup]:
        """Yield where it was compacted."""
        places = {point.turn: place for place, point in enumerate(self._points)}
        for turn in turns:
            place = places.get(turn)
            if place is not None:
                x = self._x(max(0.0, place - 0.5))
                yield Markup(
                    '<line class="cutline" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.0f}" y2="{2:.0f}"/>'
                ).format(x, _TOP - 4, _TOP + _DEEP)

    def turns(self) -> Iterator[Markup]:
        """Yield the numbers of the first turn, the one in the middle, and the last."""
        last = len(self._points) - 1
        for place in sorted({0, last // 2, last}) if last >= _LABELS else (0, last):
            anchor = "start" if place == 0 else "end" if place == last else "middle"
            word = f"turn {self._points[place].turn}" if place == 0 else self._points[place].turn
            yield Markup('<text x="{:.1f}" y="{:.0f}" text-anchor="{}">{}</text>').format(
                self._x(place), _HIGH - 4, anchor, word
            )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _round(tokens: float) -> str:
    return f"{tokens / _THOUSAND:.0f}k" if tokens >= _THOUSAND else f"{tokens:.0f}"
