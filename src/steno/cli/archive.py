"""`steno archive`: sessions kept for good; what was kept listed, proven and put back."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from steno.cli.fit import wrapped
from steno.cli.names import text_of
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, program, roots
from steno.cli.progress import Progress
from steno.cli.screen import Screen, complain, write_json
from steno.cli.shelf import (
    entry_json,
    files_of,
    is_gone,
    named_entries,
    restorable,
    sessions_told,
    table,
    total_told,
)
from steno.errors import BadRequest, NotFound
from steno.report import words
from steno.safe.terminal import ColourMode, Line, one_line
from steno.store.archive.archive import Archive, Summary
from steno.store.archive.catalogue import Entry
from steno.store.archive.gather import Group, groups
from steno.store.archive.opened import Archived
from steno.store.archive.restore import Restored
from steno.store.archive.verify import Failure
from steno.store.found import Problem
from steno.store.library import find, roots_of

__all__ = ["command"]

_LONG: Final = 2000
_STATES: Final = {
    "written": ("✓", "green", ""),
    "same": ("·", "dim", "is there already"),
    "other": ("✗", "red", "is there with other bytes; it was left alone"),
    "damaged": ("✗", "red", "is damaged in the archive; it was not written"),
}


class _Asked(msgspec.Struct):
    """What was asked for."""

    names: tuple[str, ...] = ()
    everyone: bool = False
    mode: str | None = None
    to: str | None = None
    generation: int | None = None
    force: bool = False
    full: bool = False
    as_json: bool = False


@click.command("archive", short_help="Keep sessions for good: compressed, byte for byte.")
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@options(WHERE)
@click.option("--list", "mode", flag_value="list", help="Say what is kept.")
@click.option("--verify", "mode", flag_value="verify", help="Prove every byte that is kept.")
@click.option("--restore", "mode", flag_value="restore", help="Put sessions back on the disk.")
@click.option("--forget", "mode", flag_value="forget", help="Throw away what was kept of sessions.")
@click.option(
    "--all", "everyone", is_flag=True, help="Restore all that is gone; with --to, all that is kept."
)
@click.option("--to", metavar="DIR", type=click.Path(), help="Restore below this folder instead.")
@click.option(
    "--generation",
    metavar="N",
    type=click.IntRange(1),
    help="Restore the session as it was before it was rewritten.",
)
@click.option("--force", is_flag=True, help="Forget even what is nowhere else.")
@click.option("--full", is_flag=True, help="Compare from end to end; mend damaged copies.")
@options(JSON)
@WIDTH
@options(COLOR)
def command(
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Keep a copy of sessions and all that goes with them, out of reach of the client's cleanup.

    Without a name, everything below the roots is kept: sessions, sub-agents, tool results, file
    backups, to-dos, tasks, logs. Only what is new since the last time is read and written. What
    was kept stays, also when the session is rewritten or deleted; `ls` and `show` still find it.
    What was kept is found by its id, the first letters of one, or its path, wherever it lay.

    Exit codes: 0 fine; 1 there is no such session, --verify found damage, or --restore left a file
    alone; 2 wrong usage; 3 something cannot be read or written.
    """
    wanted = _Asked(**asked)
    _refuse_contradictions(wanted)
    where = roots_of(roots(root, demo=demo))
    screen = Screen(color, width)
    archive = Archive()
    if wanted.mode == "verify":
        _verify(archive, named_entries(archive, wanted.names, where), screen, wanted)
    elif wanted.mode == "restore":
        chosen = named_entries(archive, wanted.names, where)
        _restore(
            archive, restorable(archive, wanted.to) if chosen is None else chosen, screen, wanted
        )
    elif wanted.mode == "forget":
        _forget(archive, named_entries(archive, wanted.names, where) or [], screen, wanted)
    elif wanted.mode == "list":
        _list(archive, named_entries(archive, wanted.names, where), screen, wanted)
    else:
        _keep(archive, where, screen, wanted)


def _refuse_contradictions(wanted: _Asked) -> None:
    if wanted.mode in ("restore", "forget") and not (wanted.names or wanted.everyone):
        more = ", or --all for all that are gone" if wanted.mode == "restore" else ""
        raise click.UsageError(
            f"--{wanted.mode} needs to know which: name sessions by id, path or title{more}; "
            "`steno archive --list` says what is kept"
        )
    if wanted.everyone and (wanted.mode != "restore" or wanted.names or wanted.generation):
        raise click.UsageError("--all goes with --restore, without names and without --generation")
    if wanted.force and wanted.mode != "forget":
        raise click.UsageError("--force goes with --forget")
    if wanted.mode != "restore":
        for option, given in (("--to", wanted.to), ("--generation", wanted.generation)):
            if given is not None:
                raise click.UsageError(f"{option} goes with --restore")
    if wanted.to is not None and not wanted.to.strip():
        raise click.UsageError("--to names nothing")
    if wanted.full and wanted.mode is not None:
        raise click.UsageError(f"--full and --{wanted.mode} exclude each other")


# Keeping


def _keep(archive: Archive, where: tuple[str, ...], screen: Screen, wanted: _Asked) -> None:
    problems: list[Problem] = []
    total, news = _groups(archive, where, problems, wanted)
    with Progress(sum(group.size for group in news), "Archiving") as bar:
        kept = [archive.keep(group, full=wanted.full, done=bar.add) for group in news]
    if kept:
        archive.tidy()
    problems += [problem for each in kept for problem in each.problems]
    summary = Summary(total, tuple(each for each in kept if each.changes), tuple(problems))
    if wanted.as_json:
        write_json(_summary_json(summary, archive))
    else:
        screen.lines(_summary_lines(summary, archive))
        steps = [f"{program()} archive --verify", f"{program()} archive --list"]
        screen.next_steps(steps)
    _complain_of(summary.problems)


def _groups(
    archive: Archive, where: tuple[str, ...], problems: list[Problem], wanted: _Asked
) -> tuple[int, list[Group]]:
    """Return how many sessions were asked about, and those that may have news."""
    if not wanted.names:
        pending = list(archive.pending(groups(where, problems)))
        return len(pending), [group for group, news in pending if news or wanted.full]
    found = [find(name, where) for name in wanted.names]
    for name, each in zip(wanted.names, found, strict=True):
        if each.place.role == "agent":
            raise NotFound(f"{name} is a sub-agent", hint="it is kept with its session; name that")
    there = [each for each in found if not isinstance(each, Archived)]
    return len(found), list(groups(where, problems, there))


def _summary_lines(summary: Summary, archive: Archive) -> Iterator[Line]:
    new = len(summary.kept)
    if not summary.sessions:
        yield ["There is no session to keep."]
    elif not new:
        yield [("✓", "green"), f" Nothing new: {sessions_told(summary.sessions)} kept already."]
    else:
        files = words.count(summary.files, "file")
        sizes = f"{words.size(summary.added)} in {words.size(summary.packed)}"
        news = f" News of {new:,} of {sessions_told(summary.sessions)} kept: {files}, {sizes}."
        yield [("✓", "green"), news]
    if summary.rewritten:
        files = words.count(summary.rewritten, "file")
        yield [f"  {files} had been rewritten; what was kept before stays beside it."]
    if summary.healed:
        files = words.count(summary.healed, "file")
        yield [f"  {files} had been damaged in the archive; kept anew from the disk."]
    yield [(f"  {total_told(archive)}", "dim")]


def _complain_of(problems: tuple[Problem, ...]) -> None:
    told = [each for each in problems if each.kind in ("denied", "unreadable")]
    if told:
        paths = words.count(len(told), "path")
        complain(f"{paths} could not be read and kept, such as {told[0].path}")
        raise click.exceptions.Exit(3)


def _summary_json(summary: Summary, archive: Archive) -> dict[str, Any]:
    entries = archive.entries()
    return {
        "sessions": summary.sessions,
        "files": summary.files,
        "added": summary.added,
        "packed": summary.packed,
        "rewritten": summary.rewritten,
        "healed": summary.healed,
        "kept": [
            {
                "path": text_of(each.path),
                "files": [
                    {**msgspec.to_builtins(change), "path": text_of(change.path)}
                    for change in each.changes
                ],
            }
            for each in summary.kept
        ],
        "problems": [
            {"kind": each.kind, "path": text_of(each.path), "message": each.message}
            for each in summary.problems
        ],
        "archive": {
            "folder": text_of(archive.folder),
            "sessions": len(entries),
            "files": sum(entry.files for entry in entries),
            "size": sum(entry.total for entry in entries),
            "packed": sum(entry.packed for entry in entries),
        },
    }


# Proving


def _verify(archive: Archive, entries: list[Entry] | None, screen: Screen, wanted: _Asked) -> None:
    listed = archive.entries() if entries is None else entries
    size = sum(entry.total for entry in listed)
    with Progress(size, "Verifying") as bar:
        failures = list(archive.verify(entries, bar.add))
    if wanted.as_json:
        about = {"sessions": len(listed), "size": size, "sound": not failures}
        write_json({**about, "failures": [_failure_json(each) for each in failures]})
    else:
        screen.lines(_failure_line(each) for each in failures)
        about = f"{sessions_told(len(listed))}, {words.size(size)}"
        if failures:
            screen.lines([[f"{words.count(len(failures), 'failure')} in {about}."]])
            screen.lines(_advice(failures, screen.width))
        else:
            screen.lines([[("✓", "green"), f" Every byte is what was kept: {about}."]])
    if failures:
        raise click.exceptions.Exit(1)


def _failure_line(failure: Failure) -> Line:
    return [("✗ ", "red"), one_line(f"{failure.path or failure.copy}: {failure.message}", _LONG)]


def _advice(failures: list[Failure], width: int) -> Iterator[Line]:
    """Yield what can be done, once for each kind of failure."""
    hints = [each.hint for each in failures if each.hint]
    for hint, number in Counter(hints).items():
        about = f"{number:,} of them: {hint}" if number < len(failures) else hint
        yield from wrapped([f"{about}."], width)


def _failure_json(failure: Failure) -> dict[str, Any]:
    return {
        "path": text_of(failure.path),
        "copy": text_of(failure.copy),
        "message": text_of(failure.message),
        "hint": failure.hint,
    }


# Putting back


def _restore(archive: Archive, entries: list[Entry], screen: Screen, wanted: _Asked) -> None:
    done: list[Restored] = []
    for entry in entries:
        done += archive.restore(entry, wanted.to, wanted.generation or 0)
    if wanted.as_json:
        write_json([{**msgspec.to_builtins(each), "path": text_of(each.path)} for each in done])
    else:
        screen.lines(_restored_line(each) for each in done)
        if not done:
            screen.lines([["Nothing to restore: all that is kept is on the disk."]])
    if any(each.state in ("other", "damaged") for each in done):
        raise click.exceptions.Exit(1)


def _restored_line(each: Restored) -> Line:
    mark, style, said = _STATES[each.state]
    about = said or words.size(each.size)
    about = one_line(f"{about}: {each.reason}", _LONG) if each.reason else about
    return [(mark, style), f" {one_line(each.path, _LONG)}  ", (about, "dim")]


def _forget(archive: Archive, entries: list[Entry], screen: Screen, wanted: _Asked) -> None:
    only = [entry for entry in entries if is_gone(entry)]
    if only and not wanted.force:
        raise BadRequest(
            f"{only[0].path} is nowhere else any more", hint="--force throws it away even so"
        )
    for entry in entries:
        archive.forget(entry)
    if wanted.as_json:
        write_json([entry_json(archive, entry, inside=False) for entry in entries])
    else:
        screen.lines([[f"Forgotten: {one_line(entry.path, _LONG)}"] for entry in entries])


# Listing


def _list(archive: Archive, entries: list[Entry] | None, screen: Screen, wanted: _Asked) -> None:
    listed = archive.entries() if entries is None else entries
    if wanted.as_json:
        inside = entries is not None
        write_json([entry_json(archive, entry, inside=inside) for entry in listed])
    elif entries is None:
        screen.lines(table(listed, screen.width))
        screen.lines([[], [(total_told(archive), "dim")]] if listed else [[total_told(archive)]])
    else:
        for entry in listed:
            screen.lines(files_of(archive, entry))
