"""`steno doctor`: the whole config folder: what is broken, what is about to go, what lies about."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import click
import msgspec

from steno.check.doctor import LARGE_LINE, SOON, Broken, Diagnosis, Due, Large, examine, visit
from steno.cli import clock, words
from steno.cli.check import policy_of
from steno.cli.findings import problem_json
from steno.cli.names import Names, argument
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots, where_to_look
from steno.cli.pager import page
from steno.cli.progress import Progress
from steno.cli.screen import Screen, complain, write_json
from steno.errors import Unreadable
from steno.safe.terminal import ColourMode, Line, one_line, short_path, width
from steno.store.found import Found, Problem
from steno.store.glance import glance
from steno.store.library import roots_of
from steno.store.upkeep import Leftover

__all__ = ["command"]

T = TypeVar("T")
_SHOWN: Final = 10
_TROUBLE: Final = frozenset(("denied", "unreadable", "special"))
_KINDS: Final = {
    "session": "its sub-agents and tool results",
    "file-history": "its file backups",
    "tasks": "its tasks",
    "todos": "its to-do list",
    "debug": "its debug log",
    "session-env": "its environment",
}


@click.command("doctor", short_help="Look after the config folder: what is broken or about to go.")
@options(WHERE)
@options(JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    as_json: bool,
    no_pager: bool,
) -> None:
    """Look after the config folder: sessions that are broken, will be deleted, or are too big.

    Broken sessions come by how much a resume would lose. Also what sessions left behind, and files
    that are there twice. Nothing is changed; each section says what mends it.

    Exit codes: 0 all is well, 1 there is something to do, 3 something could not be read.
    """
    policy = policy_of()
    where = roots_of(roots(root, demo=demo))
    problems: list[Problem] = []
    patient = visit([folder for folder in where if os.path.lexists(folder)], problems)
    with Progress(patient.size, "Examining") as bar:
        found = examine(patient, clock.now(), problems=problems, policy=policy, done=bar.add)
    if as_json:
        write_json(_json(found, problems))
    else:
        names = Names(each.path for each in patient.files)
        screen = Screen(color, width)
        sheet = _Sheet(found, names, screen.width, where_to_look(root, demo=demo))
        page(screen, sheet.lines(), wanted=not no_pager)
    trouble = [problem for problem in problems if problem.kind in _TROUBLE]
    if trouble:
        number = words.count(len(trouble), "path")
        complain(f"{number} could not be read, such as {trouble[0].path}")
    if trouble or not found.healthy:
        raise click.exceptions.Exit(3 if trouble else 1)


class _Sheet:
    """A diagnosis for people."""

    def __init__(self, found: Diagnosis, names: Names, columns: int, where: str) -> None:
        self._found = found
        self._names = names
        self._columns = columns
        self._where = where

    def lines(self) -> Iterator[Line]:
        """Yield the sections that have something to say, and how it stands in all."""
        found = self._found
        sessions = words.count(found.sessions, "session")
        if not found.sessions and found.healthy:
            yield [f"Nothing to look after: no session here. `{program()} demo` writes some."]
            return
        if found.healthy:
            yield [("✓", "green"), f" Everything looks sound: {sessions}, {words.size(found.size)}"]
            return
        yield from self._broken()
        yield from self._due()
        yield from self._large()
        yield from self._leftovers()
        yield from self._copies()
        yield [(f"{sessions}, {found.sound:,} sound", "bold"), f", {words.size(found.size)}"]

    def _broken(self) -> Iterator[Line]:
        broken = self._found.broken
        head = f"{words.count(len(broken), 'session')} broken, the most lost first"
        hint = self._command("repair", broken[0].found.path) if broken else ""
        yield from self._section("✗", "red", head, broken, self._broken_line, hint)

    def _broken_line(self, each: Broken) -> Line:
        lost = f"{each.lost:,} of {each.total:,} messages lost" if each.lost else "nothing lost"
        return self._session(each.found, f"{lost}, {words.count(each.errors, 'error')}")

    def _due(self) -> Iterator[Line]:
        due = self._found.due
        overdue = sum(each.days <= 0 for each in due)
        size = words.size(sum(each.found.size for each in due))
        late = f", {overdue:,} overdue" if overdue else ""
        sessions = words.count(len(due), "session")
        head = f"{sessions} the client deletes within {SOON} days{late}, {size}"
        days = f"{self._found.cleanup_days:g}"
        hint = f'kept for {days} days; more with "cleanupPeriodDays" in settings.json'
        yield from self._section("!", "yellow", head, due, self._due_line, hint)

    def _due_line(self, each: Due) -> Line:
        days = int(each.days)
        if each.days <= 0:
            return self._session(each.found, "overdue")
        return self._session(each.found, f"in {words.count(days, 'day')}" if days else "today")

    def _large(self) -> Iterator[Line]:
        large = self._found.large
        head = f"{words.count(len(large), 'file')} too big to work with well"
        hint = self._command("repair", large[0].found.path, " --slim") if large else ""
        yield from self._section("!", "yellow", head, large, self._large_line, hint)

    def _large_line(self, each: Large) -> Line:
        line = f", a line of {words.size(each.longest)}" if each.longest > LARGE_LINE else ""
        return self._session(each.found, f"{words.size(each.found.size)}{line}")

    def _leftovers(self) -> Iterator[Line]:
        left = self._found.leftovers
        size = words.size(sum(each.size for each in left))
        head = f"{words.count(len(left), 'leftover')} of sessions that are gone, {size}"
        quoted = argument(left[0].path) if left else None
        hint = f"rm -r {quoted}" if quoted else "they can be deleted"
        yield from self._section("·", "dim", head, left, self._leftover_line, hint)

    def _leftover_line(self, each: Leftover) -> Line:
        about = f"{_KINDS.get(each.kind, each.kind)}, {words.size(each.size)}"
        return self._path(each.path, about)

    def _copies(self) -> Iterator[Line]:
        groups = self._found.copies
        head = f"{words.count(len(groups), 'session')} there more than once"
        quoted = argument(groups[0][-1].path) if groups else None
        hint = f"keep one of each: rm {quoted}" if quoted else "keep one of each"
        pairs = [(each, group[0].path) for group in groups for each in group]
        yield from self._section("·", "dim", head, pairs, self._copy_line, hint)

    def _copy_line(self, pair: tuple[Found, str]) -> Line:
        found, first = pair
        return self._path(found.path, words.size(found.size) if found.path == first else "the same")

    def _section(
        self,
        mark: str,
        style: str,
        head: str,
        items: Sequence[T],
        line: Callable[[T], Line],
        hint: str,
    ) -> Iterator[Line]:
        if not items:
            return
        yield [(mark, style), " ", (one_line(head, self._columns - 2), "bold")]
        for each in items[:_SHOWN]:
            yield line(each)
        if len(items) > _SHOWN:
            yield [(f"    and {len(items) - _SHOWN:,} more; --json lists all", "dim")]
        if hint:
            yield ["    ", (hint, "cyan")]
        yield []

    def _session(self, found: Found, about: str) -> Line:
        short = one_line(self._names.short(found.path), 40)
        room = self._columns - 8 - width(short) - width(about)
        return ["    ", (short, "bold"), "  ", one_line(_title(found), room), "  ", (about, "dim")]

    def _path(self, path: str, about: str) -> Line:
        folder, name = short_path(path, self._columns - 6 - width(about))
        return ["    ", (folder, "dim"), name, "  ", (about, "dim")]

    def _command(self, name: str, path: str, more: str = "") -> str:
        quoted = argument(self._names.again(path))
        return f"steno {name}{self._where} {quoted}{more}" if quoted else ""


def _title(found: Found) -> str:
    if found.place.role == "agent":
        return f"sub-agent of {found.place.session_id[:8]}" if found.place.session_id else ""
    try:
        return glance(found, clock.now()).title or "(no title)"
    except Unreadable:
        return ""


def _json(found: Diagnosis, problems: Sequence[Problem]) -> dict[str, Any]:
    return {
        "sessions": found.sessions,
        "sound": found.sound,
        "size": found.size,
        "cleanup_days": found.cleanup_days,
        "broken": [
            {
                **_file_json(each.found),
                "lost": each.lost,
                "messages": each.total,
                "errors": each.errors,
                "warnings": each.warnings,
                "verdict": each.words,
            }
            for each in found.broken
        ],
        "due": [{**_file_json(each.found), "days": round(each.days, 2)} for each in found.due],
        "large": [{**_file_json(each.found), "longest_line": each.longest} for each in found.large],
        "leftovers": [
            {**msgspec.to_builtins(each), "path": _text(each.path)} for each in found.leftovers
        ],
        "copies": [[_file_json(each) for each in group] for group in found.copies],
        "problems": [problem_json(problem) for problem in problems],
    }


def _file_json(found: Found) -> dict[str, Any]:
    return {
        "path": _text(found.path),
        "size": found.size,
        "modified": clock.iso(found.mtime_ns / 1e9),
    }


def _text(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
