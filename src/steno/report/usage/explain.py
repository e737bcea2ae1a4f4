"""Opens a total to the very lines that made it: counted, merged, copied, skipped, and why."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from os.path import basename
from typing import Final, Literal, TypeAlias

import msgspec

from steno.index.scan import path_from
from steno.index.state import SHIFT, Row
from steno.index.tally import MOST
from steno.report.prices import Prices
from steno.report.usage.cells import band_of, day_of_slot, heap_of
from steno.report.usage.files import Share, transcripts_below
from steno.report.usage.indexed import (
    copies_of,
    counted_rows,
    places_of,
    seen_files,
    tools_of,
)
from steno.report.usage.lines import Figured, figures_around, figures_in
from steno.report.usage.sort import TIMED, Belonging, moment_of, named, slot_of, time_names
from steno.report.usage.totals import Figures, apportioned
from steno.report.usage.wanted import Wanted
from steno.store.found import Problem

__all__ = [
    "Explained",
    "LineSeen",
    "Response",
    "Verdict",
    "explain_files",
    "explain_index",
    "explain_rows",
]

Verdict: TypeAlias = Literal["counted", "merged", "copy", "skipped"]
_WHY: Final = {
    "counted": "the highest figures of the response",
    "merged": "another line of the same response",
    "higher": "the figures in {} are higher",
    "original": "copied from elsewhere; it counts in {}",
    "earlier": "it counts in {}, whose session began before",
    "skipped": "written by the client itself; nobody was asked",
    "gone": "the file is gone or has changed; the figures are the index's",
}
_MASK: Final = (1 << SHIFT) - 1


class LineSeen(msgspec.Struct):
    """A line with figures, and what became of them."""

    path: str
    line: int
    """Counted from one; 0 where it cannot be read any more."""
    offset: int
    verdict: Verdict
    why: str
    figures: tuple[int, ...]
    """Input, output, both cache writes, cache reads, searches."""
    counts_in: str = ""
    """Of a copy, the file in which the response counts."""
    cut: bool = False
    """Whether it has a figure that is not believable, and was cut."""


class Response(msgspec.Struct):
    """One response that counts."""

    key: str
    names: tuple[str, ...]
    model: str
    time: int | None
    session: str
    project: str
    figures: Figures
    lines: list[LineSeen]
    cost: int | None = None
    """In micro-dollars; None where no price is known."""


class Explained(msgspec.Struct):
    """What a total is made of."""

    responses: list[Response]
    skipped: list[LineSeen]
    totals: Figures
    cost: int
    complete: bool = True
    """Whether everything there is was read."""


class _Evidence(msgspec.Struct):
    """What is known before any line is read."""

    counted: list[tuple[Row, tuple[str, ...]]]
    """The responses that are asked about, each with the names of its row in the report."""
    copies: list[Row]
    place: Callable[[int], Belonging]
    path: Callable[[int], str]
    others: list[int] | None = None
    """All the files that may have skipped lines; None where only some rows are asked about."""


_Namer: TypeAlias = Callable[[Row], tuple[str, ...]]
_Seen: TypeAlias = dict[tuple[int, str], list[Figured]]


def explain_index(
    connection: sqlite3.Connection, wanted: Wanted, prices: Prices, what: str = ""
) -> Explained:
    """Explain a total of the index. `what` chooses rows by name, or a response by its key."""
    place = places_of(connection).__getitem__
    paths = {
        file: path_from(path) for file, path in connection.execute("SELECT id, path FROM files")
    }
    name_of = tools_of(connection) if wanted.by == "tool" else _namer(wanted, place)
    counted = _chosen(counted_rows(connection, wanted), wanted, name_of, what)
    copies = list(copies_of(connection, (row[1] for row, _ in counted)))
    others = None if what else seen_files(connection, wanted)
    evidence = _Evidence(counted, copies, place, paths.__getitem__, others)
    return _explained(evidence, prices, *_read_lines(evidence, wanted))


def explain_files(
    roots: Sequence[str], wanted: Wanted, prices: Prices, problems: list[Problem], what: str = ""
) -> Explained:
    """Explain the same total straight from the files."""
    files = [path for path, _ in transcripts_below(roots, problems)]
    share = Share(list(enumerate(files)))
    share.read()
    problems += share.problems
    rows = (
        row
        for row in share.rows.values()
        if wanted.has_time(moment_of(row)) and wanted.has_project(share.place(row[0])[2])
    )
    counted = _chosen(rows, wanted, _namer(wanted, share.place), what)
    keys = {row[1] for row, _ in counted}
    copies = [row for row in share.copies if row[1] in keys]
    others = None if what else share.skipping(wanted)
    evidence = _Evidence(counted, copies, share.place, files.__getitem__, others)
    return _explained(evidence, prices, *_read_lines(evidence, wanted))


def explain_rows(
    connection: sqlite3.Connection, rows: Sequence[Row], prices: Prices
) -> tuple[list[Response], dict[str, int]]:
    """Explain some responses of the index, without reading more than their own lines.

    The files that their lines are in come with it, by path.
    """
    place = places_of(connection).__getitem__
    copies = list(copies_of(connection, (row[1] for row in rows)))
    paths: dict[int, str] = {}
    asked: dict[int, dict[str, tuple[int, int]]] = {}
    for row in (*rows, *copies):
        asked.setdefault(row[0], {})[row[1]] = (row[2] & _MASK, row[3])
    seen: _Seen = {}
    for file, keys in asked.items():
        (path,) = connection.execute("SELECT path FROM files WHERE id = ?", (file,)).fetchone()
        paths[file] = path_from(path)
        for line in figures_around(paths[file], file, keys):
            seen.setdefault((file, line.key), []).append(line)
    evidence = _Evidence([(row, ()) for row in rows], copies, place, paths.__getitem__)
    files = {path: file for file, path in paths.items()}
    return _explained(evidence, prices, seen, []).responses, files


def _namer(wanted: Wanted, place: Callable[[int], Belonging]) -> _Namer:
    return lambda row: named(wanted.by, row, place(row[0]))


def _chosen(
    rows: Iterable[Row], wanted: Wanted, name_of: _Namer, what: str
) -> list[tuple[Row, tuple[str, ...]]]:
    """Return the responses that are asked about, in the order of their rows and of time."""
    found = [(row, name_of(row)) for row in rows]
    if wanted.by in TIMED:
        time_of = time_names(wanted.by, {names[0] for _, names in found})
        found = [(row, (time_of(names[0]),)) for row, names in found]
    found.sort(key=lambda each: (each[1], moment_of(each[0]) or 0, each[0][1]))
    if not what:
        return found
    exact = [each for each in found if each[0][1] == what or what in each[1]]
    word = what.casefold()
    return exact or [
        each for each in found if any(word in name.casefold() for name in (*each[1], each[0][1]))
    ]


def _explained(
    evidence: _Evidence, prices: Prices, seen: _Seen, skipped: list[LineSeen]
) -> Explained:
    prices.load({row[6] for row, _ in evidence.counted})
    copies: dict[str, list[Row]] = {}
    for row in evidence.copies:
        copies.setdefault(row[1], []).append(row)
    totals = Figures(unpriced={})
    responses: list[Response] = []
    for row, names in evidence.counted:
        figures = Figures(unpriced={})
        day = day_of_slot(slot_of(row))
        figures.take((names, day, row[6], row[15], band_of(row)), heap_of(row), prices)
        totals.add(figures)
        session, _, project = evidence.place(row[0])
        lines = _told(row, copies.get(row[1], []), seen, evidence)
        responses.append(
            Response(row[1], names, row[6], moment_of(row), session, project, figures, lines)
        )
    costs = apportioned([response.figures.exact for response in responses])
    for response, cost in zip(responses, costs, strict=True):
        response.cost = cost if response.figures.has_cost else None
    return Explained(responses, skipped, totals, sum(costs))


def _read_lines(evidence: _Evidence, wanted: Wanted) -> tuple[_Seen, list[LineSeen]]:
    """Read the lines of all the files that are involved, and those that were skipped in them."""
    asked: dict[int, set[str]] = {}
    for row in (*(row for row, _ in evidence.counted), *evidence.copies):
        asked.setdefault(row[0], set()).add(row[1])
    telling = {row[0] for row, _ in evidence.counted}
    days = {day_of_slot(slot_of(row)) for row, _ in evidence.counted}
    everything = evidence.others is not None or wanted.by not in ("day", "week", "month")
    for file in evidence.others or ():
        asked.setdefault(file, set())
        telling.add(file)
    seen: _Seen = {}
    skipped: list[LineSeen] = []
    for file, keys in asked.items():
        path = evidence.path(file)
        for line in figures_in(path, file):
            if line.key in keys and not line.synthetic:
                seen.setdefault((file, line.key), []).append(line)
            elif (
                line.synthetic
                and file in telling
                and wanted.has_time(moment_of(line.row))
                and (everything or day_of_slot(slot_of(line.row)) in days)
            ):
                skipped.append(_seen(path, line, "skipped", _WHY["skipped"]))
    skipped.sort(key=lambda line: (line.path, line.offset))
    return seen, skipped


def _told(row: Row, copies: list[Row], seen: _Seen, evidence: _Evidence) -> list[LineSeen]:
    """Say of every line of a response what became of it; the one that counts comes first."""
    path, place = evidence.path(row[0]), row[2] & _MASK
    lines: list[LineSeen] = []
    for line in seen.get((row[0], row[1]), ()):
        if line.offset == place:
            lines.insert(0, _seen(path, line, "counted", _WHY["counted"]))
        else:
            lines.append(_seen(path, line, "merged", _WHY["merged"]))
    if not lines or lines[0].verdict != "counted":
        lines.insert(0, _lost(path, row, "counted", _WHY["gone"]))
    for copy in copies:
        other = evidence.path(copy[0])
        why = _why_copy(row, copy).format(basename(path))
        found = seen.get((copy[0], copy[1]), ())
        lines += [_seen(other, line, "copy", why, path) for line in found]
        if not found:
            lines.append(_lost(other, copy, "copy", why, path))
    return lines


def _why_copy(row: Row, copy: Row) -> str:
    """Say why of two copies that one counts and not this one; see `steno.index.tally.rank`."""
    if row[10] > copy[10]:
        return _WHY["higher"]
    return _WHY["original" if copy[17] > row[17] else "earlier"]


def _seen(path: str, line: Figured, verdict: Verdict, why: str, counts_in: str = "") -> LineSeen:
    return LineSeen(path, line.line, line.offset, verdict, why, line.figures, counts_in, line.cut)


def _lost(path: str, row: Row, verdict: Verdict, why: str, counts_in: str = "") -> LineSeen:
    """Return a line that cannot be read any more as the row tells it."""
    figures = tuple(row[9:15])
    cut = max(figures) >= MOST
    return LineSeen(path, 0, row[2] & _MASK, verdict, why, figures, counts_in, cut)
