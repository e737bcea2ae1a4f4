"""SVG charts of a session: context bar, context growth by turn, session map."""

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from steno.report import humanize
from steno.report.context_usage import CONTEXT_SOURCES, ContextPoint, ContextSource, ContextUsage
from steno.session.turns.steps import Step
from steno.session.turns.turn_builder import Turn
from steno.web.views.session_view import SessionView

SOURCE_CLASSES: Final[dict[ContextSource, str]] = {
    "system": "f7",
    "memory": "f5",
    "summary": "f4",
    "prompts": "f6",
    "files": "f1",
    "output": "f3",
    "answers": "f2",
}
_CHART_WIDTH: Final = 320.0
_CHART_HEIGHT: Final = 132.0
_PLOT_LEFT: Final = 34.0
_PLOT_TOP: Final = 8.0
_PLOT_HEIGHT: Final = 106.0
_MAX_POINTS: Final = 160
_MIN_POINTS: Final = 2
_GRID: Final = 4
_LABELS: Final = 3
_THOUSAND: Final = 1000
_NO_CHART: Final = Markup("")


def context_bar(context: ContextUsage) -> Markup:
    """Return a bar of the context by source."""
    last = context.latest
    x = 0.0
    parts = [Markup('<rect class="rest" width="1000" height="12"/>')]
    for kind, tokens in zip(CONTEXT_SOURCES, last.parts if last is not None else (), strict=False):
        width = tokens / context.limit * 1000
        if tokens:
            parts.append(
                Markup('<rect class="{}" x="{:.1f}" width="{:.1f}" height="12"/>').format(
                    SOURCE_CLASSES[kind], x, max(width - 3, 1)
                )
            )
        x += width
    return Markup(
        '<svg class="stackbar" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(_NO_CHART.join(parts))


def context_growth_chart(context: ContextUsage) -> Markup:
    """Return a chart of the context size by turn, with compactions; empty for a single turn."""
    points = _thin_points(context.points, set(context.cuts))
    if len(points) < _MIN_POINTS:
        return _NO_CHART
    top = max(point.total for point in points) * 1.12 or 1.0
    plot = _GrowthPlot(points, top)
    parts = [*plot.grid(), *plot.areas(), *plot.compaction_lines(context.cuts), *plot.turn_labels()]
    return Markup('<svg class="chart" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>').format(
        _CHART_WIDTH,
        _CHART_HEIGHT,
        f"Context by source over {humanize.count(len(context.points), 'turn')}, "
        f"with {humanize.count(len(context.cuts), 'compaction')}",
        _NO_CHART.join(parts),
    )


def _thin_points(points: Sequence[ContextPoint], compaction_turns: set[int]) -> list[ContextPoint]:
    """Return a reduced number of points, always including the points around a compaction."""
    stride = max(1, -(-len(points) // _MAX_POINTS))
    last = len(points) - 1
    return [
        point
        for position, point in enumerate(points)
        if position % stride == 0
        or position == last
        or point.turn in compaction_turns
        or (position < last and points[position + 1].turn in compaction_turns)
    ]


class _GrowthPlot:
    def __init__(self, points: Sequence[ContextPoint], top: float) -> None:
        self._points = points
        self._top = top

    def _x(self, position: float) -> float:
        return _PLOT_LEFT + position / (len(self._points) - 1) * (_CHART_WIDTH - _PLOT_LEFT - 2)

    def _y(self, tokens: float) -> float:
        return _PLOT_TOP + _PLOT_HEIGHT - tokens / self._top * _PLOT_HEIGHT

    def grid(self) -> Iterator[Markup]:
        """Yield horizontal grid lines with labels."""
        for position in range(_GRID + 1):
            y = self._y(self._top * position / _GRID)
            yield Markup('<line class="grid" x1="{:.0f}" x2="{:.0f}" y1="{:.1f}" y2="{:.1f}"/>').format(
                _PLOT_LEFT, _CHART_WIDTH - 2, y, y
            )
            if position % 2 == 0:
                yield Markup('<text x="{:.0f}" y="{:.1f}" text-anchor="end">{}</text>').format(
                    _PLOT_LEFT - 6, y + 4, _short_tokens(self._top * position / _GRID)
                )

    def areas(self) -> Iterator[Markup]:
        """Yield a stacked area per source."""
        base = [0.0] * len(self._points)
        for kind, name in enumerate(CONTEXT_SOURCES):
            upper = [low + point.parts[kind] for low, point in zip(base, self._points, strict=True)]
            if upper != base:
                upper_points = [(self._x(k), self._y(v)) for k, v in enumerate(upper)]
                lower_points = [(self._x(k), self._y(v)) for k, v in enumerate(base)][::-1]
                yield Markup('<polygon class="{}" points="{}"/>').format(
                    SOURCE_CLASSES[name], _svg_points([*upper_points, *lower_points])
                )
            base = upper
        edge = [(self._x(k), self._y(v)) for k, v in enumerate(base)]
        yield Markup('<polyline class="edge" points="{}"/>').format(_svg_points(edge))

    def compaction_lines(self, turns: Sequence[int]) -> Iterator[Markup]:
        """Yield a line per compaction."""
        places = {point.turn: position for position, point in enumerate(self._points)}
        for turn in turns:
            place = places.get(turn)
            if place is not None:
                x = self._x(max(0.0, place - 0.5))
                yield Markup('<line class="cutline" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.0f}" y2="{2:.0f}"/>').format(
                    x, _PLOT_TOP - 4, _PLOT_TOP + _PLOT_HEIGHT
                )

    def turn_labels(self) -> Iterator[Markup]:
        """Yield labels of the first, middle and last turn."""
        last = len(self._points) - 1
        for position in sorted({0, last // 2, last}) if last >= _LABELS else (0, last):
            anchor = "start" if position == 0 else "end" if position == last else "middle"
            label = f"turn {self._points[position].turn}" if position == 0 else self._points[position].turn
            yield Markup('<text x="{:.1f}" y="{:.0f}" text-anchor="{}">{}</text>').format(
                self._x(position), _CHART_HEIGHT - 4, anchor, label
            )


def _svg_points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _short_tokens(tokens: float) -> str:
    return f"{tokens / _THOUSAND:.0f}k" if tokens >= _THOUSAND else f"{tokens:.0f}"


_MAX_BARS: Final = 900
_MIN_HEIGHT: Final = 780.0
"""Minimum height of the map; short sessions do not fill it."""
_MIN_BARS_PER_TURN: Final = 3
_MAX_BAR_WIDTH: Final = 27.0
_SKIPPED_KINDS: Final = frozenset(("note", "hook"))
_FULL_WIDTH_TOKENS: Final = 1_500
_RECT: Final = Markup('<rect class="{}" x="6" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')


class _MapBuilder:
    def __init__(self) -> None:
        self.shapes: list[Markup] = []
        self.y = 8.0

    def add_bar(self, cls: str, width: float, height: float = 2.0, gap: float = 1.6) -> None:
        self.shapes.append(_RECT.format(cls, self.y, width, height))
        self.y += height + gap


def session_map(view: SessionView) -> Markup:
    """Return the session map. `data-turns` holds the position of each turn for the script."""
    pen = _MapBuilder()
    max_bars = max(_MIN_BARS_PER_TURN, _MAX_BARS // max(1, len(view.turns)))
    starts: list[str] = []
    _add_branches(pen, view, 0)
    for turn in view.turns:
        if turn.opening is not None:
            _add_compaction(pen)
        starts.append(f"{pen.y - 3:.1f}")
        _add_turn(pen, turn, view, max_bars)
        for _ in turn.inner_seams:
            _add_compaction(pen)
        pen.y += 5
        _add_branches(pen, view, turn.number)
    starts.append(f"{pen.y:.1f}")
    return Markup(
        '<svg data-turns="{}" viewBox="0 0 39 {:.1f}" preserveAspectRatio="none" role="img" '
        'aria-label="Session map; the frame marks the visible part">{}'
        '<rect class="view" x=".5" y="0" width="38" height="0" rx="2"/></svg>'
    ).format(",".join(starts), max(_MIN_HEIGHT, pen.y + 8), Markup("").join(pen.shapes))


def _add_compaction(pen: _MapBuilder) -> None:
    pen.shapes.append(Markup('<line class="seamline" x1="2" x2="37" y1="{0:.1f}" y2="{0:.1f}"/>').format(pen.y))
    pen.y += 7


def _add_turn(pen: _MapBuilder, turn: Turn, view: SessionView, max_bars: int) -> None:
    pen.add_bar("p", _MAX_BAR_WIDTH, 3, 2)
    steps = [step for step in turn.steps if step.kind not in _SKIPPED_KINDS]
    # For long turns, draw every n-th step, and always failed steps.
    stride = max(1, -(-len(steps) // max_bars))
    for position, step in enumerate(steps):
        if position % stride == 0 or step.state == "failed":
            pen.add_bar(_step_class(step, view), _step_width(step))
    if turn.answer:
        for _ in range(min(4, 1 + len(turn.answer) // 600)):
            pen.add_bar("an", 24, 1, 1.4)


def _step_class(step: Step, view: SessionView) -> str:
    if step.state == "failed":
        return "fbad"
    if step.agent is not None:
        return f"ag{view.subagent_colour(step.agent)}"
    return "an" if step.kind in ("words", "thought") else "t"


def _step_width(step: Step) -> float:
    return 5 + min(1.0, (step.tokens or 0) / _FULL_WIDTH_TOKENS) * (_MAX_BAR_WIDTH - 5)


def _add_branches(pen: _MapBuilder, view: SessionView, after: int) -> None:
    for branch in view.branches_by_turn.get(after, ())[:8]:
        top = pen.y
        for _ in range(min(8, max(1, branch.branch.turns * 2))):
            pen.add_bar("an", 14)
        pen.shapes.append(
            Markup('<rect class="gone" x="3.5" y="{:.1f}" width="32" height="{:.1f}" rx="2"/>').format(
                top - 2, pen.y - top + 2
            )
        )
        pen.y += 4
