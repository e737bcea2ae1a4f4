"""`steno ls`: lists sessions, newest first."""

import os
from collections import Counter
from typing import Any, Final

import click
import msgspec

from steno.cli.command_arguments import program_name, root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.screen import Screen, print_error, report_unreadable, write_json
from steno.cli.output.table_layout import Column, layout_columns
from steno.errors import Unreadable
from steno.format.paths import JSONL_SUFFIX
from steno.report import clock, humanize
from steno.report.usage.usage_query import matches_project
from steno.sanitize.terminal import ColourMode, StyledLine, one_line
from steno.session.session_status import StepCounts, activity_age, is_listed, is_live
from steno.session.turns.prompts import UNTITLED
from steno.store import environment
from steno.store.discovery import ArchivedFile, DiscoveredFile, Discovery, Problem, unreadable_problems
from steno.store.session_counts import count_agents, count_step_records, count_turns
from steno.store.session_lookup import resolve_roots, sessions_newest_first, summarize_files
from steno.store.summary import SessionSummary

_MIN_ID_LENGTH: Final = 4
_STATUS_MARKS: Final = {
    "running": ("●", "green"),
    "waiting": ("!", "bold yellow"),
    "failed": ("✗", "red"),
    "interrupted": ("◻", ""),
    "empty": ("·", "dim"),
    "archived only": ("▪", "dim"),
}
_ARCHIVED_STATUS: Final = "archived only"
_STATUS_CHOICES: Final = ("live", "running", "waiting", "finished", "interrupted", "failed", "archived")
_WIDE_SCREEN: Final = 100


class _SessionRow(msgspec.Struct):
    file: DiscoveredFile
    summary: SessionSummary
    title: str
    turns: int | None
    """None if the file is too large to count turns."""
    short_id: str = ""
    shell_argument: str = ""
    """Argument for other commands: the short ID, or the path if the ID is ambiguous."""


class _Listing(msgspec.Struct):
    """The rows to show, and counts of the omitted rows."""

    rows: list[_SessionRow]
    total: int
    problems: list[Problem]
    hidden_count: int = 0
    first_omitted: DiscoveredFile | None = None
    """The first session beyond the limit."""
    is_filtered: bool = False
    """Whether a filter was given."""


@click.command("ls", short_help="List sessions, newest first.")
@add_options(ROOT_OPTIONS)
@click.option("--project", metavar="P", help="Filter by project path; `.` is the current directory")
@click.option("--since", metavar="WHEN", help="Only sessions active since WHEN: 2026-11-07, 7d, 3h")
@click.option("--until", metavar="WHEN", help="Only sessions last active until WHEN, that day included")
@click.option(
    "--status",
    type=click.Choice(_STATUS_CHOICES),
    help="Filter by status; `live` is running, or waiting for input for less than a day",
)
@click.option(
    "--min-steps",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    help="Only sessions with at least N step records, as in steps.jsonl",
)
@click.option("--answered", is_flag=True, help="Only sessions with a text answer that has no tool calls")
@click.option(
    "--listed",
    is_flag=True,
    help="Hide sessions that are not live and have under 5 step records, or under 10 and no text answer",
)
@click.option(
    "--limit",
    metavar="N",
    default=30,
    show_default=True,
    type=click.IntRange(0),
    help="Maximum number of sessions; 0 = all",
)
@click.option("--all", "everything", is_flag=True, help="Include sessions without a prompt")
@add_options(JSON)
@WIDTH
@add_options(COLOR)
def command(
    root: tuple[str, ...] = (),
    color: ColourMode = "auto",
    width: int | None = None,
    *,
    demo: bool = False,
    as_json: bool = False,
    **values: Any,
) -> None:
    """List sessions, newest first, grouped by the day of their last activity.

    Marks: ● running, ! waiting for input, ✗ failed, ◻ interrupted, ▪ only in the archive; finished
    sessions have none.
    """
    now = environment.now()
    listing = _collect_sessions(_ListOptions(**values), search_roots(root, demo=demo), now)
    report_unreadable(unreadable_problems(listing.problems))
    if as_json:
        write_json(_listing_json(listing))
        if listing.first_omitted:
            print_error(_limit_message(listing))
    else:
        screen = Screen(color, width)
        screen.print_lines(_listing_lines(listing, screen.width, now))
        _print_next_steps(screen, listing, root, demo=demo)
    if listing.is_filtered and not listing.rows:
        raise click.exceptions.Exit(1)


class _ListOptions(msgspec.Struct):
    project: str | None = None
    since: str | None = None
    until: str | None = None
    status: str | None = None
    min_steps: int = 0
    answered: bool = False
    listed: bool = False
    limit: int = 30
    everything: bool = False

    @property
    def filters_by_steps(self) -> bool:
        """Whether a filter needs step records."""
        return bool(self.min_steps or self.answered or self.listed)


def _collect_sessions(options: _ListOptions, folders: tuple[str, ...] | None, now: float) -> _Listing:
    problems: list[Problem] = []
    files = sessions_newest_first(folders, problems, archived=True)
    total = len(files)
    names = sorted(os.path.basename(file.path) for file in files)
    if options.since:
        start = clock.parse_time_range(options.since, now)[0]
        files = [found for found in files if found.mtime_ns >= start * 1e9]
    if options.until:
        end = clock.parse_time_range(options.until, now)[1]
        files = [found for found in files if found.mtime_ns < end * 1e9]
    listing = _Listing([], total, problems)
    listing.is_filtered = bool(
        options.project or options.since or options.until or options.status or options.filters_by_steps
    )
    foreign_titles: dict[str, str] = {}
    for found, summary in summarize_files(files, now, problems):
        foreign_titles.update(summary.foreign_titles)
        if options.project and not matches_project(summary.project, options.project, os.getcwd()):
            continue
        if options.status and not _has_status(found, summary, options.status, now):
            continue
        if summary.hidden and not options.everything:
            listing.hidden_count += 1
            continue
        if options.filters_by_steps and not _matches_step_filters(found, summary, options, now):
            continue
        if options.limit and len(listing.rows) == options.limit:
            listing.first_omitted = found
            break
        title = summary.title if summary.has_title else foreign_titles.get(summary.last_uuid, summary.title)
        try:
            listing.rows.append(_SessionRow(found, summary, title, count_turns(found)))
        except Unreadable:
            # The file was deleted after discovery.
            continue
    _set_short_ids(listing.rows, names)
    return listing


def _has_status(file: DiscoveredFile, summary: SessionSummary, status: str, now: float) -> bool:
    if isinstance(file, ArchivedFile):
        return status == "archived"
    return _is_live(file, summary, now) if status == "live" else summary.status == status


def _matches_step_filters(file: DiscoveredFile, summary: SessionSummary, options: _ListOptions, now: float) -> bool:
    """Return whether a session passes the filters on step records.

    A file that is too large to be scanned for a listing passes.
    """
    try:
        step_counts = count_step_records(file)
    except Unreadable:
        return False
    if step_counts is None:
        return summary.answered or not options.answered
    if step_counts.records < options.min_steps or (options.answered and not step_counts.answered):
        return False
    return not options.listed or is_listed(step_counts, running=_is_live(file, summary, now))


def _step_counts(file: DiscoveredFile) -> dict[str, Any]:
    try:
        counts = count_step_records(file)
    except Unreadable:
        counts = StepCounts()
    is_known = counts is not None
    return {"step_records": counts.records if is_known else None, "answered": counts.answered if is_known else None}


def _set_short_ids(rows: list[_SessionRow], names: list[str]) -> None:
    """Set the shortest unique ID prefix of each row."""
    from bisect import bisect_left

    for row in rows:
        name = os.path.basename(row.file.path)
        index = bisect_left(names, name)
        neighbours = [n for n in names[max(index - 1, 0) : index + 2] if n != name]
        shared = max((_common_prefix_length(name, neighbour) for neighbour in neighbours), default=0)
        row.short_id = name.removesuffix(JSONL_SUFFIX)[: max(_MIN_ID_LENGTH, shared + 1)]
        is_unique = names[index + 1 : index + 2] != [name]
        is_typable = row.short_id[:1].isalnum() and row.short_id.replace("-", "").isalnum()
        row.shell_argument = (
            row.short_id if is_unique and is_typable and len(row.short_id) >= _MIN_ID_LENGTH else row.file.path
        )


def _common_prefix_length(first: str, second: str) -> int:
    character_pairs = enumerate(zip(first, second, strict=False))
    return next((position for position, (a, b) in character_pairs if a != b), min(len(first), len(second)))


def _listing_json(listing: _Listing) -> list[dict[str, Any]]:
    discoveries = Discovery("")
    return [
        {
            "id": row.summary.id,
            "path": os.fsencode(row.file.path).decode("utf-8", "replace"),
            "title": row.title or UNTITLED,
            "project": row.summary.project,
            "branch": row.summary.branch,
            "model": row.summary.model,
            "version": row.summary.version,
            "dialect": row.summary.dialect,
            "entrypoint": row.summary.entrypoint,
            "turns": row.turns,
            **_step_counts(row.file),
            "agents": count_agents(row.file, discoveries.agents(row.file)),
            "size": row.file.size,
            "started": clock.iso_time(row.summary.started),
            "ended": clock.iso_time(row.summary.ended),
            "modified": clock.iso_time(row.file.mtime_ns / 1e9),
            "status": row.summary.status,
            "archived_only": isinstance(row.file, ArchivedFile),
            "hidden": row.summary.hidden,
        }
        for row in listing.rows
    ]


def _listing_lines(listing: _Listing, width: int, now: float) -> list[StyledLine]:
    rows = listing.rows
    if not rows:
        return []
    heads, cells = layout_columns(_listing_columns(rows, is_wide=width >= _WIDE_SCREEN), width - 2)
    lines: list[StyledLine] = [["  ", *heads]]
    day = ""
    live = {index for index, row in enumerate(rows) if _is_live(row.file, row.summary, now)}
    lines += [_row_with_mark(rows[place], cells[place]) for place in sorted(live)]
    days = [humanize.day_name(row.file.mtime_ns / 1e9, now) for row in rows]
    counts = Counter(day for place, day in enumerate(days) if place not in live)
    # The total of the day that the limit cuts is unknown, so count only shown rows.
    truncated_day = humanize.day_name(listing.first_omitted.mtime_ns / 1e9, now) if listing.first_omitted else ""
    for place, row in enumerate(rows):
        if place in live:
            continue
        if days[place] != day:
            day = days[place]
            lines.append([])
            visible = f"{counts[day]:,} shown" if day == truncated_day else humanize.count(counts[day], "session")
            lines.append([(day, "bold"), (f"  {visible}", "dim")])
        lines.append(_row_with_mark(row, cells[place]))
    return lines


def _is_live(file: DiscoveredFile, summary: SessionSummary, now: float) -> bool:
    """Return whether a session is running, or has been waiting for less than a day."""
    if isinstance(file, ArchivedFile):
        return False
    return is_live(summary.ending, activity_age(now, summary.ended))


def _row_with_mark(row: _SessionRow, cells: StyledLine) -> StyledLine:
    status = _row_status(row)
    mark, style = _STATUS_MARKS.get(status, (" ", ""))
    visible: StyledLine = [
        (cell[0], style) if isinstance(cell, tuple) and cell[0].strip() == status else cell for cell in cells
    ]
    return [(mark, style), " ", *visible]


def _listing_columns(rows: list[_SessionRow], *, is_wide: bool) -> list[Column]:
    summaries = [row.summary for row in rows]
    dialects = ["" if summary.dialect == "claude" else summary.dialect for summary in summaries]
    return [
        Column("ID", [row.short_id for row in rows], style="bold"),
        Column("SESSION", [one_line(row.title, 200) or UNTITLED for row in rows], flexible=True),
        Column(
            "PROJECT",
            [one_line(humanize.project_name(look.project), 40) for look in summaries],
            max_width=16 if is_wide else 12,
            min_flexible_width=16,
        ),
        Column("BRANCH", [one_line(look.branch, 40) for look in summaries], "dim", max_width=22, min_flexible_width=38),
        Column(
            "MODEL",
            [one_line(humanize.model_name(look.model), 40) for look in summaries],
            "dim",
            max_width=14,
            min_flexible_width=37,
        ),
        Column("TURNS", ["-" if row.turns is None else f"{row.turns:,}" for row in rows], align_right=True),
        Column("SIZE", [humanize.size(row.file.size) for row in rows], "dim", align_right=True, min_flexible_width=36),
        Column("LAST", [_last_activity(row) for row in rows], align_right=True),
        Column(
            "",
            ["" if status in ("finished", "empty") else status for status in map(_row_status, rows)],
            min_flexible_width=20,
        ),
        *([Column("DIALECT", dialects, "dim", min_flexible_width=18)] if any(dialects) else []),
    ]


def _row_status(row: _SessionRow) -> str:
    """Return the status of a session; an archived one has no other status."""
    return _ARCHIVED_STATUS if isinstance(row.file, ArchivedFile) else row.summary.status


def _last_activity(row: _SessionRow) -> str:
    return "now" if _row_status(row) == "running" else humanize.time_of_day(row.file.mtime_ns / 1e9)


def _limit_message(listing: _Listing) -> str:
    """Return the message for a cut listing; with filters the total is unknown."""
    visible = len(listing.rows)
    if listing.is_filtered:
        return f"showing the newest {visible:,} matching sessions; use --limit 0 to list all"
    return f"showing {visible:,} of {listing.total:,} sessions; use --limit 0 to list all"


def _print_next_steps(screen: Screen, listing: _Listing, root: tuple[str, ...], *, demo: bool) -> None:
    from shlex import quote

    root_options = root_arguments(root, demo=demo)
    if not listing.rows:
        _print_empty_listing(screen, listing, root, root_options)
        return
    if not screen.is_terminal and listing.first_omitted:
        screen.print_lines([[], [_limit_message(listing)]])
    visible = f"{len(listing.rows):,} of {listing.total:,}"
    hidden = f", {listing.hidden_count:,} hidden" if listing.hidden_count else ""
    steps = [f"steno show{root_options} {quote(listing.rows[0].shell_argument)}"]
    if listing.first_omitted:
        steps.append(f"steno ls{root_options} --limit 0")
    if listing.hidden_count:
        steps.append(f"steno ls{root_options} --all")
    screen.print_next_steps(steps, f"{visible}{hidden}.")


def _print_empty_listing(screen: Screen, listing: _Listing, root: tuple[str, ...], root_options: str) -> None:
    location = ", ".join(root) if root else "the demo sessions" if root_options else ", ".join(resolve_roots())
    if not listing.total:
        demo = f"Run `{program_name()} demo` to write demo sessions."
        screen.print_lines([[f"No sessions in {location}. ", demo]])
    elif listing.hidden_count:
        hidden = humanize.count(listing.hidden_count, "session")
        screen.print_lines([[f"No sessions to show; {hidden} without a prompt hidden."]])
        screen.print_next_steps([f"steno ls{root_options} --all"])
    else:
        screen.print_lines([[f"No sessions match these filters ({listing.total:,} in {location})."]])
        screen.print_next_steps([f"steno ls{root_options}"])
