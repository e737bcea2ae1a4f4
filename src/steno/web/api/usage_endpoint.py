"""`/api/v1/usage`: the figures that `steno usage --json` prints."""

import msgspec

from steno.index.database import SessionIndex
from steno.report.usage.abandoned_usage import count_abandoned_usage
from steno.report.usage.usage_from_index import add_row_details, count_indexed_usage
from steno.report.usage.usage_query import UsageQuery, parse_period, with_clock_names
from steno.report.usage.usage_report import build_report, report_json
from steno.web.api.parameters import UsageParameters, period_end, period_start
from steno.web.api.schemas import UsageReport
from steno.web.state.app_state import AppState


def get_usage(app_state: AppState, _path: dict[str, str], parameters: UsageParameters) -> UsageReport:
    """Return the usage of a period."""
    # Read the stamp first: changes during the request belong to the next state.
    index_stamp = app_state.index_stamp()
    with app_state.index() as index:
        # Read all figures of a report from the same state of the index.
        index.connection.execute("BEGIN")
        usage_query = _usage_query(parameters, app_state.now())
        report = app_state.index_cache.get(
            index_stamp, ("api usage", usage_query), lambda: _usage_report(app_state, index, usage_query)
        )
    limit = parameters.limit if isinstance(parameters.limit, int) else None
    complete = not app_state.index_status.syncing and not app_state.index_status.problem
    return msgspec.structs.replace(report, complete=complete, rows=report.rows[:limit])


def _usage_query(parameters: UsageParameters, now: float) -> UsageQuery:
    """Return the query, with period and projects parsed as by `steno usage`."""
    period_start("since", parameters.since, now)
    period_end("until", parameters.until, now)
    since, until = parse_period(parameters.since or "", parameters.until or "", now)
    return UsageQuery(parameters.by, since, until, parameters.project or "")


def _usage_report(app_state: AppState, index: SessionIndex, usage_query: UsageQuery) -> UsageReport:
    connection, prices = index.connection, app_state.prices
    cells = with_clock_names(count_indexed_usage(connection, usage_query, prices), usage_query.by)
    report = build_report(cells, usage_query.by, prices)
    add_row_details(connection, usage_query, report.lines)
    report.abandoned, report.unseen = count_abandoned_usage(connection, usage_query, prices, update_cache=False)
    return msgspec.convert(report_json(report, usage_query), UsageReport)
