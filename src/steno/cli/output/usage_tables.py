"""Usage reports as lines: a table with bars, a heat map, and the responses of a total.

In the heat map each shade has a quarter of the cells with a cost: scaled by amount, one expensive
hour would make all others look alike.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from typing import Any, Final

from steno.cli.command_arguments import root_arguments
from steno.cli.output.screen import Screen
from steno.cli.output.table_layout import Column, layout_columns
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize
from steno.report.clock import iso_time_from_ms
from steno.report.usage.usage_explanation import ExplainedLine, ExplainedResponse, UsageExplanation
from steno.report.usage.usage_query import UsageQuery
from steno.report.usage.usage_report import (
    ReportRow,
    UsageFigures,
    UsageReport,
    figures_json,
    group_json,
    rounded_micros,
)
from steno.sanitize.terminal import StyledLine, display_width, one_line, shorten_path, wrap

_DEFAULT_ROWS: Final = 30
_TIME_GROUPINGS: Final = ("day", "week", "month", "hour", "block5h")
_HEADINGS: Final = {"block5h": "5-HOUR BLOCK", "project": "PROJECT", "tool": "FIRST TOOL"}
_EIGHTH_BLOCKS: Final = " ▏▎▍▌▋▊▉"
_MAX_BAR_WIDTH: Final = 40
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BAR_HEADING: Final = "BAR"


def print_usage_report(report: UsageReport, query: UsageQuery, options: Any, color: Any, width: int | None) -> None:
    """Print a usage report."""
    screen = Screen(color, width)
    if not report.lines:
        screen.print_lines([line] for line in wrap(_empty_message(report, query), screen.width))
        return
    if options.heat:
        screen.print_lines(heat_map_lines(report, screen, by_days=options.heat == "days"))
    else:
        limit = _DEFAULT_ROWS if options.limit is None else options.limit
        screen.print_lines(_table_lines(report, screen, limit))
    screen.print_lines([[], *footnote_lines(report, screen.width)])
    where = root_arguments(options.root, demo=options.demo)
    steps = [f"steno usage{where} --explain", f"steno usage{where} --by session"]
    screen.print_next_steps(steps, "Each response counts once.")


def _empty_message(report: UsageReport, query: UsageQuery) -> str:
    if not report.complete:
        return "No usage found yet; some files were not read."
    bounded = query.is_bounded or query.project
    return "No usage matches these filters." if bounded else "No usage found."


def _table_lines(report: UsageReport, screen: Screen, limit: int) -> Iterator[StyledLine]:
    in_time = report.by in _TIME_GROUPINGS
    lines = report.lines
    if limit and len(lines) > limit:
        lines = lines[-limit:] if in_time else lines[:limit]
    total = ReportRow(("",), report.totals, report.cost)
    total.calls = sum(line.calls for line in report.lines)
    total.failed = sum(line.failed for line in report.lines)
    columns = _usage_columns(report.by, [*lines, total])
    available = screen.width - 1
    if in_time:
        columns = _add_bar_column(columns, lines, available, unicode=screen.styler.unicode)
    heads, rows = layout_columns(columns, available)
    yield [" ", *heads]
    for row in rows[:-1]:
        yield [" ", *row]
    yield [("─" * min(available, _line_width(heads)), "dim")]
    yield [" ", *(_as_bold(styled) for styled in rows[-1])]
    if len(lines) < len(report.lines):
        count_text = f"{len(lines):,} of {len(report.lines):,} rows"
        selection = f"newest {count_text}" if in_time else f"top {count_text} by cost"
        limit_note = f"{selection}; use --limit 0 to show all"
        for text in wrap(limit_note, available):
            yield [(f" {text}", "dim")]


def _add_bar_column(columns: list[Column], lines: list[ReportRow], available: int, *, unicode: bool) -> list[Column]:
    """Add cost bars to the columns, and drop columns that do not fit."""
    blank = Column(_BAR_HEADING, [" "] * (len(lines) + 1), flexible=True)
    heads, _ = layout_columns([*columns[:2], blank, *columns[2:]], available)
    heading_widths = {
        head.strip(): len(head) for head, _ in (styled for styled in heads if not isinstance(styled, str))
    }
    bar_width = min(heading_widths.get(_BAR_HEADING, 0), _MAX_BAR_WIDTH)
    max_cost = max((line.cost for line in lines), default=0)
    bars = [bar_text(line.cost, max_cost, bar_width, unicode=unicode) for line in lines]
    visible = [column for column in columns if column.heading in heading_widths]
    for column in visible:
        column.min_flexible_width = 0
    return [*visible[:2], Column("", [*bars, ""], "blue", max_width=_MAX_BAR_WIDTH), *visible[2:]]


def _as_bold(styled: Any) -> Any:
    return (styled[0], "bold") if isinstance(styled, tuple) else styled


def _line_width(line: StyledLine) -> int:
    return sum(len(styled if isinstance(styled, str) else styled[0]) for styled in line) + 2


def _usage_columns(by: str, lines: list[ReportRow]) -> list[Column]:
    figures = [line.figures for line in lines]
    columns = _grouping_columns(by, lines[:-1])
    for column in columns:
        column.cells.append("total" if column is columns[0] else "")
    columns.append(Column("COST", [format_cost(line.cost, line.figures) for line in lines], align_right=True))
    if by == "tool":
        calls = [f"{line.calls:,}" if line.calls else "" for line in lines]
        failed = [f"{line.failed / line.calls:.1%}" if line.calls else "" for line in lines]
        columns.append(Column("CALLS", calls, align_right=True, min_flexible_width=16))
        columns.append(Column("FAILED", failed, align_right=True, min_flexible_width=17))
    return [
        *columns,
        _count_column("INPUT", [usage.input for usage in figures], 14),
        _count_column("OUTPUT", [each.output for each in figures], 12),
        _count_column("CACHE WRITE", [each.cache_write for each in figures], 20),
        _count_column("CACHE READ", [each.cache_read for each in figures], 18),
        Column("CACHED", [_cache_hit_rate(each) for each in figures], "dim", align_right=True, min_flexible_width=22),
        _count_column("SEARCHES", [each.searches for each in figures], 24),
        _count_column("RESPONSES", [each.responses for each in figures], 26),
    ]


def _count_column(head: str, values: list[int], min_width: int) -> Column:
    """Return a column of figures, empty if all are zero."""
    cells = [f"{value:,}" for value in values] if any(values) else []
    return Column(head, cells or [""] * len(values), align_right=True, min_flexible_width=min_width)


def _cache_hit_rate(figures: UsageFigures) -> str:
    return f"{figures.cache_read / figures.context:.0%}" if figures.context else ""


def _grouping_columns(by: str, lines: list[ReportRow]) -> list[Column]:
    names = [tuple(one_line(name, 200) for name in line.names) for line in lines]
    head = _HEADINGS.get(by, by.upper())
    if by == "day":
        return [Column("DAY", [_day_with_weekday(name[0]) for name in names], style="bold")]
    if by in _TIME_GROUPINGS:
        return [Column(head, [name[0] or "unknown" for name in names], style="bold")]
    titles = [one_line(line.title, 200) or "(no title)" for line in lines]
    if by == "session":
        projects = [one_line(humanize.project_name(line.project), 40) for line in lines]
        return [
            Column("ID", [name[0][:SHORT_ID_LENGTH] or "?" for name in names], "bold"),
            Column("SESSION", titles, flexible=True),
            Column("PROJECT", projects, "dim", max_width=16, min_flexible_width=28),
        ]
    if by == "agent":
        return [
            Column("ID", [name[0][:SHORT_ID_LENGTH] or "?" for name in names], "bold"),
            Column("SUB-AGENT", [name[1] or "main session" for name in names], max_width=20),
            Column("TITLE", titles, flexible=True, max_width=60),
        ]
    if by == "branch":
        projects = [humanize.project_name(name[0]) or "unknown" for name in names]
        return [
            Column("PROJECT", projects, "bold", max_width=24),
            Column("BRANCH", [name[1] or "(none)" for name in names], flexible=True),
        ]
    return [Column(head, [name[0] or "unknown" for name in names], "bold", flexible=True)]


def _day_with_weekday(day: str) -> str:
    if not day:
        return "unknown"
    from datetime import date

    return f"{_WEEKDAYS[date.fromisoformat(day).weekday()]} {day}"


def format_cost(micro: int, figures: UsageFigures) -> str:
    """Return an amount; `?` marks a missing price, `≈` an under-reported figure.

    >>> format_cost(12_345_678, UsageFigures()), format_cost(0, UsageFigures(unpriced={"x": 1}))
    ('$12.35', '?')
    """
    if not figures.has_cost:
        return "?"
    prefix = "≈" if figures.estimated else ""
    return f"{prefix}{humanize.cents(micro or bool(figures.exact))}{'+?' if figures.unpriced else ''}"


def bar_text(value: int, max_value: int, width: int, *, unicode: bool) -> str:
    """Return a bar of up to `width` columns, in steps of an eighth with Unicode."""
    if value <= 0 or max_value <= 0 or width <= 0:
        return ""
    eighths = max(1, value * width * 8 // max_value)
    if not unicode:
        return "#" * max(1, eighths // 8)
    return "█" * (eighths // 8) + _EIGHTH_BLOCKS[eighths % 8].strip()


def footnote_lines(report: UsageReport, width: int) -> Iterator[StyledLine]:
    """Yield the footnotes of a report."""
    for note in _footnotes(report):
        for number, text in enumerate(wrap(note, width - 3)):
            yield [(" " if number == 0 else "   ") + text]


def _footnotes(report: UsageReport) -> Iterator[str]:
    totals = report.totals
    if report.abandoned is not None and report.abandoned.responses:
        spent = report.abandoned
        amount = format_cost(rounded_micros(spent.exact), spent)
        text = humanize.count(spent.responses, "response")
        yield f"including abandoned branches: {amount}, {text}, {spent.output:,} output tokens"
    if report.unseen:
        text = humanize.count(report.unseen, "session")
        yield f"{text} not searched for abandoned branches (use --abandoned)"
    if totals.estimated:
        text = humanize.count(totals.estimated, "response")
        yield f"≈ {text} of Claude Code 2.1.0 to 2.1.52 with under-reported output tokens; the real cost is higher"
    for model, tokens in sorted(totals.unpriced.items()):
        name = one_line(model, 60) or "a model without an ID"
        yield f"? no price for {name} ({tokens:,} tokens); set one in a price file"
    if totals.slow_price:
        text = humanize.count(totals.slow_price, "fast response")
        yield f"{text} at the standard price, because the fast price is unknown; the real cost is higher"


_UNICODE_SHADES: Final = "·░▒▓█"
_ASCII_SHADES: Final = " .:*#"
_HOURS_PER_DAY: Final = 24
_DAYS_PER_WEEK: Final = 7
_LEFT_MARGIN: Final = 6


def heat_map_lines(report: UsageReport, screen: Screen, *, by_days: bool) -> Iterator[StyledLine]:
    """Yield a heat map of cost by weekday and hour, or by day."""
    costs: defaultdict[tuple[str, int], int] = defaultdict(int)
    for line in report.lines:
        if line.names[0]:
            day, _, hour = line.names[0].partition(" ")
            costs[day, int(hour[:2])] += line.cost
    if by_days:
        yield from _day_map_lines(costs, screen)
    else:
        yield from _hour_map_lines(costs, screen)


def _hour_map_lines(costs: dict[tuple[str, int], int], screen: Screen) -> Iterator[StyledLine]:
    cost_grid = [[0] * _HOURS_PER_DAY for _ in _WEEKDAYS]
    for (day, hour), cost in costs.items():
        cost_grid[date.fromisoformat(day).weekday()][hour] += cost
    color_scale = _ShadeScale((cost for row in cost_grid for cost in row), screen)
    row_totals = [humanize.cents(sum(row)) for row in cost_grid]
    available = screen.width - _LEFT_MARGIN - 2 - max(map(display_width, row_totals))
    cell_width = 2 if available >= 2 * _HOURS_PER_DAY else 1
    heads = "".join(f"{hour:<{3 * cell_width}}" for hour in range(0, _HOURS_PER_DAY, 3))
    yield [(" " * _LEFT_MARGIN + heads, "dim")]
    for name, row, total in zip(_WEEKDAYS, cost_grid, row_totals, strict=True):
        cells = "".join(color_scale.shade(cost) * cell_width for cost in row)
        total_text = f"  {total}" if available >= _HOURS_PER_DAY else ""
        yield [(f" {name}  ", "bold"), (cells, "blue"), total_text]
    yield from color_scale.legend_lines("hour of a weekday")


def _day_map_lines(costs: dict[tuple[str, int], int], screen: Screen) -> Iterator[StyledLine]:
    days: defaultdict[date, int] = defaultdict(int)
    for (day, _), cost in costs.items():
        days[date.fromisoformat(day)] += cost
    if not days:
        return
    last = max(days)
    first = min(days)
    days_between = (last.toordinal() - last.weekday()) - (first.toordinal() - first.weekday())
    weeks = min((screen.width - _LEFT_MARGIN - 1) // 2, days_between // _DAYS_PER_WEEK + 1)
    monday = last - timedelta(days=last.weekday(), weeks=weeks - 1)
    visible_costs = [cost for day, cost in days.items() if day >= monday]
    color_scale = _ShadeScale(visible_costs, screen)
    months = ""
    for week in range(weeks):
        start = monday + timedelta(weeks=week)
        if (not week or start.day <= _DAYS_PER_WEEK) and len(months) <= 2 * week:
            months = months.ljust(2 * week) + f"{start:%b} "
    yield [(" " * _LEFT_MARGIN + months, "dim")]
    for weekday, name in enumerate(_WEEKDAYS):
        cells = ""
        for week in range(weeks):
            day = monday + timedelta(weeks=week, days=weekday)
            cells += "  " if day > last else color_scale.shade(days.get(day, 0)) * 2
        yield [(f" {name}  ", "bold"), (cells, "blue")]
    yield from color_scale.legend_lines("day")


class _ShadeScale:
    def __init__(self, costs: Iterable[int], screen: Screen) -> None:
        self._costs = sorted(cost for cost in costs if cost > 0)
        self._shades = _UNICODE_SHADES if screen.styler.unicode else _ASCII_SHADES
        self._width = screen.width

    def shade(self, cost: int) -> str:
        """Return the shade of an amount: equal amounts get the same shade, the highest the darkest."""
        if cost <= 0:
            return self._shades[0]
        rank = bisect_right(self._costs, cost)
        steps = len(self._shades) - 1
        return self._shades[-(-rank * steps // len(self._costs))]

    def legend_lines(self, unit: str) -> Iterator[StyledLine]:
        """Yield the legend of the shades."""
        max_amount = humanize.cents(self._costs[-1]) if self._costs else humanize.cents(0)
        legend_text = f"quartiles, up to {max_amount} per {unit}"
        first: StyledLine = [(" " * _LEFT_MARGIN + "none ", "dim"), (self._shades, "blue")]
        available = self._width - _LEFT_MARGIN
        if len("none ") + len(self._shades) + 1 + display_width(legend_text) <= available:
            yield [*first, (f" {legend_text}", "dim")]
            return
        yield first
        for text in wrap(legend_text, available):
            yield [(" " * _LEFT_MARGIN + text, "dim")]


_MAX_RESPONSES: Final = 20
_MAX_SKIPPED: Final = 5
_FIGURE_INDENT: Final = " " * 5
_MIN_PATH_WIDTH: Final = 24
"""Minimum width of a path; in less space, figures go on the next line."""
_MISSING_NAMES: Final = {"agent": ("unknown", "main session"), "branch": ("unknown", "(none)")}
_VERDICT_MARKS: Final = {
    "counted": ("✓", "green"),
    "merged": ("·", "dim"),
    "copy": ("·", "dim"),
    "skipped": ("·", "dim"),
}
_FIGURE_NAMES: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_5m_input_tokens",
    "cache_creation_1h_input_tokens",
    "cache_read_input_tokens",
    "web_search_requests",
)


def print_usage_explanation(
    explained: UsageExplanation, by: str, limit: int | None, color: Any, columns: int | None
) -> None:
    """Print the responses and records of a total."""
    screen = Screen(color, columns)
    visible = explained.responses[: _MAX_RESPONSES if limit is None else limit or None]
    groups: dict[tuple[str, ...], list[ExplainedResponse]] = {}
    for response in explained.responses:
        groups.setdefault(response.names, []).append(response)
    group: tuple[str, ...] | None = None
    for response in visible:
        if response.names != group:
            group = response.names
            screen.print_lines(_group_heading(by, group, groups[group], screen.width))
        screen.print_lines(_response_lines(response, screen.width))
    skipped = explained.skipped[: None if limit == 0 else _MAX_SKIPPED]
    screen.print_lines(_summary_lines(explained, len(visible), len(skipped), screen.width))
    for line in skipped:
        screen.print_lines(_source_line(line, screen.width))


def _group_heading(
    by: str, names: tuple[str, ...], members: list[ExplainedResponse], columns: int
) -> Iterator[StyledLine]:
    nameless = _MISSING_NAMES.get(by, ("unknown",))
    named = (one_line(name, 60) or fallback for name, fallback in zip(names, nameless, strict=True))
    count_text = humanize.count(len(members), "response")
    name = one_line(" · ".join(named), columns)
    return _flow_pieces([(name, "bold"), (count_text, "dim"), (_total_cost(members), "dim")], columns, "", " ")


def _total_cost(members: list[ExplainedResponse]) -> str:
    """Return the total cost of responses with a known price."""
    known_costs = [response.cost for response in members if response.cost is not None]
    if not known_costs:
        return "cost unknown"
    return f"${sum(known_costs) / 1e6:,.6f}{'+?' if len(known_costs) < len(members) else ''}"


def _response_lines(response: ExplainedResponse, columns: int) -> Iterator[StyledLine]:
    price = "no price" if response.cost is None else humanize.dollars(response.cost, 6)
    stamp = iso_time_from_ms(response.time) or "time unknown"
    pieces = [
        (one_line(response.key, min(40, columns - 1)), "bold"),
        (one_line(humanize.model_name(response.model), 30) or "no model", ""),
        (stamp, ""),
        (price, ""),
    ]
    if response.figures.estimated:
        pieces.append(("≈ under-reported", "yellow"))
    yield from _flow_pieces(pieces, columns, " ", "   ")
    for number, line in enumerate(response.lines):
        next_lines = response.lines[number + 1 : number + 2]
        # A reason shared by successive records is printed once, below the last one.
        is_repeated = any((next_line.verdict, next_line.why) == (line.verdict, line.why) for next_line in next_lines)
        yield from _source_line(line, columns, show_reason=not is_repeated)


def _source_line(line: ExplainedLine, columns: int, *, show_reason: bool = True) -> Iterator[StyledLine]:
    mark, style = _VERDICT_MARKS[line.verdict]
    position = f":{line.line}" if line.line else f" @{line.offset}"
    figures = _figure_texts(line)
    figures_width = sum(display_width(text) + 2 for text, _ in figures)
    inline_width = columns - figures_width - display_width(position) - len(_FIGURE_INDENT) - 1
    path_width = (
        inline_width if inline_width >= _MIN_PATH_WIDTH else columns - display_width(position) - len(_FIGURE_INDENT)
    )
    folder, name = shorten_path(line.path, path_width)
    head: StyledLine = ["   ", (mark, style), " ", (folder, "dim"), name + position]
    if inline_width >= _MIN_PATH_WIDTH:
        yield [*head, *(styled for figure in figures for styled in ("  ", figure))]
    else:
        yield head
        yield from _flow_pieces(figures, columns, _FIGURE_INDENT, _FIGURE_INDENT)
    if show_reason and (line.verdict != "counted" or not line.line):
        verdict_text = one_line(f"{line.verdict}: {line.why}")
        for text in wrap(verdict_text, columns - len(_FIGURE_INDENT)):
            yield [(_FIGURE_INDENT + text, "dim")]


def _figure_texts(line: ExplainedLine) -> list[tuple[str, str]]:
    input_tokens, output, short, long, read, searches = line.figures
    parts = [f"in {input_tokens:,}", f"out {output:,}", f"5m {short:,}", f"1h {long:,}", f"read {read:,}"]
    if searches:
        parts.append(humanize.count(searches, "search", "searches"))
    return [*((part, "") for part in parts), *([("capped", "yellow")] if line.cut else [])]


def _summary_lines(explained: UsageExplanation, visible: int, skipped: int, columns: int) -> Iterator[StyledLine]:
    yield []
    total = len(explained.responses)
    if visible < total:
        limit_note = f"showing {visible:,} of {total:,} responses; use --limit 0 to show all"
        for text in wrap(limit_note, columns):
            yield [(text, "dim")]
    merged = sum(line.verdict == "merged" for response in explained.responses for line in response.lines)
    copies = sum(line.verdict == "copy" for each in explained.responses for line in each.lines)
    counted = humanize.count(total, "response")
    counted = f"{counted} counted, {format_cost(explained.cost, explained.totals)}"
    details = (
        f"{humanize.count(merged, 'record')} merged, {humanize.count(copies, 'copied record')}, "
        f"{humanize.count(len(explained.skipped), 'record')} skipped"
    )
    if skipped < len(explained.skipped):
        details += f", {skipped:,} of {len(explained.skipped):,} shown; use --limit 0 to show all"
    parts = [(text, "") for text in wrap(details, columns)]
    yield from _flow_pieces([(counted, "bold"), *parts], columns, "", "")


def _flow_pieces(
    pieces: Iterable[tuple[str, str]], columns: int, first_indent: str, next_indent: str
) -> Iterator[StyledLine]:
    """Yield pieces in a row, wrapped onto as many lines as needed."""
    line: StyledLine = [first_indent]
    used_width, empty = display_width(first_indent), True
    for text, style in pieces:
        if not empty and used_width + 2 + display_width(text) > columns:
            yield line
            line = [next_indent]
            used_width, empty = display_width(next_indent), True
        gap = "" if empty else "  "
        line += [gap, (text, style)]
        used_width += len(gap) + display_width(text)
        empty = False
    yield line


def usage_explanation_json(explained: UsageExplanation, by: str) -> dict[str, Any]:
    """Return the responses and records of a total as JSON."""
    return {
        "by": by,
        "complete": explained.complete,
        "totals": figures_json(explained.totals, explained.cost),
        "responses": [
            {
                "key": response.key,
                **group_json(by, response.names),
                "model": response.model,
                "time": iso_time_from_ms(response.time),
                "session": response.session,
                "project": response.project,
                **figures_json(response.figures, response.cost or 0),
                "lines": [_source_line_json(line) for line in response.lines],
            }
            for response in explained.responses
        ],
        "skipped": [_source_line_json(line) for line in explained.skipped],
    }


def _source_line_json(line: ExplainedLine) -> dict[str, Any]:
    return {
        "path": _json_text(line.path),
        "line": line.line or None,
        "offset": line.offset,
        "verdict": line.verdict,
        "why": _json_text(line.why),
        "counts_in": _json_text(line.counts_in) or None,
        "cut": line.cut,
        **dict(zip(_FIGURE_NAMES, line.figures, strict=True)),
    }


def _json_text(path: str) -> str:
    """Return a path as text, with undecodable bytes replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
