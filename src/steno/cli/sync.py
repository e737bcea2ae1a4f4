"""`steno sync`: the index brought up to date, once or for as long as one likes."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli import words
from steno.cli.fresh import planned
from steno.cli.names import text_of
from steno.cli.options import COLOR, JSON, WHERE, options, roots
from steno.cli.screen import Screen, complain
from steno.index.home import Home, index_of
from steno.index.sync import Report, forget, sync
from steno.index.sync import forget_gone as take_out_gone
from steno.safe.terminal import ColourMode, Line
from steno.store.config import read_config

if TYPE_CHECKING:
    from steno.store.archive.archive import Summary

__all__ = ["command"]

_TROUBLE: Final = frozenset(("denied", "unreadable"))


@click.command("sync", short_help="Bring the index up to date: what search and usage read.")
@options(WHERE)
@click.option("--watch", is_flag=True, help="Stay, and read whatever is written, as it is written.")
@click.option(
    "--rebuild", is_flag=True, help="Forget the index first. Files that are gone stay in."
)
@click.option(
    "--forget-gone",
    is_flag=True,
    help="Take out what is gone from the disk, or from folders no longer named.",
)
@options(JSON)
@options(COLOR)
def command(
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    watch: bool,
    rebuild: bool,
    forget_gone: bool,
    as_json: bool,
) -> None:
    """Bring the index up to date with the sessions.

    `search` and `usage` do this themselves; the first time takes a while (16 seconds for a gigabyte
    on two idle cores, up to a minute on busy ones), later only what is new is read. Ctrl-C is safe at any time: the next sync goes on
    where this one stopped. Sessions whose file is deleted stay in the index.

    Further folders, such as copies from other machines, are named in the config file (`index.roots`).
    """
    home = index_of(roots(root, demo=demo))
    screen = Screen(color)
    if rebuild:
        forget(home)
    if forget_gone:
        number = take_out_gone(home)
        complain(f"{words.count(number, 'file')} taken out of the index")
    _once(home, screen, as_json=as_json)
    if watch:
        _stay(home, screen, as_json=as_json)


def _once(home: Home, screen: Screen, *, as_json: bool, quiet: bool = False) -> None:
    try:
        with planned("Reading") as plan:
            report = sync(home, planned=plan)
    except KeyboardInterrupt:
        complain("stopped; what was read is kept, and the next sync goes on from there")
        raise
    kept = _archive(home)
    for problem in report.problems:
        # A machine without any sessions is fine; a folder that somebody named is not.
        if problem.kind in _TROUBLE or problem.path in home.roots[1:]:
            complain(f"cannot read {problem.path}: {problem.message.lower()}")
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(_json(home, report, kept)) + b"\n")
    elif report.read or report.gone or not quiet:
        screen.lines([_line(report, kept)])


def _archive(home: Home) -> "Summary | None":
    """Keep what is new for good as well, if that is wanted."""
    if not read_config().archive_on:
        return None
    from steno.store.archive.archive import archive_all

    with planned("Archiving") as plan:
        return archive_all(home.roots, patient=True, planned=plan)


def _stay(home: Home, screen: Screen, *, as_json: bool) -> None:
    from steno.store.watch import Watch

    if screen.tty and not as_json:
        screen.lines([[("Watching. Ctrl-C ends it.", "dim")]])
    with suppress(KeyboardInterrupt), Watch(home.roots) as watch:
        for _ in watch:
            # Whatever changed, a sync finds it; it opens nothing else.
            _once(home, screen, as_json=as_json, quiet=True)
            sys.stdout.flush()


def _line(report: Report, kept: "Summary | None") -> Line:
    files = words.count(report.files, "file")
    if not report.read and not report.gone:
        line: Line = [f"{files}, nothing new"]
    else:
        size = words.size(report.size)
        line = [f"{files}, {report.read:,} with news: {size} in {report.seconds:.1f} s"]
    if report.gone:
        line.append((f", {report.gone:,} gone (still in the index)", "yellow"))
    if kept is not None and kept.added:
        line.append((f", {words.size(kept.added)} archived", "dim"))
    return line


def _json(home: Home, report: Report, kept: "Summary | None") -> dict[str, Any]:
    return {
        "folder": text_of(home.folder),
        "roots": [text_of(root) for root in home.roots],
        "files": report.files,
        "read": report.read,
        "bytes": report.size,
        "gone": report.gone,
        "seconds": round(report.seconds, 3),
        "archived": kept.added if kept is not None else None,
        "problems": [
            {"kind": each.kind, "path": text_of(each.path), "message": each.message}
            for each in report.problems
        ],
    }
