"""`usage`: tokens and what they cost."""

from collections.abc import Generator
from typing import Final

from steno.history.asked import Usage
from steno.history.library import Library
from steno.history.quoted import path, word
from steno.report import words
from steno.report.usage.totals import Figures, Line, report_of

__all__ = ["spent_tokens"]

_MICRO: Final = 1_000_000


def spent_tokens(asked: Usage, library: Library) -> Generator[str, None, None]:
    """Yield the total, and row by row what it is made of."""
    from steno.report.price_file import chosen_prices
    from steno.report.usage.indexed import count_index, tell_more
    from steno.report.usage.sort import with_times

    wanted = library.wanted(asked.project, asked.since, asked.until, asked.by)
    prices = chosen_prices("")
    with library.index() as index:
        cells = with_times(count_index(index.connection, wanted, prices), wanted.by)
        report = report_of(cells, wanted.by, prices)
        tell_more(index.connection, wanted, report.lines)
    yield f"In all: {_told(report.totals, report.cost)}."
    yield f"By {asked.by}:"
    for line in report.lines:
        yield f"- {_name(line)}: {_told(line.figures, line.cost)}"


def _name(line: Line) -> str:
    names = " ".join(path(each) for each in line.names) or "(none)"
    return f"{names} {word(line.title)}" if line.title else names


def _told(figures: Figures, cost: int) -> str:
    parts = [
        words.count(figures.responses, "response"),
        f"{figures.input:,} input",
        f"{figures.output:,} output",
        f"{figures.cache_read:,} cache read",
        f"{figures.cache_write:,} cache written",
    ]
    parts.append(f"${cost / _MICRO:,.4f}" if figures.has_cost else "no price known")
    return ", ".join(parts)
