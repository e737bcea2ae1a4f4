"""`steno usage`: what was used and what it cost, by whatever one likes, down to the line."""

import os
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.fresh import NO_SYNC
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, roots
from steno.errors import BadRequest, NotFound
from steno.report import clock
from steno.report.prices import Prices
from steno.report.usage.as_json import report_json, row_json
from steno.report.usage.cells import BYS, NAMES, By
from steno.report.usage.sort import with_times
from steno.report.usage.totals import Figures, Line, Report, report_of
from steno.report.usage.wanted import Wanted, period_of

if TYPE_CHECKING:
    from steno.index.opened import Index
    from steno.report.usage.explain import Explained
    from steno.store.found import Problem

__all__ = ["command"]

_HEATS: Final[dict[str, By]] = {"hours": "hour", "days": "day"}
_TROUBLE: Final = ("denied", "unreadable")


class Asked(msgspec.Struct):
    """The options of one call."""

    by: By | None = None
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


@click.command("usage", short_help="Say what was used and what it cost, down to the line.")
@options(WHERE)
@click.option("--by", type=click.Choice(BYS), help="What the rows are by; day without it.")
@click.option("--since", metavar="WHEN", help="Only what was asked since: 2026-11-07, 7d, 3h, …")
@click.option("--until", metavar="WHEN", help="Only what was asked until then, that day included.")
@click.option("--project", metavar="P", help="Only projects whose path has P in it; `.` is here.")
@click.option(
    "--explain",
    metavar="WHAT",
    is_flag=False,
    flag_value="",
    help="Show the lines behind the figures: of all rows, or of one row or response by its name.",
)
@click.option(
    "--heat",
    is_flag=False,
    flag_value="hours",
    type=click.Choice(tuple(_HEATS)),
    help="Draw what it cost by weekday and hour, or day by day.",
)
@click.option("--abandoned", is_flag=True, help="Look into every session for abandoned branches.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(0), help="How many rows; 0 = all. 30 for people."
)
@click.option("--prices", metavar="FILE", type=click.Path(), help="Prices of your own.")
@click.option("--no-index", is_flag=True, help="Read the files themselves, and no index.")
@options(NO_SYNC, JSON)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV for spreadsheets.")
@WIDTH
@options(COLOR)
def command(
    color: Any = "auto", width: int | None = None, *, as_json: bool = False, **given: Any
) -> None:
    """Say what was used and what it cost.

    Every response counts once, however many lines and files it stands in; of lines that differ the
    highest figures count. Sub-agents count for the session they worked for. Files that are gone
    still count, unless the files themselves are read (--no-index).

    Days are days of the local clock. --since and --until mean whole days, unless they name a time
    of day or hours.
    """
    asked = Asked(**given)
    if asked.explain is not None and (asked.heat or asked.as_csv):
        raise BadRequest("--explain goes with neither --heat nor --csv")
    if as_json and asked.as_csv:
        raise BadRequest("--json and --csv are two things")
    if asked.heat and asked.by not in (None, _HEATS[asked.heat]):
        raise BadRequest(f"--heat {asked.heat} is by {_HEATS[asked.heat]} and by nothing else")
    wanted = _wanted(asked)
    prices = _prices(asked)
    problems: list[Problem] = []
    if asked.explain is not None:
        explained = _explained(asked, wanted, prices, problems)
        _complain(problems)
        _show_explained(explained, asked, wanted, color, width, as_json=as_json)
        return
    report = _report(asked, wanted, prices, problems)
    _complain(problems)
    if as_json:
        write_plain_json(report_json(report, wanted, asked.limit or 0))
    elif asked.as_csv:
        _write_csv(report, asked.limit or 0)
    else:
        from steno.cli.usage_table import show

        show(report, wanted, asked, color, width)
    if not report.lines and (wanted.is_bounded or wanted.project or not report.complete):
        raise click.exceptions.Exit(1)


def _wanted(asked: Asked) -> Wanted:
    since, until = period_of(asked.since or "", asked.until or "", clock.now())
    by: By = "hour" if asked.heat else asked.by or "day"
    here = os.getcwd() if asked.project == "." else ""
    return Wanted(by, since, until, asked.project or "", here)


def _prices(asked: Asked) -> Prices:
    from steno.report.price_file import chosen_prices

    return chosen_prices(asked.prices or "")


def _report(asked: Asked, wanted: Wanted, prices: Prices, problems: "list[Problem]") -> Report:
    if asked.no_index:
        from steno.index.home import index_of
        from steno.report.usage.files import count_files

        _refuse_tools(wanted)
        where = index_of(roots(asked.root, demo=asked.demo)).roots
        cells = count_files(where, wanted, problems)
        report = report_of(with_times(cells, wanted.by), wanted.by, prices)
        report.complete = not _trouble(problems)
        return report
    from steno.cli.fresh import fresh_index
    from steno.report.usage.indexed import count_index, tell_more

    with fresh_index(asked.root, demo=asked.demo, no_sync=asked.no_sync) as index:
        cells = with_times(count_index(index.connection, wanted, prices), wanted.by)
        report = report_of(cells, wanted.by, prices)
        report.complete = _is_complete(index, asked, problems)
        tell_more(index.connection, wanted, report.lines)
        _look_for_branches(index.connection, report, wanted, prices, asked)
    return report


def _is_complete(index: "Index", asked: Asked, problems: "list[Problem]") -> bool:
    """Whether all there is is in the index; where another sync is still at work, say so."""
    if index.report is None:
        if not asked.no_sync:
            from steno.cli.screen import complain

            complain(
                "another sync is at work: the figures are not complete",
                "--no-index counts all the files themselves",
            )
        return False
    problems += index.report.problems
    return not _trouble(problems)


def _look_for_branches(
    connection: Any, report: Report, wanted: Wanted, prices: Prices, asked: Asked
) -> None:
    row = connection.execute(
        "SELECT sum(f.size) FROM files f JOIN sessions s ON s.file = f.id WHERE s.rewound"
    )
    size = row.fetchone()[0] or 0
    if not size:
        report.abandoned = Figures(unpriced={})
        return
    from steno.report.usage.abandoned import count_abandoned

    step = None
    if asked.abandoned:
        from steno.cli.progress import Progress

        with Progress(size, "Looking for abandoned branches") as bar:
            step = bar.add
            found = count_abandoned(connection, wanted, prices, thorough=True, step=step)
    else:
        found = count_abandoned(connection, wanted, prices)
    report.abandoned, report.unseen = found


def _explained(
    asked: Asked, wanted: Wanted, prices: Prices, problems: "list[Problem]"
) -> "Explained":
    from steno.report.usage.explain import explain_files, explain_index

    what = asked.explain or ""
    if asked.no_index:
        from steno.index.home import index_of

        _refuse_tools(wanted)
        where = index_of(roots(asked.root, demo=asked.demo)).roots
        explained = explain_files(where, wanted, prices, problems, what)
        explained.complete = not _trouble(problems)
        return explained
    from steno.cli.fresh import fresh_index

    with fresh_index(asked.root, demo=asked.demo, no_sync=asked.no_sync) as index:
        explained = explain_index(index.connection, wanted, prices, what)
        explained.complete = _is_complete(index, asked, problems)
        return explained


def _refuse_tools(wanted: Wanted) -> None:
    if wanted.by == "tool":
        raise BadRequest("only the index knows tools", hint="leave out --no-index")


def _show_explained(
    explained: "Explained",
    asked: Asked,
    wanted: Wanted,
    color: Any,
    width: int | None,
    *,
    as_json: bool,
) -> None:
    from steno.cli.explained import explained_json, show_explained

    if asked.explain and not explained.responses:
        raise NotFound(
            f"no row or response goes by the name {asked.explain}",
            hint=f"`steno usage --by {wanted.by}` lists the rows",
        )
    if as_json:
        write_plain_json(explained_json(explained, wanted.by))
    else:
        show_explained(explained, wanted.by, asked.limit, color, width)
    if not explained.responses:
        raise click.exceptions.Exit(1)


def _trouble(problems: "list[Problem]") -> "list[Problem]":
    return [problem for problem in problems if problem.kind in _TROUBLE]


def _complain(problems: "list[Problem]") -> None:
    from steno.cli.screen import complain

    trouble = _trouble(problems)
    if trouble:
        complain(f"{len(trouble):,} files could not be read, such as {trouble[0].path}")


# For programs


def write_plain_json(value: object) -> None:
    """Write a value of our own making, which needs none of the care that read JSON does."""
    from steno.cli.screen import harmless, write_bytes

    data = msgspec.json.format(msgspec.json.encode(value), indent=2)
    write_bytes(harmless(data) + b"\n")


def _write_csv(report: Report, limit: int) -> None:
    import sys

    from steno.safe.csv import row

    rows = [row_json(report.by, line) for line in report.lines[: limit or None]]
    empty = row_json(report.by, Line(("",) * len(NAMES.get(report.by, ("",))), Figures()))
    heads = [name for name in empty if name != "unpriced_tokens"]
    sys.stdout.write(row([*heads, "unpriced_tokens"]))
    for each in rows:
        unpriced = sum(each.pop("unpriced_tokens").values())
        sys.stdout.write(row([*(each[name] for name in heads), unpriced]))
