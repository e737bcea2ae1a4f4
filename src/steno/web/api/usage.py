"""`/api/v1/usage`: the figures that `steno usage --json` prints."""

import msgspec

from steno.index.opened import Index
from steno.report.usage.abandoned import count_abandoned
from steno.report.usage.as_json import report_json
from steno.report.usage.indexed import count_index, tell_more
from steno.report.usage.sort import with_times
from steno.report.usage.totals import report_of
from steno.report.usage.wanted import Wanted, period_of
from steno.web.api.filters import end_of, start_of
from steno.web.api.models.usage import UsageReport
from steno.web.api.parameters import UsageParameters
from steno.web.house import House


def usage(house: House, _path: dict[str, str], parameters: UsageParameters) -> UsageReport:
    """Return the usage of a period, by what was asked for."""
    # Before anything is read: what changes meanwhile belongs to another state.
    stamp = house.stamp()
    with house.index() as index:
        # All figures of one report are of one state of the index.
        index.connection.execute("BEGIN")
        wanted = _wanted(parameters, house.now())
        report = house.kept.get(stamp, ("api usage", wanted), lambda: _report(house, index, wanted))
    limit = parameters.limit if isinstance(parameters.limit, int) else None
    complete = not house.state.syncing and not house.state.problem
    return msgspec.structs.replace(report, complete=complete, rows=report.rows[:limit])


def _wanted(parameters: UsageParameters, now: float) -> Wanted:
    """Return what is asked for, with the period and the projects as the command has them."""
    start_of("since", parameters.since, now)
    end_of("until", parameters.until, now)
    since, until = period_of(parameters.since or "", parameters.until or "", now)
    return Wanted(parameters.by, since, until, parameters.project or "")


def _report(house: House, index: Index, wanted: Wanted) -> UsageReport:
    connection, prices = index.connection, house.prices
    cells = with_times(count_index(connection, wanted, prices), wanted.by)
    report = report_of(cells, wanted.by, prices)
    tell_more(connection, wanted, report.lines)
    report.abandoned, report.unseen = count_abandoned(connection, wanted, prices, keeps=False)
    return msgspec.convert(report_json(report, wanted), UsageReport)
