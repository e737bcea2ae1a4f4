"""What was used and what it cost: a year, some days, and by whatever one likes."""

import sqlite3
from datetime import date, timedelta
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.index.database import stamp_of
from steno.index.opened import Index
from steno.report.prices import Prices
from steno.report.usage.cells import Cells
from steno.report.usage.overview import (
    Parts,
    blocks_in,
    daily_of,
    parts_of,
    reports_of,
    saved_in,
    stack_of,
    steps_of,
    told,
    within,
)
from steno.report.usage.totals import Line, Report, report_of
from steno.safe.csv import row
from steno.web.house import House
from steno.web.paint import links, page
from steno.web.spend.asked import RANGES, Asked, Days, asked_of, said
from steno.web.spend.drawn import (
    bins_of,
    blocks_of,
    cache_of,
    days_of_period,
    spread_of,
    stacked_of,
    year_of,
)
from steno.web.spend.figures import (
    amount,
    notes_of,
    share_of,
    strip_of,
    tables_of,
    tool_rows,
)

__all__ = ["table", "usage"]

_TOP: Final = 10
_WEEK: Final = 7
_SPLITS: Final = ("model", "project")
_EMPTY: Final = 0


class _Top(msgspec.Struct, frozen=True):
    """One of the dearest sessions."""

    line: Line
    page: str
    lines: str
    cost: str
    share: float | None


class _Period(msgspec.Struct, frozen=True):
    """A day, week or month in the table beside the charts."""

    name: str
    line: Line
    cost: str
    share: float | None
    href: str


def usage(house: House, request: Request) -> Response:
    """Return the page."""
    asked = asked_of(request.query_params, house.now())
    # Before anything is read: what changes meanwhile belongs to another state.
    stamp = stamp_of(house.home.folder)
    with house.index() as index:
        # All figures of one page are of one state of the index.
        index.connection.execute("BEGIN")
        values = house.kept.get(
            stamp, ("usage", asked), lambda: _values(house, index, asked, stamp)
        )
        week = Days(asked.last - timedelta(days=_WEEK - 1), asked.days.last)
        found = house.kept.get(
            stamp,
            ("blocks", week),
            lambda: blocks_in(index.connection, week.wanted("block5h"), house.prices),
        )
    text = page(
        house,
        "usage.html.j2",
        here="usage",
        asked=asked,
        ranges=[(name, label, asked.way(range=name, to="")) for name, (_, label) in RANGES.items()],
        splits=[(name, asked.way(by=name)) for name in _SPLITS],
        blocks=blocks_of(found, asked, house.now()),
        **values,
    )
    return HTMLResponse(text)


def _values(house: House, index: Index, asked: Asked, stamp: tuple[int, ...]) -> dict[str, Any]:
    """Return what does not change while the index does not, the day being the same."""
    connection, prices = index.connection, house.prices
    everything = house.kept.get(stamp, "daily", lambda: daily_of(connection, prices))
    days = house.kept.get(stamp, "days", lambda: _days(steps_of(everything, prices, "day")))
    parts = house.kept.get(
        stamp, ("parts", asked.days), lambda: parts_of(connection, asked.days.wanted(), prices)
    )
    cells = within(everything, asked.days.wanted())
    reports = reports_of(cells, prices)
    return {
        **_totals(asked, reports["day"]),
        **_charts(asked, cells, reports["day"], days, prices),
        **_spread(asked, parts, connection),
        "strip": strip_of(
            asked,
            reports["day"],
            len(parts.sessions.lines),
            saved_in(cells, prices),
            _cost_before(asked, everything, prices),
            {day: line.cost for day, line in days.items()},
        ),
        "tables": tables_of(asked, reports, parts),
    }


def _cost_before(asked: Asked, everything: Cells, prices: Prices) -> int:
    """Return what the days before those that are shown cost."""
    if asked.before is None:
        return 0
    return report_of(within(everything, asked.before.wanted()), "day", prices).cost


def _totals(asked: Asked, report: Report) -> dict[str, Any]:
    undated = sum(line.figures.responses for line in report.lines if not line.names[0])
    return {
        "report": report,
        "cached": share_of(report.totals),
        "notes": list(notes_of(report, undated)),
        "undated": links().usage_lines(undated="1") if undated else "",
        "csv": links().usage_csv(range=asked.range, to=asked.days.query["to"]),
    }


def _charts(
    asked: Asked, cells: Cells, report: Report, days: dict[str, Line], prices: Prices
) -> dict[str, Any]:
    """Return what is drawn over time."""
    first, last = _first(asked, report), asked.last
    step = asked.step(first)
    named = [(first + timedelta(days=k)).isoformat() for k in range((last - first).days + 1)]
    stack = stack_of(cells, prices, asked.split, named, step)
    periods = steps_of(cells, prices, step)
    chart, series = stacked_of(stack, asked.split, first, last)
    return {
        "first": first,
        "span": _span(asked, first),
        "year": year_of(days, last),
        "stack": stack,
        "stacked": chart,
        "series": series,
        "cache": cache_of(periods, stack, first, last, share_of(report.totals)),
        "periods": _periods(periods, stack.step, first, last),
    }


def _spread(asked: Asked, parts: Parts, connection: sqlite3.Connection) -> dict[str, Any]:
    """Return what sessions cost beside each other, and what tools did."""
    lines = parts.sessions.lines
    costs = [line.cost for line in lines]
    bins = bins_of(costs, asked.days.query)
    tools, more_tools = tool_rows(asked, parts.tools)
    return {
        "bins": bins,
        "spread": spread_of(bins),
        "middle": _middle(costs),
        "top": [_top(asked, line) for line in told(connection, lines[:_TOP])],
        "sessions": len(lines),
        "tools": tools,
        "all_tools": len(parts.tools),
        "more_tools": more_tools,
    }


def _days(report: Report) -> dict[str, Line]:
    return {line.names[0]: line for line in report.lines if line.names[0]}


def _first(asked: Asked, report: Report) -> date:
    """Return the first day that is drawn."""
    if asked.days.first is not None:
        return asked.days.first
    names = [line.names[0] for line in report.lines if line.names[0]]
    return min(date.fromisoformat(names[0]), asked.last) if names else asked.last


def _span(asked: Asked, first: date) -> str:
    last = asked.last
    return f"{said(first, year=first.year != last.year)} to {said(last, year=True)}"


def _periods(report: Report, step: Any, first: date, last: date) -> list[_Period]:
    made: list[_Period] = []
    for line in reversed(report.lines):
        name = line.names[0]
        href = (
            links().usage_lines(**days_of_period(name, step, first, last).query)
            if name
            else links().usage_lines(undated="1")
        )
        made.append(
            _Period(
                name or "no day",
                line,
                amount(line.cost, line.figures),
                share_of(line.figures),
                href,
            )
        )
    return made


def _middle(costs: list[int]) -> int:
    """Return what the session in the middle cost."""
    ranked = sorted(costs)
    return ranked[len(ranked) // 2] if ranked else _EMPTY


def _top(asked: Asked, line: Line) -> _Top:
    session = line.names[0]
    return _Top(
        line,
        links().session(session),
        links().usage_lines(**asked.days.query, session=session),
        amount(line.cost, line.figures),
        share_of(line.figures),
    )


def table(house: House, request: Request) -> Response:
    """Return the same days as CSV, for spreadsheets."""
    asked = asked_of(request.query_params, house.now())
    with house.index() as index:
        cells = within(daily_of(index.connection, house.prices), asked.days.wanted())
        report = reports_of(cells, house.prices)["day"]
    heads = [
        *("day", "responses", "input_tokens", "output_tokens", "cache_creation_input_tokens"),
        *("cache_read_input_tokens", "cost_usd", "estimated_responses", "unpriced_tokens"),
    ]
    lines = [row(heads)]
    for line in report.lines:
        each = line.figures
        figures = (each.responses, each.input, each.output, each.cache_write, each.cache_read)
        cost = f"{line.cost / 1e6:.6f}" if each.has_cost else ""
        lines.append(
            row([line.names[0], *figures, cost, each.estimated, sum(each.unpriced.values())])
        )
    return Response(
        "".join(lines),
        media_type="text/csv",
        headers={"content-disposition": 'attachment; filename="usage.csv"'},
    )
