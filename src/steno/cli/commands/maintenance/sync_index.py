"""Syncs the index and prints the result; imports no click, which takes as long as a sync without changes."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from steno.cli.command_arguments import search_roots
from steno.cli.output.progress import progress_factory
from steno.cli.output.screen import Screen, print_error
from steno.index.database import IndexLocation, locate_index
from steno.index.sync.updater import SyncReport, sync
from steno.report import clock, humanize
from steno.sanitize.terminal import StyledLine
from steno.store import environment
from steno.store.config import read_config
from steno.store.discovered import unreadable_problems

if TYPE_CHECKING:
    from steno.report.retention import Retention
    from steno.store.archive.archive import ArchiveReport


def sync_roots(folders: tuple[str, ...]) -> None:
    """Bring the index of some folders up to date, or that of the client's own for none."""
    sync_once(locate_index(search_roots(folders, demo=False)), Screen())


def sync_once(home: IndexLocation, screen: Screen, *, as_json: bool = False, quiet: bool = False) -> None:
    """Bring an index up to date and say what came of it; if `quiet`, only when there was news."""
    try:
        with progress_factory("Reading") as plan:
            report = sync(home, start_progress=plan)
    except KeyboardInterrupt:
        print_error("stopped; what was read is kept, and the next sync goes on from there")
        raise
    archive_report = _archive_changes(home)
    unreadable = unreadable_problems(report.problems)
    for problem in report.problems:
        # A machine without any sessions is fine; a folder that somebody named is not.
        if problem in unreadable or problem.path in home.roots[1:]:
            print_error(f"cannot read {problem.path}: {problem.message.lower()}")
    if quiet and not (as_json or report.read or report.gone):
        return
    retention = _read_retention(home)
    if as_json:
        import msgspec

        data = _sync_report_json(home, report, archive_report, retention)
        sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
    else:
        screen.print_lines([_sync_summary_line(report, archive_report)])
        if not quiet:
            _warn_of_cleanup(retention)


def _read_retention(home: IndexLocation) -> "Retention":
    """Look at what the client's cleanup is about to take, with what the index knows."""
    from steno.index.database import open_for_reading
    from steno.report.retention import Retention, retention_from_index

    connection = open_for_reading(home.folder)
    if connection is None:
        return Retention()
    try:
        return retention_from_index(connection, home.roots, environment.now())
    finally:
        connection.close()


def _warn_of_cleanup(retention: "Retention") -> None:
    from steno.report.retention import retention_warning

    if warning := retention_warning(retention, environment.now()):
        print_error(warning, "`steno archive` keeps them for good; `steno doctor` says which")


def _archive_changes(home: IndexLocation) -> "ArchiveReport | None":
    """Keep what is new for good as well, if that is wanted."""
    if not read_config().archive_on:
        return None
    from steno.store.archive.archive import archive_all

    with progress_factory("Archiving") as plan:
        return archive_all(home.roots, defer_active=True, start_progress=plan)


def watch_and_sync(home: IndexLocation, screen: Screen, *, as_json: bool) -> None:
    """Keep an index up to date until Ctrl-C."""
    from steno.store.watch.watcher import FileWatcher

    if screen.is_terminal and not as_json:
        screen.print_lines([[("Watching. Ctrl-C ends it.", "dim")]])
    with suppress(KeyboardInterrupt), FileWatcher(home.roots) as watch:
        for _ in watch:
            # Whatever changed, a sync finds it; it opens nothing else.
            sync_once(home, screen, as_json=as_json, quiet=True)
            sys.stdout.flush()


def _sync_summary_line(report: SyncReport, archive_report: "ArchiveReport | None") -> StyledLine:
    files = humanize.count(report.files, "file")
    if not report.read and not report.gone:
        line: StyledLine = [f"{files}, nothing new"]
    else:
        size = humanize.size(report.size)
        line = [f"{files}, {report.read:,} with news: {size} in {report.seconds:.1f} s"]
    if report.gone:
        line.append((f", {report.gone:,} gone (still in the index)", "yellow"))
    if archive_report is not None and archive_report.added:
        line.append((f", {humanize.size(archive_report.added)} archived", "dim"))
    return line


def _sync_report_json(
    home: IndexLocation, report: SyncReport, archive_report: "ArchiveReport | None", retention: "Retention"
) -> dict[str, Any]:
    from steno.report.retention import retention_json
    from steno.report.session_references import printable_path

    return {
        "folder": printable_path(home.folder),
        "roots": [printable_path(root) for root in home.roots],
        "files": report.files,
        "read": report.read,
        "bytes": report.size,
        "gone": report.gone,
        "seconds": round(report.seconds, 3),
        "archived": archive_report.added if archive_report is not None else None,
        "retention": retention_json(retention, clock.iso_time(retention.first)),
        "problems": [
            {"kind": problem.kind, "path": printable_path(problem.path), "message": problem.message}
            for problem in report.problems
        ],
    }
