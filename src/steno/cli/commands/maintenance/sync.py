"""`steno sync`: updates the index, once or continuously."""

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


@click.command("sync", short_help="Update the index that search and usage read.")
@add_options(ROOT_OPTIONS)
@click.option("--watch", is_flag=True, help="Keep running and index changes")
@click.option("--rebuild", is_flag=True, help="Rebuild the index; deleted files stay in it")
@click.option(
    "--forget-gone", is_flag=True, help="Remove deleted files, and files outside the current roots, from the index"
)
@click.option("--steps", metavar="DIR", help="Write steps to this directory instead of updating the index")
@click.option("--listed", is_flag=True, help="With --steps: omit short sessions, as `steno ls --listed` does")
@click.option("--redact/--no-redact", default=True, help="With --steps: mask secrets  [default: redact]")
@add_options(JSON)
@add_options(COLOR)
def command(root: tuple[str, ...], color: ColourMode, *, demo: bool, as_json: bool, **values: Any) -> None:
    """Update the index that search and usage read.

    Commands that use the index update it themselves. The first run takes a while (16 seconds per
    gigabyte on two idle cores, up to a minute on busy ones); later runs read only changes. Ctrl-C is
    safe: the next run continues. Deleted sessions stay in the index.

    Additional directories, such as copies from other machines, are set in the config file
    (`index.roots`).

    --steps DIR writes each session to DIR/SESSION/steps.jsonl and metadata.json. Only changed
    sessions are written, directories of deleted sessions are removed, and other files in DIR are
    kept.
    """
    sync_options = _SyncOptions(**values)
    if sync_options.steps is not None:
        _write_steps(sync_options.steps, sync_options, search_roots(root, demo=demo), Screen(color), as_json=as_json)
        return
    if sync_options.listed or not sync_options.redact:
        raise click.UsageError("--listed and --no-redact require --steps DIR")
    home = locate_index(search_roots(root, demo=demo))
    screen = Screen(color)
    if sync_options.rebuild:
        reset_index(home)
    if sync_options.forget_gone:
        number = take_out_gone(home)
        print_error(f"removed {humanize.count(number, 'file')} from the index")
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
    """Update a steps directory, and with --watch keep it up to date."""
    from steno.cli.commands.export import watch_steps, write_steps_once
    from steno.report.export.steps_folder import StepsJob
    from steno.sanitize.secret_masker import Masker
    from steno.store.session_lookup import resolve_roots

    if options.rebuild or options.forget_gone:
        raise click.UsageError("--steps cannot be combined with --rebuild or --forget-gone")
    if not folder:
        raise click.UsageError("--steps needs a directory: --steps DIR")
    masker = Masker() if options.redact else None
    job = StepsJob(folder, resolve_roots(folders), masker, listed=options.listed)
    report = write_steps_once(job, screen, as_json=as_json)
    if options.watch:
        watch_steps(job, screen, report, as_json=as_json)
    elif report.failed:
        raise click.exceptions.Exit(1)


def _sync_once(home: IndexLocation, screen: Screen, *, as_json: bool = False, quiet: bool = False) -> None:
    """Update the index and print a summary; if `quiet`, only if something changed."""
    try:
        with progress_factory("Reading") as plan:
            report = sync(home, start_progress=plan)
    except KeyboardInterrupt:
        print_error("stopped; the next sync continues from here")
        raise
    archive_report = _archive_changes(home)
    unreadable = unreadable_problems(report.problems)
    for problem in report.problems:
        # Without any sessions the default root is missing, which is fine; configured roots must exist.
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
    """Return the sessions that Claude Code's cleanup is about to delete, according to the index."""
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
        print_error(warning, "Run `steno archive` to keep them, or `steno doctor` to list them.")


def _archive_changes(home: IndexLocation) -> "ArchiveReport | None":
    """Archive new sessions if the config enables it."""
    if not read_config().archive_on:
        return None
    from steno.store.archive.archive import archive_all

    with progress_factory("Archiving") as plan:
        return archive_all(home.roots, defer_active=True, start_progress=plan)


def _watch_and_sync(home: IndexLocation, screen: Screen, *, as_json: bool) -> None:
    """Keep an index up to date until Ctrl-C."""
    from steno.store.watch.watcher import FileWatcher

    if screen.is_terminal and not as_json:
        screen.print_lines([[("Watching. Press Ctrl-C to stop.", "dim")]])
    with suppress(KeyboardInterrupt), FileWatcher(home.roots) as watch:
        for _ in watch:
            # A sync finds the changed files itself and opens only those.
            _sync_once(home, screen, as_json=as_json, quiet=True)
            sys.stdout.flush()


def _sync_summary_line(report: SyncReport, archive_report: "ArchiveReport | None") -> StyledLine:
    files = humanize.count(report.files, "file")
    if not report.read and not report.gone:
        line: StyledLine = [f"No changes in {files}"]
    else:
        size = humanize.size(report.size)
        indexed = f"Indexed {humanize.count(report.read, 'changed file')} of {report.files:,}"
        line = [f"{indexed}: {size} in {report.seconds:.1f} s"]
    if report.gone:
        line.append((f", {report.gone:,} deleted (still in the index)", "yellow"))
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
