"""The few figures on top, the tables below, and what is to be said of all of them."""

from calendar import monthrange
from collections.abc import Iterator
from typing import Final

import msgspec
from markupsafe import Markup

from steno.format.tool_catalogue import facts_of
from steno.report import words
from steno.report.usage.overview import Parts, projected
from steno.report.usage.tools import Tool
from steno.report.usage.totals import Figures, Line, Report
from steno.web.paint import links, money
from steno.web.render.charts import meter
from steno.web.spend.asked import RANGES, Asked, Days
from steno.web.tags import tag_of

__all__ = [
    "Figure",
    "Row",
    "Table",
    "ToolRow",
    "amount",
    "notes_of",
    "share_of",
    "strip_of",
    "tables_of",
    "tokens",
    "tool_rows",
]

_SHOWN: Final = 8
_ALL: Final = 500
_BILLION: Final = 1_000_000_000
_LITTLE: Final = 0.005
_BAD: Final = 0.05
_COLD: Final = 0.8


class Figure(msgspec.Struct, frozen=True):
    """One figure of the strip, and the way to what is behind it."""

    label: str
    value: str
    note: str
    href: str
    hint: str = ""


class Row(msgspec.Struct, frozen=True):
    """A row of a table by something."""

    name: str
    more: str
    """What else it is called, in a fainter ink."""
    page: str
    """Its own page, if it has one."""
    lines: str
    """What is behind it."""
    figures: Figures
    cost: str
    bar: Markup
    cold: bool
    """Whether much of what it read was not in the cache."""


class Table(msgspec.Struct, frozen=True):
    """A table by something."""

    name: str
    title: str
    head: str
    rows: list[Row]
    total: int
    more: str
    """Where all of it is shown."""


class ToolRow(msgspec.Struct, frozen=True):
    """A tool as the page shows it."""

    tool: Tool
    icon: str
    rate: float
    bar: Markup
    calls: str
    failed: str


def amount(cost: int, figures: Figures) -> str:
    """Return an amount; `?` where a price is missing, `≈` where a figure is a placeholder.

    >>> amount(12_345_678, Figures()), amount(0, Figures(unpriced={"x": 1}))
    ('$12.35', '?')
    """
    if not figures.has_cost:
        return "?"
    about = "≈" if figures.estimated else ""
    return f"{about}{money(cost or int(bool(figures.exact)))}{'+?' if figures.unpriced else ''}"


def tokens(number: int) -> str:
    """Return a number of tokens, short, however many there are.

    >>> tokens(38_210), tokens(6_584_380_000)
    ('38.2k', '6.58B')
    """
    return f"{number / _BILLION:.2f}B" if number >= _BILLION else words.tokens(number)


def share_of(figures: Figures) -> float | None:
    """Return how much of what was read came from the cache."""
    return figures.cache_read / figures.context if figures.context else None


# The strip


def strip_of(
    asked: Asked, report: Report, sessions: int, saved: int, before: int, days: dict[str, int]
) -> list[Figure]:
    """Return the six figures. `before` is what the days before cost, `days` what each day did."""
    totals, query = report.totals, asked.days.query
    lines = links().usage_lines(**query)
    out = f"{'≈' if totals.estimated else ''}{tokens(totals.output)}"
    responses = words.count(totals.responses, "response")
    return [
        Figure("Cost", amount(report.cost, totals), _compared(asked, report.cost, before), lines),
        Figure("Sessions", f"{sessions:,}", responses, links().usage_sessions(**query)),
        Figure("Tokens out", out, f"{tokens(totals.context)} in", lines),
        _cached(share_of(totals), lines),
        _saved(saved, lines),
        _month(asked, days),
    ]


def _cached(share: float | None, lines: str) -> Figure:
    said = "none" if share is None else f"{share:.1%}"
    return Figure("Read from cache", said, "of all tokens in", lines)


def _saved(saved: int, lines: str) -> Figure:
    return Figure(
        "Saved by the cache",
        money(saved) if saved >= 0 else f"-{money(-saved)}",
        "after what writing it cost",
        lines,
        "What was read from the cache at the price of fresh input, less what it did cost, "
        "less what writing the cache cost more than fresh input.",
    )


def _month(asked: Asked, days: dict[str, int]) -> Figure:
    today = asked.today
    left = monthrange(today.year, today.month)[1] - today.day
    so_far, month = projected(days, today.isoformat(), left)
    return Figure(
        f"{today:%B}, if it goes on so",
        money(month),
        f"{money(so_far)} so far",
        links().usage_lines(**Days(today.replace(day=1)).query),
        "What this month cost so far, and for each day that is left the mean of the last "
        "seven days.",
    )


def _compared(asked: Asked, cost: int, before: int) -> str:
    number, name = RANGES[asked.range]
    if not number:
        return "in all the time there is"
    if not before:
        return f"nothing in the {name.lower()} before"
    change = (cost - before) / before
    if abs(change) < _LITTLE:
        return "as much as before"
    if change > 1:
        return f"{cost / before:.1f} times as much as before"
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'} than before"


# Tables


def tables_of(asked: Asked, reports: dict[str, Report], parts: Parts) -> dict[str, Table]:
    """Return the tables by model, project, branch and kind of sub-agent."""
    return {
        "models": _table(asked, "models", "By model", "Model", reports["model"]),
        "projects": _table(asked, "projects", "By project", "Project", reports["project"]),
        "branches": _table(asked, "branches", "By branch", "Branch", parts.branches),
        "kinds": _table(asked, "kinds", "By kind of sub-agent", "Asked by", parts.kinds),
    }


def _table(asked: Asked, name: str, title: str, head: str, report: Report) -> Table:
    shown = _ALL if asked.open == name else _SHOWN
    most = max((line.cost for line in report.lines), default=0)
    rows = [_row(asked, name, line, most) for line in report.lines[:shown]]
    more = asked.way(open=name) if len(report.lines) > len(rows) and shown < _ALL else ""
    return Table(name, title, head, rows, len(report.lines), more)


def _row(asked: Asked, name: str, line: Line, most: int) -> Row:
    named, more, page, query = _NAMERS[name](line.names)
    share = share_of(line.figures)
    return Row(
        named,
        more,
        page,
        links().usage_lines(**asked.days.query, **query),
        line.figures,
        amount(line.cost, line.figures),
        meter(line.cost / most if most else 0, "f1"),
        share is not None and share < _COLD,
    )


_Named = tuple[str, str, str, dict[str, str]]


def _model(names: tuple[str, ...]) -> _Named:
    (model,) = names
    return words.model_name(model) or "no name", "", "", _chosen("model", model)


def _project(names: tuple[str, ...]) -> _Named:
    (path,) = names
    tag = tag_of(path)
    page = links().project(tag) if path else ""
    return words.project_name(path) or "no project", "", page, {"project": tag}


def _branch(names: tuple[str, ...]) -> _Named:
    path, branch = names
    query = {"project": tag_of(path), **_chosen("branch", branch)}
    return branch or "no branch", words.project_name(path), "", query


def _kind(names: tuple[str, ...]) -> _Named:
    whose, kind = names
    if not whose:
        return "the session itself", "", "", {"agent": "self"}
    return kind or "a kind that is not known", "", "", {"agent": f"kind:{kind}"}


def _chosen(name: str, value: str) -> dict[str, str]:
    """Return how an address chooses a value; it says nothing of what is empty, so that is named."""
    return {name: value} if value else {"without": name}


_NAMERS: Final = {"models": _model, "projects": _project, "branches": _branch, "kinds": _kind}


# Tools


def tool_rows(asked: Asked, tools: list[Tool]) -> tuple[list[ToolRow], str]:
    """Return the tools as the page shows them, and where all of them are."""
    shown = _ALL if asked.open == "tools" else _SHOWN + 2
    most = max((tool.failed / tool.calls for tool in tools[:shown]), default=0)
    rows: list[ToolRow] = []
    for tool in tools[:shown]:
        rate = tool.failed / tool.calls
        # A scale of its own would make much of nothing where hardly anything fails.
        full = max(most, _BAD * 2)
        query = {**asked.days.query, **({"tool": tool.name} if tool.name else {"without": "tool"})}
        rows.append(
            ToolRow(
                tool,
                facts_of(tool.name).icon,
                rate,
                meter(rate / full, "fbad" if rate >= _BAD else "fink"),
                links().usage_calls(**query),
                links().usage_calls(**query, failed="1") if tool.failed else "",
            )
        )
    more = asked.way(open="tools") if len(tools) > len(rows) and shown < _ALL else ""
    return rows, more


# What the figures do not say themselves


def notes_of(report: Report, undated: int) -> Iterator[tuple[str, str]]:
    """Yield a mark and a sentence for each thing that the figures leave out or guess."""
    totals = report.totals
    if totals.estimated:
        said = words.count(totals.estimated, "response")
        guessed = f"{said} of clients 2.1.0 to 2.1.52: their output is a placeholder, "
        yield "≈", guessed + "the truth is higher."
    for model, number in sorted(totals.unpriced.items()):
        name = model or "a model without a name"
        missing = (
            f"No price is known for {name} ({number:,} tokens), so its cost is in no sum here."
        )
        yield "?", f"{missing} A price file can name one."
    if totals.slow_price:
        said = words.count(totals.slow_price, "fast response")
        yield "", f"{said} at the normal price: no other is known, the truth is higher."
    if undated:
        said = words.count(undated, "response")
        yield "", f"{said} without a time: in the sums of all the time, and on no day."
