"""`steno doctor`: the whole config folder: what is broken, what is about to go, what lies about."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import click
import msgspec

from steno.check.doctor import LARGE_LINE, SOON, Broken, Diagnosis, Due, Large, examine, visit
from steno.cli.findings import problem_json
from steno.cli.fit import wrapped
from steno.cli.names import Names, argument, text_of, title_of
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots, where_to_look
from steno.cli.pager import page
from steno.cli.progress import Progress
from steno.cli.screen import Screen, complain, write_json
from steno.guard.confinement.probe import Support, probe_confinement
from steno.report import clock, words
from steno.report.policy import policy_of
from steno.report.retention import Retention, retention_json
from steno.safe.terminal import ColourMode, Line, one_line, short_path, width, wrap
from steno.store.found import Found, Problem
from steno.store.library import roots_of
from steno.store.upkeep import Leftover

__all__ = ["command"]

T = TypeVar("T")
_SHOWN: Final = 10
_TITLE: Final = 10
_DAY: Final = 86_400
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

    Exit codes: 0 all is well, 1 there is something to do, 2 wrong usage or a config file of steno's
    that is broken, 3 something could not be read.
    """
    policy = policy_of()
    where = roots_of(roots(root, demo=demo))
    problems: list[Problem] = []
    patient = visit([folder for folder in where if os.path.lexists(folder)], problems)
    with Progress(patient.size, "Examining") as bar:
        found = examine(patient, clock.now(), problems=problems, policy=policy, done=bar.add)
    # The demo says nothing of this machine.
    support = None if demo else probe_confinement()
    if as_json:
        write_json(_json(found, problems, support))
    else:
        names = Names(each.path for each in patient.files)
        screen = Screen(color, width)
        sheet = _Sheet(found, names, screen.width, where_to_look(root, demo=demo))
        page(screen, (*sheet.lines(), *_confinement(support, screen.width)), wanted=not no_pager)
    trouble = [problem for problem in problems if problem.kind in _TROUBLE]
    if trouble:
        number = words.count(len(trouble), "path")
        complain(f"{number} could not be read, such as {trouble[0].path}")
    if trouble or not found.healthy:
        raise click.exceptions.Exit(3 if trouble else 1)


def _confinement(support: Support | None, columns: int) -> Iterator[Line]:
    """Yield what confines the commands of `steno chat` on this machine."""
    if support is not None:
        mark = ("✓", "green") if support.usable else ("!", "yellow")
        yield from wrapped([mark, f" {support.summary}"], columns)


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
            said = f"Nothing to look after: no session here. `{program()} demo` writes some."
            yield from wrapped([said], self._columns)
            yield from self._empty()
            return
        if found.healthy:
            said = f" Everything looks sound: {sessions}, {words.size(found.size)}"
            yield from wrapped([("✓", "green"), said], self._columns)
            yield from self._empty()
            return
        yield from self._broken()
        yield from self._due()
        yield from self._large()
        yield from self._leftovers()
        yield from self._copies()
        yield [(f"{sessions}, {found.sound:,} sound", "bold"), f", {words.size(found.size)}"]
        yield from self._empty()

    def _empty(self) -> Iterator[Line]:
        if number := len(self._found.empty):
            yield [(f"{words.count(number, 'file')} without a conversation", "dim")]

    def _broken(self) -> Iterator[Line]:
        broken = self._found.broken
        head = f"{words.count(len(broken), 'session')} broken, the most lost first"
        first = next((each for each in broken if each.mendable), None)
        hint = self._command("repair", first.found.path) if first else ""
        yield from self._section("✗", "red", head, broken, self._broken_line, hint)

    def _broken_line(self, each: Broken) -> list[Line]:
        lost = f"{each.lost:,} of {each.total:,} messages lost" if each.lost else "nothing lost"
        return self._session(each.found, f"{lost}, {words.count(each.errors, 'error')}")

    def _due(self) -> Iterator[Line]:
        due = self._found.due
        overdue = sum(each.days <= 0 for each in due)
        size = words.size(sum(each.found.size for each in due))
        late = f", {overdue:,} overdue" if overdue else ""
        sessions = words.count(len(due), "session")
        unkept = sum(not each.archived for each in due)
        kept = f", {unkept:,} not archived" if unkept else ""
        head = f"{sessions} the client deletes within {SOON} days{late}{kept}, {size}"
        days = f"{self._found.cleanup_days:g}"
        hint = f'kept for {days} days; more with "cleanupPeriodDays" in settings.json'
        if any(not each.archived for each in due):
            hint += f"; `{program()} archive{self._where}` keeps them for good"
        yield from self._section("!", "yellow", head, due, self._due_line, hint)

    def _due_line(self, each: Due) -> list[Line]:
        days = int(each.days)
        if each.days <= 0:
            return self._session(each.found, "overdue")
        return self._session(each.found, f"in {words.count(days, 'day')}" if days else "today")

    def _large(self) -> Iterator[Line]:
        large = self._found.large
        head = f"{words.count(len(large), 'file')} too big to work with well"
        hint = self._command("repair", large[0].found.path, " --slim") if large else ""
        yield from self._section("!", "yellow", head, large, self._large_line, hint)

    def _large_line(self, each: Large) -> list[Line]:
        line = f", a line of {words.size(each.longest)}" if each.longest > LARGE_LINE else ""
        return self._session(each.found, f"{words.size(each.found.size)}{line}")

    def _leftovers(self) -> Iterator[Line]:
        left = self._found.leftovers
        size = words.size(sum(each.size for each in left))
        head = f"{words.count(len(left), 'leftover')} of sessions that are gone, {size}"
        quoted = argument(left[0].path) if left else None
        several = f"all of these can be deleted, the first with rm -r {quoted}"
        hint = several if len(left) > 1 else f"rm -r {quoted}"
        hint = hint if quoted else "they can be deleted"
        yield from self._section("·", "dim", head, left, self._leftover_line, hint)

    def _leftover_line(self, each: Leftover) -> list[Line]:
        about = f"{_KINDS.get(each.kind, each.kind)}, {words.size(each.size)}"
        return self._path(each.path, about)

    def _copies(self) -> Iterator[Line]:
        groups = [sorted(group, key=_use) for group in self._found.copies]
        head = f"{words.count(len(groups), 'session')} there more than once"
        spare = next(filter(None, map(_spare, groups)), None)
        quoted = argument(spare.path) if spare else None
        hint = f"rm {quoted}" if quoted else "keep the one that the client resumes"
        pairs = [(each, group[0].path) for group in groups for each in group]
        yield from self._section("·", "dim", head, pairs, self._copy_line, hint)

    def _copy_line(self, pair: tuple[Found, str]) -> list[Line]:
        found, first = pair
        return self._path(found.path, words.size(found.size) if found.path == first else "the same")

    def _section(
        self,
        mark: str,
        style: str,
        head: str,
        items: Sequence[T],
        lines: Callable[[T], list[Line]],
        hint: str,
    ) -> Iterator[Line]:
        if not items:
            return
        for place, each in enumerate(wrap(head, self._columns - 2)):
            yield [(" " if place else mark, style), " ", (each, "bold")]
        for each in items[:_SHOWN]:
            yield from lines(each)
        if len(items) > _SHOWN:
            yield [(f"    and {len(items) - _SHOWN:,} more; --json lists all", "dim")]
        # A command stays in one piece, so that it can be copied.
        command = hint.startswith((program(), "rm "))
        for each in [hint] if command else wrap(hint, self._columns - 4) if hint else ():
            yield ["    ", (each, "cyan")]
        yield []

    def _session(self, found: Found, about: str) -> list[Line]:
        short = one_line(self._names.short(found.path), self._columns - 4)
        room = self._columns - 8 - width(short) - width(about)
        name: Line = ["    ", (short, "bold"), "  "]
        if room >= _TITLE:
            return [[*name, one_line(_title(found), room), "  ", (about, "dim")]]
        room = self._columns - 6 - width(short)
        return [[*name, one_line(_title(found), room)], *self._below(about)]

    def _path(self, path: str, about: str) -> list[Line]:
        room = self._columns - 6 - width(about)
        beside = room >= _TITLE
        folder, name = short_path(path, room if beside else self._columns - 4)
        line: Line = ["    ", (folder, "dim"), name]
        return [[*line, "  ", (about, "dim")]] if beside else [line, *self._below(about)]

    def _below(self, about: str) -> list[Line]:
        return [["      ", (line, "dim")] for line in wrap(about, self._columns - 6)]

    def _command(self, name: str, path: str, more: str = "") -> str:
        quoted = argument(self._names.again(path))
        return f"{program()} {name}{self._where} {quoted}{more}" if quoted else ""


def _is_live(found: Found) -> bool:
    """Say whether a file lies where a client looks for sessions: projects/PROJECT/ID.jsonl."""
    folder = os.path.dirname(os.path.abspath(found.path))
    return os.path.basename(os.path.dirname(folder)) == "projects"


def _use(found: Found) -> tuple[bool, bool, str]:
    """Order copies: what a client would resume first, of that what has a folder of its own."""
    has_folder = os.path.isdir(found.path.removesuffix(".jsonl"))
    return not _is_live(found), not has_folder, found.path


def _spare(group: Sequence[Found]) -> Found | None:
    """Return the copy that can go; None where more than one, or none, may be in use."""
    others = [found for found in group if not _is_live(found)]
    return others[-1] if len(group) - len(others) == 1 else None


def _title(found: Found) -> str:
    if found.place.role == "agent":
        return f"sub-agent of {found.place.session_id[:8]}" if found.place.session_id else ""
    return title_of(found) or "(no title)"


def _json(found: Diagnosis, problems: Sequence[Problem], support: Support | None) -> dict[str, Any]:
    return {
        "confinement": None if support is None else msgspec.to_builtins(support),
        "sessions": found.sessions,
        "sound": found.sound,
        "size": found.size,
        "cleanup_days": found.cleanup_days,
        "retention": _retention_json(found),
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
        "empty": [_file_json(each) for each in found.empty],
        "due": [
            {
                **_file_json(each.found),
                "days": round(each.days, 2),
                "archived": each.archived,
            }
            for each in found.due
        ],
        "large": [{**_file_json(each.found), "longest_line": each.longest} for each in found.large],
        "leftovers": [
            {**msgspec.to_builtins(each), "path": text_of(each.path)} for each in found.leftovers
        ],
        "copies": [[_file_json(each) for each in group] for group in found.copies],
        "problems": [problem_json(problem) for problem in problems],
    }


def _retention_json(found: Diagnosis) -> dict[str, Any]:
    now = clock.now()
    unkept = [each for each in found.due if not each.archived]
    moments = ((each.found.size, now + each.days * _DAY) for each in unkept)
    retention = Retention.of(found.cleanup_days, moments, now)
    return retention_json(retention, clock.iso(retention.first))


def _file_json(found: Found) -> dict[str, Any]:
    return {
        "path": text_of(found.path),
        "size": found.size,
        "modified": clock.iso(found.mtime_ns / 1e9),
    }
