"""What `steno sync` does; without click, which costs as much as a sync that only looks."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from steno.cli.progress import planned
from steno.cli.screen import Screen, complain
from steno.cli.where import roots
from steno.index.home import Home, index_of
from steno.index.sync import Report, sync
from steno.report import clock, words
from steno.safe.terminal import Line
from steno.store.config import read_config

if TYPE_CHECKING:
    from steno.report.retention import Retention
    from steno.store.archive.archive import Summary

__all__ = ["stay", "sync_folders", "sync_once"]

_TROUBLE: Final = frozenset(("denied", "unreadable"))


def sync_folders(folders: tuple[str, ...]) -> None:
    """Bring the index of some folders up to date, or that of the client's own for none."""
    sync_once(index_of(roots(folders, demo=False)), Screen())


def sync_once(home: Home, screen: Screen, *, as_json: bool = False, quiet: bool = False) -> None:
    """Bring an index up to date and say what came of it; if `quiet`, only when there was news."""
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
    if quiet and not (as_json or report.read or report.gone):
        return
    retention = _retention(home)
    if as_json:
        import msgspec

        told = _json(home, report, kept, retention)
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    else:
        screen.lines([_line(report, kept)])
        if not quiet:
            _warn(retention)


def _retention(home: Home) -> "Retention":
    """Look at what the client's cleanup is about to take, with what the index knows."""
    from steno.index.database import open_to_read
    from steno.report.retention import Retention, retention_in

    connection = open_to_read(home.folder)
    if connection is None:
        return Retention()
    try:
        return retention_in(connection, home.roots, clock.now())
    finally:
        connection.close()


def _warn(retention: "Retention") -> None:
    from steno.report.retention import retention_words

    if said := retention_words(retention, clock.now()):
        complain(said, "`steno archive` keeps them for good; `steno doctor` says which")


def _archive(home: Home) -> "Summary | None":
    """Keep what is new for good as well, if that is wanted."""
    if not read_config().archive_on:
        return None
    from steno.store.archive.archive import archive_all

    with planned("Archiving") as plan:
        return archive_all(home.roots, patient=True, planned=plan)


def stay(home: Home, screen: Screen, *, as_json: bool) -> None:
    """Keep an index up to date until Ctrl-C."""
    from steno.store.watch import Watch

    if screen.tty and not as_json:
        screen.lines([[("Watching. Ctrl-C ends it.", "dim")]])
    with suppress(KeyboardInterrupt), Watch(home.roots) as watch:
        for _ in watch:
            # Whatever changed, a sync finds it; it opens nothing else.
            sync_once(home, screen, as_json=as_json, quiet=True)
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


def _json(
    home: Home, report: Report, kept: "Summary | None", retention: "Retention"
) -> dict[str, Any]:
    from steno.cli.names import text_of
    from steno.report.retention import retention_json

    return {
        "folder": text_of(home.folder),
        "roots": [text_of(root) for root in home.roots],
        "files": report.files,
        "read": report.read,
        "bytes": report.size,
        "gone": report.gone,
        "seconds": round(report.seconds, 3),
        "archived": kept.added if kept is not None else None,
        "retention": retention_json(retention, clock.iso(retention.first)),
        "problems": [
            {"kind": each.kind, "path": text_of(each.path), "message": each.message}
            for each in report.problems
        ],
    }
