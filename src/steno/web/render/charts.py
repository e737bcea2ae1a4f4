"""Charts as SVG: geometry in attributes, colour in classes, because the CSP forbids inline styles.

Marks link to the data behind them; a chart with links is a group, so the links stay accessible.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from typing import Final

import msgspec
from markupsafe import Markup, escape

from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.sanitize.html import escape_markup


def format_length(value: float) -> str:
    """Return a length with few digits."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def svg(
    width: float, height: float, body: Markup, kind: str = "chart", *, label: str = "", fill: bool = False
) -> Markup:
    """Return an SVG image; hidden from assistive technology if it has no label."""
    accessible_name = Markup('role="img" aria-label="{}"').format(label) if label else Markup('aria-hidden="true"')
    stretch = Markup(' preserveAspectRatio="none"') if fill else Markup("")
    return Markup('<svg class="{}" viewBox="0 0 {} {}" {}{}>{}</svg>').format(
        kind, format_length(width), format_length(height), accessible_name, stretch, body
    )


def sparkline(values: Sequence[int], failed: Collection[int] = ()) -> Markup:
    """Draw the activity of a session: a bar per time slice, red if a step failed."""
    gap = 1
    bar = (112 - gap * (len(values) - 1)) // len(values)
    highest = max(values) or 1
    paths: dict[str, list[str]] = {}
    for position, value in enumerate(values):
        bar_height = max(2, round(value / highest * 18)) if value else 1
        kind = "e" if position in failed else ("" if value else "z")
        paths.setdefault(kind, []).append(f"M{position * (bar + gap)} {20 - bar_height}h{bar}v{bar_height}h-{bar}z")
    body = Markup("").join(
        Markup('<path class="{}" d="{}"/>').format(kind, "".join(path)) for kind, path in paths.items()
    )
    return svg(len(values) * (bar + gap) - gap, 20, body, "spark", fill=True)


def meter(share: float, kind: str = "fa") -> Markup:
    """Draw a bar that is filled to a share from 0 to 1."""
    body = Markup('<rect class="rest" width="100" height="4"/><rect class="{}" width="{}" height="4"/>').format(
        kind, format_length(min(1.0, max(0.0, share)) * 100)
    )
    return svg(100, 4, body, "meter", fill=True)


_WEEK: Final = 7
_STEPS: Final = 4
_CHART_WIDTH: Final = 1192
_HOUR: Final = 3_600_000
_CENTS: Final = 2
_DIGITS: Final = 6
_AXIS_MINIMA: Final = (0.0, 0.5, 0.9)
"""Possible minimum values of an axis of shares."""
_MAX_BAR_WIDTH: Final = 64
"""Maximum width of a bar."""
_SPARSE_POINTS: Final = 2
"""Maximum number of points that are drawn as dots instead of a line."""
_LABEL_WIDTH: Final = 52
"""Minimum distance between labels of the time axis."""


class HeatmapDay(msgspec.Struct, frozen=True):
    """A day in a heatmap, with a level from 0 to 4."""

    day: date
    level: int
    title: str
    href: str = ""


class ChartMark(msgspec.Struct, frozen=True):
    """A value in a chart, with its title and link."""

    value: float | None
    title: str
    href: str = ""
    kind: str = ""


class StackedBar(msgspec.Struct, frozen=True):
    """A stack of values, with a link for the whole stack."""

    label: str
    title: str
    href: str
    segments: list[ChartMark]


class TimeBlock(msgspec.Struct, frozen=True):
    """A 5-hour block; `start` is in milliseconds."""

    start: int
    share: float
    label: str
    title: str
    href: str
    is_current: bool = False


def _chart_svg(width: float, height: float, body: Iterable[str], label: str, kind: str) -> Markup:
    return Markup(
        f'<svg class="chart {kind}" viewBox="0 0 {format_length(width)} {format_length(height)}" role="group" '
        f'aria-label="{escape_markup(label)}">{"".join(body)}</svg>'
    )


def _linked(href: str, title: str, body: str, *, is_tab_stop: bool = True) -> str:
    """Return marks in a link; without `is_tab_stop`, the link is not in the tab order."""
    title_html = f"<title>{escape_markup(title)}</title>"
    if not href:
        return f"<g>{title_html}{body}</g>"
    tab_attribute = "" if is_tab_stop else ' tabindex="-1"'
    return f'<a href="{escape(href)}"{tab_attribute}>{title_html}{body}</a>'


def _text(x: float, y: float, text: str, anchor: str = "", kind: str = "") -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{format_length(x)}" y="{format_length(y)}"{where}>{escape_markup(text)}</text>'


def _rect(kind: str, x: float, y: float, width: float, height: float, round_: float = 0) -> str:
    corner = f' rx="{format_length(round_)}"' if round_ else ""
    return (
        f'<rect class="{kind}" x="{format_length(x)}" y="{format_length(y)}" width="{format_length(width)}" '
        f'height="{format_length(height)}"{corner}/>'
    )


def _horizontal_line(kind: str, y: float, start: float, end: float) -> str:
    y_text = format_length(y)
    return f'<line class="{kind}" x1="{format_length(start)}" x2="{format_length(end)}" y1="{y_text}" y2="{y_text}"/>'


def year_heatmap(days: Sequence[HeatmapDay], label: str) -> Markup:
    """Draw a year: one square per day, one column per week, Monday on top."""
    cell, gap, left, top = 16.6, 4.0, 34.0, 18.0
    pitch = cell + gap
    first = days[0].day - timedelta(days=days[0].day.weekday())
    body = [_text(left - 8, top + row * pitch + 12, name, "end") for name, row in (("Mon", 0), ("Wed", 2), ("Fri", 4))]
    empty_squares: list[str] = []
    month = 0
    for item in days:
        column, row = divmod((item.day - first).days, _WEEK)
        x, y = left + column * pitch, top + row * pitch
        if row == 0 and item.day.day <= _WEEK and item.day.month != month:
            month = item.day.month
            body.append(_text(x, 10, f"{item.day:%b}"))
        if item.level:
            square = _rect(f"q{item.level}", x, y, cell, cell, 2.5)
            body.append(_linked(item.href, item.title, square, is_tab_stop=False))
        else:
            empty_squares.append(
                f"M{format_length(x)} {format_length(y)}h{format_length(cell)}v{format_length(cell)}h-{format_length(cell)}z"
            )
    body.insert(0, f'<path class="q0" d="{"".join(empty_squares)}"/>')
    chart_width = left + ((days[-1].day - first).days // _WEEK + 1) * pitch - gap
    return _chart_svg(chart_width, top + _WEEK * pitch - gap, body, label, "heat")


def axis_step(highest: float) -> float:
    """Return the interval between the marks of an axis with at most four intervals.

    >>> axis_step(21.9), axis_step(0.11), axis_step(0)
    (6.0, 0.03, 0.25)
    """
    if highest <= 0:
        return 0.25
    min_step = highest / _STEPS
    scale = 10.0 ** (len(f"{min_step:.0f}") - 1) if min_step >= 1 else 1.0
    while scale > min_step:
        scale /= 10
    for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10):
        if step * scale >= min_step * 0.999:
            return round(step * scale, 10)
    return scale * 10


def _axis_money(value: float, step: float) -> str:
    digits = 0 if step == int(step) else _CENTS
    while _CENTS <= digits < _DIGITS and abs(step - round(step, digits)) > step * 1e-6:
        digits += 1
    return f"${value:,.{digits}f}"


def stacked_bars(columns: Sequence[StackedBar], label: str, width: float = 780, height: float = 236) -> Markup:
    """Draw costs in micro-dollars as stacked bars, one per period."""
    bottom, top = 22.0, 8.0
    highest = max((sum(mark.value or 0 for mark in bar.segments) for bar in columns), default=0)
    step = axis_step(highest / MICRO_DOLLARS_PER_DOLLAR)
    right = 14.0 + 6.5 * len(_axis_money(step * _STEPS, step))
    plot_height, plot_width = height - bottom - top, width - right
    scale = plot_height / (step * _STEPS * MICRO_DOLLARS_PER_DOLLAR)
    body = list(_money_grid(step, plot_width, top, plot_height))
    slot = plot_width / max(1, len(columns))
    gap = min(6.0, slot * 0.28)
    for position, pile in enumerate(columns):
        body.append(_stacked_bar(pile, position * slot + gap / 2, slot - gap, top, plot_height, scale))
    body += _time_labels([pile.label for pile in columns], slot, height - 5, plot_width)
    return _chart_svg(width, height, body, label, "stacked")


def _money_grid(step: float, plot_width: float, top: float, plot_height: float) -> Iterable[str]:
    for position in range(_STEPS + 1):
        y = top + plot_height - position / _STEPS * plot_height
        yield _horizontal_line("grid" if position else "axis", y, 0, plot_width)
        yield _text(plot_width + 8, y + 4, _axis_money(step * position, step))


def _stacked_bar(
    stacked_bar: StackedBar, x: float, bar_width: float, top: float, plot_height: float, scale: float
) -> str:
    """Return a stacked bar in front of a full-height link."""
    column = _rect("hit", x, top, bar_width, plot_height)
    if not any(mark.value for mark in stacked_bar.segments):
        return f"<g><title>{escape_markup(stacked_bar.title)}</title>{column}</g>"
    parts = [_linked(stacked_bar.href, stacked_bar.title, column)]
    base = 0.0
    for mark in stacked_bar.segments:
        value = (mark.value or 0) * scale
        if value > 0:
            y = top + plot_height - base - value
            bar = _rect(mark.kind, x, y, bar_width, max(value - 1, 0.8))
            parts.append(_linked(mark.href, mark.title, bar, is_tab_stop=False))
        base += value
    return f"<g data-stop>{''.join(parts)}</g>"


def _time_labels(labels: Sequence[str], slot: float, y: float, plot_width: float) -> Iterable[str]:
    """Yield axis labels that do not overlap, always including the last one."""
    stride = max(1, -(-_LABEL_WIDTH // max(1, int(slot))))
    last = len(labels) - 1
    for position, label in enumerate(labels):
        if (last - position) % stride == 0:
            x = min(max((position + 0.5) * slot, 16), plot_width - 14)
            yield _text(x, y, label, "middle")


def share_line(
    marks: Sequence[ChartMark],
    labels: Sequence[str],
    mean: float | None,
    label: str,
    width: float = 420,
    height: float = 236,
) -> Markup:
    """Draw shares from 0 to 1 over time, with a dashed line at the mean and a label at the lowest value."""
    left, right, bottom, top = 34.0, 8.0, 22.0, 8.0
    plot_width, plot_height = width - left - right, height - bottom - top
    values = [mark.value for mark in marks if mark.value is not None]
    lowest = min(values, default=0.0)
    axis_minimum = max(floor for floor in _AXIS_MINIMA if floor <= max(0.0, lowest))
    last = max(1, len(marks) - 1)

    def point(position: int, share: float) -> tuple[float, float]:
        x = left + (position / last if len(marks) > 1 else 0.5) * plot_width
        return x, top + plot_height - (share - axis_minimum) / (1 - axis_minimum) * plot_height

    body: list[str] = []
    for share in (axis_minimum, (1 + axis_minimum) / 2, 1.0):
        _, y = point(0, share)
        body.append(_horizontal_line("axis" if share == axis_minimum else "grid", y, left, width - right))
        body.append(_text(left - 8, y + 4, f"{share:.0%}", "end"))
    if mean is not None:
        body.append(_horizontal_line("stroke two", point(0, max(mean, axis_minimum))[1], left, width - right))
    points = [
        f"{format_length(x)},{format_length(y)}"
        for x, y in (point(k, m.value) for k, m in enumerate(marks) if m.value is not None)
    ]
    body.append(f'<polyline class="stroke" points="{" ".join(points)}"/>')
    for position, mark in enumerate(marks):
        if mark.value is not None:
            x, y = point(position, mark.value)
            body.append(
                _line_point(
                    mark, x, y, plot_width / last, is_visible=mark.value == lowest or len(values) <= _SPARSE_POINTS
                )
            )
    for position in sorted({0, last // 2, last}) if len(marks) > 1 else (0,):
        anchor = "start" if position == 0 else "end" if position == last else "middle"
        body.append(_text(point(position, axis_minimum)[0], height - 5, labels[position], anchor))
    return _chart_svg(width, height, body, label, "line")


def _line_point(mark: ChartMark, x: float, y: float, slot: float, *, is_visible: bool) -> str:
    hit_width = max(6.0, min(24.0, slot))
    hit = _rect("hit", x - hit_width / 2, y - 14, hit_width, 28)
    dot = f'<circle class="{"fa" if is_visible else "spot"}" cx="{format_length(x)}" cy="{format_length(y)}" r="3"/>'
    return _linked(mark.href, mark.title, hit + dot, is_tab_stop=False)


def labelled_bars(columns: Sequence[StackedBar], label: str, width: float = 580, height: float = 180) -> Markup:
    """Draw a bar chart with values above and labels below the bars."""
    bottom, top = 22.0, 20.0
    plot_height = height - bottom - top
    highest = max((column.segments[0].value or 0 for column in columns), default=0) or 1
    slot = width / max(1, len(columns))
    gap = max(slot - _MAX_BAR_WIDTH, min(12.0, slot * 0.2))
    body = [_horizontal_line("axis", top + plot_height, 0, width)]
    for position, mark in enumerate(columns):
        value = mark.segments[0].value or 0
        bar_height = max(value / highest * plot_height, 1.5) if value else 0
        x = position * slot + gap / 2
        parts = _rect("hit", x, top, slot - gap, plot_height)
        parts += _rect("f7", x, top + plot_height - bar_height, slot - gap, bar_height, 2)
        if value:
            parts += _text(x + (slot - gap) / 2, top + plot_height - bar_height - 6, f"{value:,.0f}", "middle", "b")
            body.append(f"<g data-stop>{_linked(mark.href, mark.title, parts)}</g>")
        body.append(_text(x + (slot - gap) / 2, height - 5, mark.label, "middle"))
    return _chart_svg(width, height, body, label, "bars")


def time_blocks(items: Sequence[TimeBlock], days: Sequence[tuple[int, str]], end: int, now: int, label: str) -> Markup:
    """Draw 5-hour blocks; `days` are midnights and their labels, in order."""
    top, bottom, height = 34.0, 20.0, 124.0
    plot_height = height - top - bottom
    start = days[0][0]

    def x_of(moment: int) -> float:
        return (moment - start) / (end - start) * _CHART_WIDTH

    body: list[str] = []
    for midnight, name in days:
        x = format_length(x_of(midnight))
        body.append(f'<line class="axis" x1="{x}" x2="{x}" y1="0" y2="{format_length(height - bottom)}"/>')
        body.append(_text(x_of(midnight) + 6, 10, name))
        noon = midnight + 12 * _HOUR
        if noon < end:
            x = format_length(x_of(noon))
            body.append(
                f'<line class="grid" x1="{x}" x2="{x}" y1="{format_length(top)}" '
                f'y2="{format_length(height - bottom)}"/>'
            )
            body.append(_text(x_of(noon), height - 5, "12:00", "middle"))
    body.append(_horizontal_line("axis", height - bottom, 0, _CHART_WIDTH))
    for item in items:
        x, block_width = x_of(item.start), x_of(start + 5 * _HOUR) - 2
        block_height = max(item.share * plot_height, 1.5)
        parts = _rect("fline", x, top, block_width, plot_height, 2)
        parts += _rect(
            "fa" if item.is_current else "f7", x, top + plot_height - block_height, block_width, block_height, 2
        )
        parts += _text(x, top - 5, item.label, kind="b")
        body.append(f"<g data-stop>{_linked(item.href, item.title, parts)}</g>")
    if start < now < end:
        x = format_length(x_of(now))
        body.append(
            f'<line class="nowline" x1="{x}" x2="{x}" y1="{format_length(top - 2)}" y2="{format_length(height - bottom)}"/>'
        )
    return _chart_svg(_CHART_WIDTH, height, body, label, "blocks")


_WEEKS_WIDTH: Final = 560
_WEEKS_HEIGHT: Final = 96
_WEEKS_FOOTER: Final = 18
_WEEKS_HEADER: Final = 16
_MONTHS: Final = (*("Jan", "Feb", "Mar", "Apr", "May", "Jun"), *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"))


def week_bars(values: Sequence[int], mondays: Sequence[str], titles: Sequence[str], label: str, top: str) -> Markup:
    """Draw a bar per week; `titles` are the tooltips of the bars, `top` is the label of the maximum."""
    slot = min(28.0, _WEEKS_WIDTH / max(1, len(values)))
    highest = max([1, *values])
    plot_height = _WEEKS_HEIGHT - _WEEKS_FOOTER - _WEEKS_HEADER
    start = _WEEKS_WIDTH - slot * len(values)
    parts = [
        Markup('<line class="axis" x1="0" y1="{0}" x2="{1}" y2="{0}"/>').format(
            _WEEKS_HEIGHT - _WEEKS_FOOTER, _WEEKS_WIDTH
        ),
        Markup('<text x="{}" y="10" text-anchor="end">{}</text>').format(_WEEKS_WIDTH, top),
    ]
    for position, (value, title) in enumerate(zip(values, titles, strict=True)):
        bar_height = max(2.0, value / highest * plot_height) if value else 1.0
        kind = "fa" if position == len(values) - 1 else "f1" if value else "fline"
        parts.append(
            Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
                kind,
                format_length(start + position * slot + 1),
                format_length(_WEEKS_HEIGHT - _WEEKS_FOOTER - bar_height),
                format_length(slot - 2),
                format_length(bar_height),
                title,
            )
        )
    parts += _month_labels(mondays, start, slot)
    return svg(_WEEKS_WIDTH, _WEEKS_HEIGHT, Markup("").join(parts), label=label)


def _month_labels(mondays: Sequence[str], start: float, slot: float) -> list[Markup]:
    """Return a label per month at its first week. Skip labels that would overlap."""
    labels: list[Markup] = []
    last, next_free = "", 0.0
    for position, day in enumerate(mondays):
        month = day[:7]
        x = start + position * slot + 1
        if month != last and x >= next_free:
            name = _MONTHS[int(day[5:7]) - 1]
            labels.append(Markup('<text x="{}" y="{}">{}</text>').format(format_length(x), _WEEKS_HEIGHT - 4, name))
            next_free = x + 36
        last = month
    return labels
