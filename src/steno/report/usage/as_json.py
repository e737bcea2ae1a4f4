"""Usage reports as JSON values: the one form that `steno usage --json` and the API share."""

from typing import Any, Final

from steno.report import clock
from steno.report.usage.cells import NAMES
from steno.report.usage.totals import Figures, Line, Report
from steno.report.usage.wanted import Wanted

__all__ = ["figures_json", "names_json", "report_json", "row_json"]

_MICRO: Final = 1_000_000


def figures_json(figures: Figures, cost: int) -> dict[str, Any]:
    """Return figures under the names that the API has for them."""
    return {
        "responses": figures.responses,
        "input_tokens": figures.input,
        "output_tokens": figures.output,
        "cache_creation_input_tokens": figures.cache_write,
        "cache_creation_5m_input_tokens": figures.cache_5m,
        "cache_creation_1h_input_tokens": figures.cache_1h,
        "cache_read_input_tokens": figures.cache_read,
        "web_search_requests": figures.searches,
        "cost_usd": cost / _MICRO if figures.has_cost else None,
        "cost_micro_usd": cost if figures.has_cost else None,
        "estimated_responses": figures.estimated,
        "fast_at_normal_price": figures.slow_price,
        "unpriced_tokens": figures.unpriced,
    }


def names_json(by: str, names: tuple[str, ...]) -> dict[str, str]:
    """Return the names of a row under what they are names of."""
    return dict(zip(NAMES.get(by, (by,)), names, strict=True))


def report_json(report: Report, wanted: Wanted, limit: int = 0) -> dict[str, Any]:
    """Return a report as a value for JSON."""
    abandoned = report.abandoned
    return {
        "by": report.by,
        "since": clock.iso(None if wanted.since is None else wanted.since / 1000),
        "until": clock.iso(None if wanted.until is None else wanted.until / 1000),
        "complete": report.complete,
        "rows": [row_json(report.by, line) for line in report.lines[: limit or None]],
        "totals": figures_json(report.totals, report.cost),
        "abandoned": None
        if abandoned is None
        else figures_json(abandoned, _rounded(abandoned)) | {"sessions_not_seen": report.unseen},
    }


def _rounded(figures: Figures) -> int:
    return (figures.exact + _MICRO // 2) // _MICRO


def row_json(by: str, line: Line) -> dict[str, Any]:
    """Return one row of a report as a value for JSON."""
    row: dict[str, Any] = names_json(by, line.names) | figures_json(line.figures, line.cost)
    if by in ("session", "agent"):
        row |= {"title": line.title, "project": line.project}
    if by == "tool":
        row |= {"calls": line.calls, "failed": line.failed}
    return row
