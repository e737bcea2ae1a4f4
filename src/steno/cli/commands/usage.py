"""`steno usage`: shows token usage and cost, grouped, as a heat map, or per record."""

import os
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.fresh_index import NO_SYNC
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.errors import BadRequest, NotFound
from steno.report.pricing import PriceTable
from steno.report.usage.usage_query import GROUP_PARTS, GROUPINGS, Grouping, UsageQuery, parse_period, with_clock_names
from steno.report.usage.usage_report import ReportRow, UsageFigures, UsageReport, build_report, report_json, row_json
from steno.store import environment
from steno.store.discovery import unreadable_problems

if TYPE_CHECKING:
    from steno.index.database import SessionIndex
    from steno.report.usage.usage_explanation import UsageExplanation
    from steno.store.discovery import Problem


_HEAT_MAP_GROUPINGS: Final[dict[str, Grouping]] = {"hours": "hour", "days": "day"}


class UsageOptions(msgspec.Struct):
    """The options of the command."""

    by: Grouping | None = None
    since: str | None = None
    until: str | None = None
    project: str | None = None
    limit: int | None = None
    heat: str | None = None
    explain: str | None = None
    prices: str | None = None
    as_csv: bool = False
    no_index: bool = False
    no_sync: bool = False
    abandoned: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False


@click.command("usage", short_help="Show token usage and cost.")
@add_options(ROOT_OPTIONS)
@click.option("--by", type=click.Choice(GROUPINGS), help="Grouping of the rows  [default: day]")
@click.option("--since", metavar="WHEN", help="Only usage since WHEN: 2026-11-07, 7d, 3h")
@click.option("--until", metavar="WHEN", help="Only usage until WHEN, that day included")
@click.option("--project", metavar="P", help="Filter by project path; `.` is the current directory")
@click.option(
    "--explain",
    metavar="WHAT",
    is_flag=False,
    flag_value="",
    help="Show the records counted in all rows, or in one row or response",
)
@click.option(
    "--heat",
    is_flag=False,
    flag_value="hours",
    type=click.Choice(tuple(_HEAT_MAP_GROUPINGS)),
    help="Show a heat map of cost by weekday and hour, or by day",
)
@click.option("--abandoned", is_flag=True, help="Search every session for abandoned branches")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0),
    help="Maximum number of rows; 0 = all  [default: 30; all with --json]",
)
@click.option("--prices", metavar="FILE", type=click.Path(), help="Custom price file")
@click.option("--no-index", is_flag=True, help="Read the session files instead of the index")
@add_options(NO_SYNC, JSON)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV")
@WIDTH
@add_options(COLOR)
def command(color: Any = "auto", width: int | None = None, *, as_json: bool = False, **values: Any) -> None:
    """Show token usage and cost.

    Each response counts once, even if several records or files contain it; if they differ, the
    highest figures count. Usage of sub-agents counts towards the session that started them. Deleted
    files still count, except with --no-index.

    Days are in local time. --since and --until mean whole days unless they include hours.
    """
    command_options = UsageOptions(**values)
    if command_options.explain is not None and (command_options.heat or command_options.as_csv):
        raise BadRequest("--explain cannot be combined with --heat or --csv")
    if as_json and command_options.as_csv:
        raise BadRequest("--json cannot be combined with --csv")
    if command_options.heat and command_options.by not in (None, _HEAT_MAP_GROUPINGS[command_options.heat]):
        raise BadRequest(
            f"--heat {command_options.heat} groups by {_HEAT_MAP_GROUPINGS[command_options.heat]}; omit --by"
        )
    query = _usage_query(command_options)
    prices = _load_prices(command_options)
    problems: list[Problem] = []
    if command_options.explain is not None:
        explanation = _explain_usage(command_options, query, prices, problems)
        _report_unreadable(problems)
        _print_explanation(explanation, command_options, query, color, width, as_json=as_json)
        return
    report = _build_usage_report(command_options, query, prices, problems)
    _report_unreadable(problems)
    if as_json:
        print_trusted_json(report_json(report, query, command_options.limit or 0))
    elif command_options.as_csv:
        _print_csv(report, command_options.limit or 0)
    else:
        from steno.cli.output.usage_tables import print_usage_report

        print_usage_report(report, query, command_options, color, width)
    if not report.lines and (query.is_bounded or query.project or not report.complete):
        raise click.exceptions.Exit(1)


def _usage_query(options: UsageOptions) -> UsageQuery:
    since, until = parse_period(options.since or "", options.until or "", environment.now())
    by: Grouping = "hour" if options.heat else options.by or "day"
    cwd = os.getcwd() if options.project == "." else ""
    return UsageQuery(by, since, until, options.project or "", cwd)


def _load_prices(options: UsageOptions) -> PriceTable:
    from steno.report.price_sources import load_price_table

    return load_price_table(options.prices or "")


def _build_usage_report(
    options: UsageOptions, query: UsageQuery, prices: PriceTable, problems: "list[Problem]"
) -> UsageReport:
    if options.no_index:
        from steno.index.database import locate_index
        from steno.report.usage.usage_from_files import count_files_usage

        _check_tool_grouping(query)
        folders = locate_index(search_roots(options.root, demo=options.demo)).roots
        cells = count_files_usage(folders, query, problems)
        report = build_report(with_clock_names(cells, query.by), query.by, prices)
        report.complete = not unreadable_problems(problems)
        return report
    from steno.cli.fresh_index import open_fresh_index
    from steno.report.usage.usage_from_index import add_row_details, count_indexed_usage

    with open_fresh_index(options.root, demo=options.demo, no_sync=options.no_sync) as index:
        cells = with_clock_names(count_indexed_usage(index.connection, query, prices), query.by)
        report = build_report(cells, query.by, prices)
        report.complete = _check_complete(index, options, problems)
        add_row_details(index.connection, query, report.lines)
        _add_abandoned_usage(index.connection, report, query, prices, options)
    return report


def _check_complete(index: "SessionIndex", options: UsageOptions, problems: "list[Problem]") -> bool:
    """Return whether the index is complete; warn if another process is updating it."""
    if index.report is None:
        if not options.no_sync:
            from steno.cli.output.screen import print_error

            print_error(
                "another process is updating the index; figures may be incomplete",
                "Use --no-index to read the files instead.",
            )
        return False
    problems += index.report.problems
    return not unreadable_problems(problems)


def _add_abandoned_usage(
    connection: Any, report: UsageReport, query: UsageQuery, prices: PriceTable, options: UsageOptions
) -> None:
    row = connection.execute("SELECT sum(f.size) FROM files f JOIN sessions s ON s.file = f.id WHERE s.rewound")
    size = row.fetchone()[0] or 0
    if not size:
        report.abandoned = UsageFigures(unpriced={})
        return
    from steno.report.usage.abandoned_usage import count_abandoned_usage

    progress_step = None
    if options.abandoned:
        from steno.cli.output.progress import ProgressBar

        with ProgressBar(size, "Searching abandoned branches") as bar:
            progress_step = bar.advance
            abandoned = count_abandoned_usage(connection, query, prices, thorough=True, progress=progress_step)
    else:
        abandoned = count_abandoned_usage(connection, query, prices)
    report.abandoned, report.unseen = abandoned


def _explain_usage(
    options: UsageOptions, query: UsageQuery, prices: PriceTable, problems: "list[Problem]"
) -> "UsageExplanation":
    from steno.report.usage.usage_explanation import explain_files, explain_index

    target = options.explain or ""
    if options.no_index:
        from steno.index.database import locate_index

        _check_tool_grouping(query)
        folders = locate_index(search_roots(options.root, demo=options.demo)).roots
        explanation = explain_files(folders, query, prices, problems, target)
        explanation.complete = not unreadable_problems(problems)
        return explanation
    from steno.cli.fresh_index import open_fresh_index

    with open_fresh_index(options.root, demo=options.demo, no_sync=options.no_sync) as index:
        explanation = explain_index(index.connection, query, prices, target)
        explanation.complete = _check_complete(index, options, problems)
        return explanation


def _check_tool_grouping(query: UsageQuery) -> None:
    if query.by == "tool":
        raise BadRequest("--by tool needs the index", hint="Omit --no-index.")


def _print_explanation(
    explanation: "UsageExplanation",
    options: UsageOptions,
    query: UsageQuery,
    color: Any,
    width: int | None,
    *,
    as_json: bool,
) -> None:
    from steno.cli.output.usage_tables import print_usage_explanation, usage_explanation_json

    if options.explain and not explanation.responses:
        raise NotFound(
            f"no row or response matches {options.explain}", hint=f"Run `steno usage --by {query.by}` to list the rows."
        )
    if as_json:
        print_trusted_json(usage_explanation_json(explanation, query.by))
    else:
        print_usage_explanation(explanation, query.by, options.limit, color, width)
    if not explanation.responses:
        raise click.exceptions.Exit(1)


def _report_unreadable(problems: "list[Problem]") -> None:
    from steno.cli.output.screen import print_error

    unreadable = unreadable_problems(problems)
    if unreadable:
        print_error(f"{len(unreadable):,} files could not be read, such as {unreadable[0].path}")


# JSON and CSV


def print_trusted_json(value: object) -> None:
    """Print a value built by steno, without the checks that session data needs."""
    from steno.cli.output.screen import escape_invisible, write_bytes

    data = msgspec.json.format(msgspec.json.encode(value), indent=2)
    write_bytes(escape_invisible(data) + b"\n")


def _print_csv(report: UsageReport, limit: int) -> None:
    import sys

    from steno.sanitize.csv import csv_row

    rows = [row_json(report.by, line) for line in report.lines[: limit or None]]
    empty = row_json(report.by, ReportRow(("",) * len(GROUP_PARTS.get(report.by, ("",))), UsageFigures()))
    headings = [name for name in empty if name != "unpriced_tokens"]
    sys.stdout.write(csv_row([*headings, "unpriced_tokens"]))
    for item in rows:
        unpriced = sum(item.pop("unpriced_tokens").values())
        sys.stdout.write(csv_row([*(item[name] for name in headings), unpriced]))
