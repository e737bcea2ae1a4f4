"""A report of usage as people read it: a table, bars for days, and what is to be said below."""

from collections.abc import Iterator
from typing import Any, Final

from steno.cli.options import where_to_look
from steno.cli.screen import Screen
from steno.cli.table import Column, layout
from steno.report import words
from steno.report.usage.totals import Figures, Line, Report
from steno.report.usage.wanted import Wanted
from steno.safe.terminal import Line as Words
from steno.safe.terminal import one_line, wrap

__all__ = ["bar", "cost", "dollars", "footnotes", "show"]

_ROWS: Final = 30
_MICRO: Final = 1_000_000
_CENT: Final = 10_000
_IN_TIME: Final = ("day", "week", "month", "hour", "block5h")
_HEADS: Final = {"block5h": "FIVE HOURS FROM", "project": "PROJECT", "tool": "FIRST TOOL"}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_WIDEST_BAR: Final = 40
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHORT: Final = 8
_BAR: Final = "BAR"


def show(report: Report, wanted: Wanted, asked: Any, color: Any, width: int | None) -> None:
    """Write a report for people."""
    screen = Screen(color, width)
    if not report.lines:
        screen.lines([line] for line in wrap(_nothing(report, wanted), screen.width))
        return
    if asked.heat:
        from steno.cli.heat import heat_map

        screen.lines(heat_map(report, screen, by_days=asked.heat == "days"))
    else:
        limit = _ROWS if asked.limit is None else asked.limit
        screen.lines(_table(report, screen, limit))
    screen.lines([[], *footnotes(report, screen.width)])
    where = where_to_look(asked.root, demo=asked.demo)
    steps = [f"steno usage{where} --explain", f"steno usage{where} --by session"]
    screen.next_steps(steps, "Each response counted once.")


def _nothing(report: Report, wanted: Wanted) -> str:
    if not report.complete:
        return "Nothing to count so far; not everything was read."
    bounded = wanted.is_bounded or wanted.project
    return f"Nothing was asked {'in that time or place' if bounded else 'so far'}."


def _table(report: Report, screen: Screen, limit: int) -> Iterator[Words]:
    in_time = report.by in _IN_TIME
    lines = report.lines
    if limit and len(lines) > limit:
        lines = lines[-limit:] if in_time else lines[:limit]
    total = Line(("",), report.totals, report.cost)
    total.calls = sum(line.calls for line in report.lines)
    total.failed = sum(line.failed for line in report.lines)
    columns = _columns(report.by, [*lines, total])
    room = screen.width - 1
    if in_time:
        columns = _with_bars(columns, lines, room, unicode=screen.paint.unicode)
    heads, rows = layout(columns, room)
    yield [" ", *heads]
    for row in rows[:-1]:
        yield [" ", *row]
    yield [("─" * min(room, _length(heads)), "dim")]
    yield [" ", *(_bold(bit) for bit in rows[-1])]
    if len(lines) < len(report.lines):
        which = "newest" if in_time else "dearest"
        said = f"the {which} {len(lines):,} of {len(report.lines):,} rows; --limit 0 shows all"
        for text in wrap(said, room):
            yield [(f" {text}", "dim")]


def _with_bars(
    columns: list[Column], lines: list[Line], room: int, *, unicode: bool
) -> list[Column]:
    """Return the columns that fit beside bars of the cost, and those."""
    blank = Column(_BAR, [" "] * (len(lines) + 1), flexible=True)
    heads, _ = layout([*columns[:2], blank, *columns[2:]], room)
    shown = {
        head.strip(): len(head) for head, _ in (bit for bit in heads if not isinstance(bit, str))
    }
    size = min(shown.get(_BAR, 0), _WIDEST_BAR)
    most = max((line.cost for line in lines), default=0)
    bars = [bar(line.cost, most, size, unicode=unicode) for line in lines]
    kept = [column for column in columns if column.head in shown]
    for column in kept:
        column.needs = 0
    return [*kept[:2], Column("", [*bars, ""], "blue", most=_WIDEST_BAR), *kept[2:]]


def _bold(bit: Any) -> Any:
    return (bit[0], "bold") if isinstance(bit, tuple) else bit


def _length(line: Words) -> int:
    return sum(len(bit if isinstance(bit, str) else bit[0]) for bit in line) + 2


def _columns(by: str, lines: list[Line]) -> list[Column]:
    figures = [line.figures for line in lines]
    columns = _name_columns(by, lines[:-1])
    for column in columns:
        column.cells.append("total" if column is columns[0] else "")
    columns.append(Column("COST", [cost(line.cost, line.figures) for line in lines], right=True))
    if by == "tool":
        calls = [f"{line.calls:,}" if line.calls else "" for line in lines]
        failed = [f"{line.failed / line.calls:.1%}" if line.calls else "" for line in lines]
        columns.append(Column("CALLS", calls, right=True, needs=16))
        columns.append(Column("FAILED", failed, right=True, needs=17))
    return [
        *columns,
        _number("INPUT", [each.input for each in figures], 14),
        _number("OUTPUT", [each.output for each in figures], 12),
        _number("CACHE WRITE", [each.cache_write for each in figures], 20),
        _number("CACHE READ", [each.cache_read for each in figures], 18),
        Column("CACHED", [_cached(each) for each in figures], "dim", right=True, needs=22),
        _number("SEARCHES", [each.searches for each in figures], 24),
        _number("RESPONSES", [each.responses for each in figures], 26),
    ]


def _number(head: str, values: list[int], needs: int) -> Column:
    """Return a column of figures; of nothing but zeros it is none."""
    cells = [f"{value:,}" for value in values] if any(values) else []
    return Column(head, cells or [""] * len(values), right=True, needs=needs)


def _cached(figures: Figures) -> str:
    return f"{figures.cache_read / figures.context:.0%}" if figures.context else ""


def _name_columns(by: str, lines: list[Line]) -> list[Column]:
    names = [tuple(one_line(name, 200) for name in line.names) for line in lines]
    head = _HEADS.get(by, by.upper())
    if by == "day":
        return [Column("DAY", [_day(name[0]) for name in names], style="bold")]
    if by in _IN_TIME:
        return [Column(head, [name[0] or "unknown" for name in names], style="bold")]
    titles = [one_line(line.title, 200) or "(no title)" for line in lines]
    if by == "session":
        projects = [one_line(words.project_name(line.project), 40) for line in lines]
        return [
            Column("ID", [name[0][:_SHORT] or "?" for name in names], "bold"),
            Column("SESSION", titles, flexible=True),
            Column("PROJECT", projects, "dim", most=16, needs=28),
        ]
    if by == "agent":
        return [
            Column("ID", [name[0][:_SHORT] or "?" for name in names], "bold"),
            Column("SUB-AGENT", [name[1] or "the session" for name in names], most=20),
            Column("TITLE", titles, flexible=True, most=60),
        ]
    if by == "branch":
        projects = [words.project_name(name[0]) or "unknown" for name in names]
        return [
            Column("PROJECT", projects, "bold", most=24),
            Column("BRANCH", [name[1] or "(none)" for name in names], flexible=True),
        ]
    return [Column(head, [name[0] or "unknown" for name in names], "bold", flexible=True)]


def _day(day: str) -> str:
    if not day:
        return "unknown"
    from datetime import date

    return f"{_WEEKDAYS[date.fromisoformat(day).weekday()]} {day}"


def cost(micro: int, figures: Figures) -> str:
    """Return an amount; `?` where a price is missing, `≈` where a figure is a placeholder.

    >>> cost(12_345_678, Figures()), cost(0, Figures(unpriced={"x": 1}))
    ('$12.35', '?')
    """
    if not figures.has_cost:
        return "?"
    about = "≈" if figures.estimated else ""
    return f"{about}{dollars(micro or bool(figures.exact))}{'+?' if figures.unpriced else ''}"


def dollars(micro: int) -> str:
    """Return micro-dollars in cents; what is there and less than one is not nothing.

    >>> dollars(12_345_678), dollars(4_999), dollars(0)
    ('$12.35', '<$0.01', '$0.00')
    """
    if 0 < micro < _CENT // 2:
        return "<$0.01"
    return f"${(micro + _CENT // 2) // _CENT / 100:,.2f}"


def bar(value: int, most: int, size: int, *, unicode: bool) -> str:
    """Return a bar of up to so many columns, in eighths of one where the terminal has them."""
    if value <= 0 or most <= 0 or size <= 0:
        return ""
    eighths = max(1, value * size * 8 // most)
    if not unicode:
        return "#" * max(1, eighths // 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def footnotes(report: Report, width: int) -> Iterator[Words]:
    """Say what the figures do not say themselves."""
    for note in _notes(report):
        for number, text in enumerate(wrap(note, width - 3)):
            yield [(" " if number == 0 else "   ") + text]


def _notes(report: Report) -> Iterator[str]:
    totals = report.totals
    if report.abandoned is not None and report.abandoned.responses:
        spent = report.abandoned
        amount = cost((spent.exact + _MICRO // 2) // _MICRO, spent)
        said = words.count(spent.responses, "response")
        yield f"of which on abandoned branches: {amount}, {said}, {spent.output:,} tokens of output"
    if report.unseen:
        said = words.count(report.unseen, "session")
        yield f"{said} may have abandoned branches and were not looked into (--abandoned)"
    if totals.estimated:
        said = words.count(totals.estimated, "response")
        yield (
            f"≈ {said} of clients 2.1.0 to 2.1.52: their output is a placeholder, "
            "the truth is higher"
        )
    for model, tokens in sorted(totals.unpriced.items()):
        name = one_line(model, 60) or "a model without a name"
        yield f"? no price is known for {name} ({tokens:,} tokens); a price file can name one"
    if totals.slow_price:
        said = words.count(totals.slow_price, "fast response")
        yield f"{said} at the normal price: no other is known, the truth is higher"
