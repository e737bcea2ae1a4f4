"""`steno ls`: the sessions there are, newest first."""

import os
from collections import Counter
from typing import Any, Final

import click
import msgspec

from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots, where_to_look
from steno.cli.screen import Screen, complain, write_json
from steno.cli.table import Column, layout
from steno.errors import Unreadable
from steno.report import clock, words
from steno.report.usage.wanted import fits
from steno.safe.terminal import ColourMode, Line, one_line
from steno.session.liveness import activity_age, is_live
from steno.session.step_records import StepCounts, is_listed
from steno.session.story.titles import UNTITLED
from steno.store.archive.opened import Archived
from steno.store.count import count_agents, count_step_records, count_turns
from steno.store.discover import Discovery, Found, Problem
from steno.store.glance import Glance
from steno.store.library import newest_first, roots_of, seen

__all__ = ["command"]

_SHORTEST: Final = 4
_MARKS: Final = {
    "running": ("●", "green"),
    "waiting": ("!", "bold yellow"),
    "failed": ("✗", "red"),
    "interrupted": ("◻", ""),
    "empty": ("·", "dim"),
    "archived only": ("▪", "dim"),
}
_ARCHIVED: Final = "archived only"
_STATUSES: Final = ("live", "running", "waiting", "finished", "interrupted", "failed", "archived")
_WIDE: Final = 100


class _Row(msgspec.Struct):
    found: Found
    look: Glance
    title: str
    turns: int | None
    """None where the file is too large to count them."""
    short: str = ""
    again: str = ""
    """What names it in another command: the short id, or its path where that does not."""


class _Listing(msgspec.Struct):
    """What was found: the rows to show, and what was left out."""

    rows: list[_Row]
    total: int
    problems: list[Problem]
    hidden: int = 0
    next: Found | None = None
    """The first one that the limit left out."""
    chosen: bool = False
    """Whether only some projects or some time were asked for."""


@click.command("ls", short_help="List sessions, newest first.")
@options(WHERE)
@click.option("--project", metavar="P", help="Only projects whose path has P in it; `.` is here.")
@click.option("--since", metavar="WHEN", help="Only sessions written since: 2026-11-07, 7d, 3h, …")
@click.option(
    "--until", metavar="WHEN", help="Only sessions written until then, that day included."
)
@click.option(
    "--status",
    type=click.Choice(_STATUSES),
    help="Only sessions that stand so; `live` ones run, or have been waiting for less than a day.",
)
@click.option(
    "--min-steps",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    help="Only sessions with at least N step records: user and assistant records, as in "
    "steps.jsonl. Tool steps, as `show` counts them, are another figure.",
)
@click.option(
    "--answered", is_flag=True, help="Only sessions with a text answer that calls no tool."
)
@click.option(
    "--listed",
    is_flag=True,
    help="Hide short sessions: not running, and fewer than 5 step records, or fewer than 10 and "
    "no text answer.",
)
@click.option(
    "--limit",
    metavar="N",
    default=30,
    show_default=True,
    type=click.IntRange(0),
    help="How many; 0 = all.",
)
@click.option("--all", "everything", is_flag=True, help="Also those without a prompt.")
@options(JSON)
@WIDTH
@options(COLOR)
def command(
    root: tuple[str, ...] = (),
    color: ColourMode = "auto",
    width: int | None = None,
    *,
    demo: bool = False,
    as_json: bool = False,
    **wanted: Any,
) -> None:
    """List sessions, newest first, by the day they were last written.

    Marks: ● running, ! waits for an answer, ✗ failed, ◻ interrupted; a finished session has none.
    ▪ is gone from the disk and only in the archive.
    """
    now = clock.now()
    listing = _gather(_Wanted(**wanted), roots(root, demo=demo), now)
    _complain_of_unreadable(listing.problems)
    if as_json:
        write_json(_json(listing))
        if listing.next:
            complain(_left_out(listing))
    else:
        screen = Screen(color, width)
        screen.lines(_lines(listing, screen.width, now))
        _finish(screen, listing, root, demo=demo)
    if listing.chosen and not listing.rows:
        raise click.exceptions.Exit(1)


class _Wanted(msgspec.Struct):
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
    def by_steps(self) -> bool:
        """Whether step records decide what is listed."""
        return bool(self.min_steps or self.answered or self.listed)


def _gather(wanted: _Wanted, where: tuple[str, ...] | None, now: float) -> _Listing:
    problems: list[Problem] = []
    files = newest_first(where, problems, archived=True)
    total = len(files)
    names = sorted(os.path.basename(found.path) for found in files)
    if wanted.since:
        start = clock.when(wanted.since, now)[0]
        files = [found for found in files if found.mtime_ns >= start * 1e9]
    if wanted.until:
        end = clock.when(wanted.until, now)[1]
        files = [found for found in files if found.mtime_ns < end * 1e9]
    listing = _Listing([], total, problems)
    listing.chosen = bool(
        wanted.project or wanted.since or wanted.until or wanted.status or wanted.by_steps
    )
    lent: dict[str, str] = {}
    for found, look in seen(files, now, problems):
        lent.update(look.lent)
        if wanted.project and not fits(look.project, wanted.project, os.getcwd()):
            continue
        if wanted.status and not _stands(found, look, wanted.status, now):
            continue
        if look.hidden and not wanted.everything:
            listing.hidden += 1
            continue
        if wanted.by_steps and not _has_steps(found, look, wanted, now):
            continue
        if wanted.limit and len(listing.rows) == wanted.limit:
            listing.next = found
            break
        title = look.title if look.named else lent.get(look.last_uuid, look.title)
        try:
            listing.rows.append(_Row(found, look, title, count_turns(found)))
        except Unreadable:
            # It went away since it was found.
            continue
    _shorten(listing.rows, names)
    return listing


def _stands(found: Found, look: Glance, status: str, now: float) -> bool:
    if isinstance(found, Archived):
        return status == "archived"
    return _is_live(found, look, now) if status == "live" else look.status == status


def _has_steps(found: Found, look: Glance, wanted: _Wanted, now: float) -> bool:
    """Return whether a session has the step records that are asked for.

    A file that is too large to be scanned for a listing has enough of them.
    """
    try:
        counts = count_step_records(found)
    except Unreadable:
        return False
    if counts is None:
        return look.answered or not wanted.answered
    if counts.records < wanted.min_steps or (wanted.answered and not counts.answered):
        return False
    return not wanted.listed or is_listed(counts, running=_is_live(found, look, now))


def _step_counts(found: Found) -> dict[str, Any]:
    try:
        counts = count_step_records(found)
    except Unreadable:
        counts = StepCounts()
    known = counts is not None
    return {
        "step_records": counts.records if known else None,
        "answered": counts.answered if known else None,
    }


def _shorten(rows: list[_Row], names: list[str]) -> None:
    """Give each row the shortest beginning of its id that no other session has."""
    from bisect import bisect_left

    for row in rows:
        name = os.path.basename(row.found.path)
        place = bisect_left(names, name)
        near = [n for n in names[max(place - 1, 0) : place + 2] if n != name]
        shared = max((_shared(name, other) for other in near), default=0)
        row.short = name.removesuffix(".jsonl")[: max(_SHORTEST, shared + 1)]
        alone = names[place + 1 : place + 2] != [name]
        plain = row.short[:1].isalnum() and row.short.replace("-", "").isalnum()
        row.again = row.short if alone and plain and len(row.short) >= _SHORTEST else row.found.path


def _shared(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _json(listing: _Listing) -> list[dict[str, Any]]:
    discoveries = Discovery("")
    return [
        {
            "id": row.look.id,
            "path": os.fsencode(row.found.path).decode("utf-8", "replace"),
            "title": row.title or UNTITLED,
            "project": row.look.project,
            "branch": row.look.branch,
            "model": row.look.model,
            "version": row.look.version,
            "dialect": row.look.dialect,
            "entrypoint": row.look.entrypoint,
            "turns": row.turns,
            **_step_counts(row.found),
            "agents": count_agents(row.found, discoveries.agents(row.found)),
            "size": row.found.size,
            "started": clock.iso(row.look.started),
            "ended": clock.iso(row.look.ended),
            "modified": clock.iso(row.found.mtime_ns / 1e9),
            "status": row.look.status,
            "archived_only": isinstance(row.found, Archived),
            "hidden": row.look.hidden,
        }
        for row in listing.rows
    ]


def _lines(listing: _Listing, width: int, now: float) -> list[Line]:
    rows = listing.rows
    if not rows:
        return []
    heads, cells = layout(_columns(rows, wide=width >= _WIDE), width - 2)
    lines: list[Line] = [["  ", *heads]]
    day = ""
    live = {place for place, row in enumerate(rows) if _is_live(row.found, row.look, now)}
    lines += [_marked(rows[place], cells[place]) for place in sorted(live)]
    days = [words.day(row.found.mtime_ns / 1e9, now) for row in rows]
    counts = Counter(day for place, day in enumerate(days) if place not in live)
    # Of the day at which the limit struck, only those that are shown are known.
    cut = words.day(listing.next.mtime_ns / 1e9, now) if listing.next else ""
    for place, row in enumerate(rows):
        if place in live:
            continue
        if days[place] != day:
            day = days[place]
            lines.append([])
            shown = f"{counts[day]:,} shown" if day == cut else words.count(counts[day], "session")
            lines.append([(day, "bold"), (f"  {shown}", "dim")])
        lines.append(_marked(row, cells[place]))
    return lines


def _is_live(found: Found, look: Glance, now: float) -> bool:
    """Whether somebody should look now: it runs, or has been waiting for less than a day."""
    if isinstance(found, Archived):
        return False
    return is_live(look.ending, activity_age(now, look.ended))


def _marked(row: _Row, cells: Line) -> Line:
    word = _word(row)
    mark, style = _MARKS.get(word, (" ", ""))
    shown: Line = [
        (cell[0], style) if isinstance(cell, tuple) and cell[0].strip() == word else cell
        for cell in cells
    ]
    return [(mark, style), " ", *shown]


def _columns(rows: list[_Row], *, wide: bool) -> list[Column]:
    looks = [row.look for row in rows]
    dialects = ["" if look.dialect == "claude" else look.dialect for look in looks]
    return [
        Column("ID", [row.short for row in rows], style="bold"),
        Column("SESSION", [one_line(row.title, 200) or UNTITLED for row in rows], flexible=True),
        Column(
            "PROJECT",
            [one_line(words.project_name(look.project), 40) for look in looks],
            most=16 if wide else 12,
            needs=16,
        ),
        Column("BRANCH", [one_line(look.branch, 40) for look in looks], "dim", most=22, needs=38),
        Column(
            "MODEL",
            [one_line(words.model_name(look.model), 40) for look in looks],
            "dim",
            most=14,
            needs=37,
        ),
        Column(
            "TURNS", ["-" if row.turns is None else f"{row.turns:,}" for row in rows], right=True
        ),
        Column("SIZE", [words.size(row.found.size) for row in rows], "dim", right=True, needs=36),
        Column("LAST", [_last(row) for row in rows], right=True),
        Column(
            "",
            ["" if word in ("finished", "empty") else word for word in map(_word, rows)],
            needs=20,
        ),
        *([Column("DIALECT", dialects, "dim", needs=18)] if any(dialects) else []),
    ]


def _word(row: _Row) -> str:
    """Say how a session stands; of one that is gone, that alone."""
    return _ARCHIVED if isinstance(row.found, Archived) else row.look.status


def _last(row: _Row) -> str:
    return "now" if _word(row) == "running" else words.clock(row.found.mtime_ns / 1e9)


def _complain_of_unreadable(problems: list[Problem]) -> None:
    denied = [problem for problem in problems if problem.kind in ("denied", "unreadable")]
    if denied:
        complain(f"{words.count(len(denied), 'path')} could not be read, such as {denied[0].path}")


def _left_out(listing: _Listing) -> str:
    """Say that the limit left sessions out; of how many is known unless projects were chosen."""
    shown = len(listing.rows)
    if listing.chosen:
        return f"the newest {shown:,} that fit, there may be more; --limit 0 lists all"
    return f"{shown:,} of {listing.total:,} sessions; --limit 0 lists all"


def _finish(screen: Screen, listing: _Listing, root: tuple[str, ...], *, demo: bool) -> None:
    from shlex import quote

    where = where_to_look(root, demo=demo)
    if not listing.rows:
        _nothing(screen, listing, root, where)
        return
    if not screen.tty and listing.next:
        screen.lines([[], [_left_out(listing)]])
    shown = f"{len(listing.rows):,} of {listing.total:,}"
    hidden = f", {listing.hidden:,} hidden" if listing.hidden else ""
    steps = [f"steno show{where} {quote(listing.rows[0].again)}"]
    if listing.next:
        steps.append(f"steno ls{where} --limit 0")
    if listing.hidden:
        steps.append(f"steno ls{where} --all")
    screen.next_steps(steps, f"{shown}{hidden}.")


def _nothing(screen: Screen, listing: _Listing, root: tuple[str, ...], where: str) -> None:
    place = ", ".join(root) if root else "the demo" if where else ", ".join(roots_of())
    if not listing.total:
        demo = f"`{program()} demo` writes some to look at."
        screen.lines([[f"No sessions in {place}. ", demo]])
    elif listing.hidden:
        hidden = words.count(listing.hidden, "session")
        screen.lines([[f"Nothing to show: {hidden} without a prompt."]])
        screen.next_steps([f"steno ls{where} --all"])
    else:
        screen.lines([[f"No session fits, of {listing.total:,} in {place}."]])
        screen.next_steps([f"steno ls{where}"])
