"""`steno sync`: brings the index up to date, once or continuously."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, add_options
from steno.cli.output.progress import progress_factory
from steno.cli.output.screen import Screen, print_error
from steno.index.database import IndexLocation, locate_index
from steno.index.sync.updater import SyncReport, reset_index, sync
from steno.index.sync.updater import remove_gone as take_out_gone
from steno.report import humanize
from steno.sanitize.terminal import ColourMode, StyledLine
from steno.store import environment
from steno.store.config import read_config
from steno.store.discovery import unreadable_problems

if TYPE_CHECKING:
    from steno.report.retention import Retention
    from steno.store.archive.archive import ArchiveReport


@click.command("sync", short_help="Bring the index up to date: what search and usage read.")
@add_options(ROOT_OPTIONS)
@click.option("--watch", is_flag=True, help="Stay, and read whatever is written, as it is written.")
@click.option("--rebuild", is_flag=True, help="Forget the index first. Files that are gone stay in.")
@click.option(
    "--forget-gone", is_flag=True, help="Take out what is gone from the disk, or from folders no longer named."
)
@click.option(
    "--steps", metavar="DIR", help="Keep a folder of steps.jsonl and metadata.json up to date instead of the index."
)
@click.option("--listed", is_flag=True, help="With --steps, leave out short sessions, as `ls --listed`.")
@click.option("--redact/--no-redact", default=True, help="With --steps, mask secrets.  [default: redact]")
@add_options(JSON)
@add_options(COLOR)
def command(root: tuple[str, ...], color: ColourMode, *, demo: bool, as_json: bool, **values: Any) -> None:
    """Bring the index up to date with the sessions.

    `search` and `usage` do this themselves; the first time takes a while (16 seconds for a gigabyte
    on two idle cores, up to a minute on busy ones), later only what is new is read. Ctrl-C is safe at any time: the next sync goes on
    where this one stopped. Sessions whose file is deleted stay in the index.

    Further folders, such as copies from other machines, are named in the config file (`index.roots`).

    With --steps DIR, each session is written to DIR/SESSION/steps.jsonl and metadata.json. Only
    changed sessions are written again, and folders of sessions that are gone are removed; anything
    else in DIR is left alone.
    """
    sync_options = _SyncOptions(**values)
    if sync_options.steps is not None:
        _write_steps(sync_options.steps, sync_options, search_roots(root, demo=demo), Screen(color), as_json=as_json)
        return
    if sync_options.listed or not sync_options.redact:
        raise click.UsageError("--listed and --no-redact need --steps DIR")
    home = locate_index(search_roots(root, demo=demo))
    screen = Screen(color)
    if sync_options.rebuild:
        reset_index(home)
    if sync_options.forget_gone:
        number = take_out_gone(home)
        print_error(f"{humanize.count(number, 'file')} taken out of the index")
    _sync_once(home, screen, as_json=as_json)
    if sync_options.watch:
        _watch_and_sync(home, screen, as_json=as_json)


class _SyncOptions(msgspec.Struct):
    watch: bool = False
    rebuild: bool = False
    forget_gone: bool = False
    steps: str | None = None
    listed: bool = False
    redact: bool = True


def _write_steps(
    folder: str, options: _SyncOptions, folders: tuple[str, ...] | None, screen: Screen, *, as_json: bool
) -> None:
    """Bring a folder of steps up to date, and keep it so if that is wanted."""
    from steno.cli.commands.export import watch_steps, write_steps_once
    from steno.report.export.steps_folder import StepsJob
    from steno.sanitize.secret_masker import Masker
    from steno.store.session_lookup import resolve_roots

    if options.rebuild or options.forget_gone:
        raise click.UsageError("--steps cannot be combined with --rebuild or --forget-gone")
    if not folder:
        raise click.UsageError("--steps needs a folder: --steps DIR")
    masker = Masker() if options.redact else None
    job = StepsJob(folder, resolve_roots(folders), masker, listed=options.listed)
    report = write_steps_once(job, screen, as_json=as_json)
    if options.watch:
        watch_steps(job, screen, report, as_json=as_json)
    elif report.failed:
        raise click.exceptions.Exit(1)


def _sync_once(home: IndexLocation, screen: Screen, *, as_json: bool = False, quiet: bool = False) -> None:
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


def _watch_and_sync(home: IndexLocation, screen: Screen, *, as_json: bool) -> None:
    """Keep an index up to date until Ctrl-C."""
    from steno.store.watch.watcher import FileWatcher

    if screen.is_terminal and not as_json:
        screen.print_lines([[("Watching. Ctrl-C ends it.", "dim")]])
    with suppress(KeyboardInterrupt), FileWatcher(home.roots) as watch:
        for _ in watch:
            # Whatever changed, a sync finds it; it opens nothing else.
            _sync_once(home, screen, as_json=as_json, quiet=True)
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
    from steno.report.clock import iso_time
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
        "retention": retention_json(retention, iso_time(retention.first)),
        "problems": [
            {"kind": problem.kind, "path": printable_path(problem.path), "message": problem.message}
            for problem in report.problems
        ],
    }
