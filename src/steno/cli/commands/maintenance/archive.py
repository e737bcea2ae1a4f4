"""`steno archive`: archives sessions; lists, verifies, restores and deletes archived ones."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from steno.cli.command_arguments import program_name, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.progress import ProgressBar
from steno.cli.output.screen import Screen, report_unreadable, write_json
from steno.cli.output.table_layout import Column, layout_columns, wrap_line
from steno.errors import Ambiguous, BadRequest, NotFound, Unreadable
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import clock, humanize
from steno.report.session_references import printable_path, stem_of
from steno.sanitize.terminal import ColourMode, StyledLine, one_line
from steno.store.archive.archive import Archive, ArchiveReport, RestoreResult, SessionGroup, session_groups
from steno.store.archive.catalogue import CatalogueEntry
from steno.store.archive.copies import VerificationFailure
from steno.store.archive.journal import FileGeneration
from steno.store.discovery import ArchivedFile, Problem, unreadable_problems
from steno.store.session_lookup import find, resolve_roots

_NANOSECONDS: Final = 1e9
_MAX_PATH_WIDTH: Final = 2000
_MAX_CANDIDATES: Final = 6


def find_entries(archive: Archive, names: tuple[str, ...], folders: tuple[str, ...]) -> list[CatalogueEntry] | None:
    """Return the archived sessions with some names; None without names."""
    if not names:
        return None
    entries: dict[str, CatalogueEntry] = {}
    for name in names:
        entry = _find_entry(archive, name, folders)
        entries[entry.path] = entry
    return list(entries.values())


def _find_entry(archive: Archive, name: str, folders: tuple[str, ...]) -> CatalogueEntry:
    """Return the archived session for a name; its original directory may no longer exist."""
    matches = archive.find_entries(name)
    if len(matches) == 1 and stem_of(matches[0].path).lower() == name.lower():
        return matches[0]
    try:
        file = find(name, folders)
    except (NotFound, Unreadable):
        if len(matches) == 1:
            return matches[0]
        if matches:
            paths = tuple(entry.path for entry in matches)
            message = f"{name!r} matches {len(matches)} archived sessions"
            hint = f"Use one of: {', '.join(paths[:_MAX_CANDIDATES])}{', …' if len(paths) > _MAX_CANDIDATES else ''}"
            raise Ambiguous(message, candidates=paths, hint=hint) from None
        raise
    return archive.entry(file.path)


def restorable_entries(archive: Archive, to: str | None) -> list[CatalogueEntry]:
    """Return the sessions to restore: all deleted ones, or with `to` all archived ones."""
    return [entry for entry in archive.entries() if to is not None or is_archived_only(entry)]


def session_count_text(number: int) -> str:
    """Return a number of sessions as text."""
    return humanize.count(number, "session")


def archive_summary(archive: Archive) -> str:
    """Return the totals of the archive as text."""
    entries = archive.entries()
    files = humanize.count(sum(entry.files for entry in entries), "file")
    size = humanize.size(sum(entry.total for entry in entries))
    packed = humanize.size(sum(entry.packed for entry in entries))
    return f"Archive: {session_count_text(len(entries))}, {files}, {size}, {packed} compressed"


def archive_table_lines(entries: list[CatalogueEntry], width: int) -> list[StyledLine]:
    """Return a table of the archived sessions."""
    if not entries:
        return []
    generation_counts = [f"{entry.generations:,} generations" if entry.generations > 1 else "" for entry in entries]
    columns = [
        Column("ID", [one_line(stem_of(e.path)[:SHORT_ID_LENGTH], SHORT_ID_LENGTH) for e in entries], "bold"),
        Column("FOLDER", [one_line(os.path.basename(os.path.dirname(e.path)), 200) for e in entries], flexible=True),
        Column("FILES", [f"{e.files:,}" for e in entries], align_right=True),
        Column("SIZE", [humanize.size(e.total) for e in entries], align_right=True),
        Column("PACKED", [humanize.size(e.packed) for e in entries], align_right=True),
        Column("", generation_counts, min_flexible_width=20),
        Column("", ["archived only" if is_archived_only(e) else "" for e in entries], "dim", min_flexible_width=10),
    ]
    heads, cells = layout_columns(columns, width)
    return [heads, *cells]


def is_archived_only(entry: CatalogueEntry) -> bool:
    """Return whether a session exists only in the archive."""
    return not os.path.lexists(entry.path)


def archived_file_lines(archive: Archive, entry: CatalogueEntry) -> Iterator[StyledLine]:
    """Yield the archived files of a session, with all generations."""
    index = archive.journal(entry)
    yield [(one_line(entry.path, _MAX_PATH_WIDTH), "bold")]
    for file in index.valid_generations():
        count = len(index.generations(file.path))
        generation = f"  generation {file.generation} of {count}" if count > 1 else ""
        sizes = f"{humanize.size(file.size)}, {humanize.size(file.packed)} compressed{generation}"
        yield [
            "  ",
            one_line(file.path.removeprefix(os.path.dirname(entry.path) + os.sep), _MAX_PATH_WIDTH),
            "  ",
            (sizes, "dim"),
        ]
    yield [(f"  in {one_line(archive.folder_of(entry), _MAX_PATH_WIDTH)}", "dim")]


def entry_json(archive: Archive, entry: CatalogueEntry, *, with_contents: bool) -> dict[str, Any]:
    """Return an archived session as JSON; `with_contents` adds its files."""
    data: dict[str, Any] = {
        "id": printable_path(stem_of(entry.path)),
        "path": printable_path(entry.path),
        "folder": printable_path(archive.folder_of(entry)),
        "size": entry.size,
        "modified": clock.iso_time(entry.mtime_ns / _NANOSECONDS),
        "files": entry.files,
        "total": entry.total,
        "packed": entry.packed,
        "generations": entry.generations,
        "archived_only": is_archived_only(entry),
    }
    if with_contents:
        data["contents"] = [_archived_file_json(file) for file in archive.journal(entry).valid_generations()]
    return data


def _archived_file_json(file: FileGeneration) -> dict[str, Any]:
    return {
        "path": printable_path(file.path),
        "role": file.role,
        "generation": file.generation,
        "size": file.size,
        "packed": file.packed,
        "copy": file.copy_name,
    }


_MAX_TEXT_LENGTH: Final = 2000
_RESTORE_STATES: Final = {
    "written": ("✓", "green", ""),
    "same": ("·", "dim", "already on disk"),
    "other": ("✗", "red", "not restored: a different file exists"),
    "damaged": ("✗", "red", "not restored: damaged in the archive"),
}


class _ArchiveOptions(msgspec.Struct):
    names: tuple[str, ...] = ()
    everyone: bool = False
    mode: str | None = None
    to: str | None = None
    generation: int | None = None
    force: bool = False
    full: bool = False
    as_json: bool = False


@click.command("archive", short_help="Archive sessions, compressed and byte for byte.")
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@add_options(ROOT_OPTIONS)
@click.option("--list", "mode", flag_value="list", help="List archived sessions")
@click.option("--verify", "mode", flag_value="verify", help="Verify every archived byte")
@click.option("--restore", "mode", flag_value="restore", help="Restore sessions to disk")
@click.option("--forget", "mode", flag_value="forget", help="Delete sessions from the archive")
@click.option("--all", "everyone", is_flag=True, help="Restore all deleted sessions; with --to, all archived sessions")
@click.option("--to", metavar="DIR", type=click.Path(), help="Restore to this directory instead")
@click.option(
    "--generation",
    metavar="N",
    type=click.IntRange(1),
    help="Restore generation N of a session, archived before a rewrite",
)
@click.option("--force", is_flag=True, help="Delete sessions that exist only in the archive")
@click.option("--full", is_flag=True, help="Compare all bytes and replace damaged copies")
@add_options(JSON)
@WIDTH
@add_options(COLOR)
def command(root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any) -> None:
    """Archive sessions and their files, so that Claude Code's cleanup cannot delete them.

    Without SESSION, archives everything in the config directory and in `index.roots`: sessions,
    sub-agents, tool results, file backups, to-do lists, tasks and logs. Only new data is read and
    written. Archived data is kept when a session is rewritten or deleted; `ls` and `show` still find
    it. Archived sessions are found by ID, the first characters of an ID, or their original path.

    Exit codes: 0 success, 1 no such session, damage found or a file not restored, 2 usage error,
    3 cannot read or write.
    """
    command_options = _ArchiveOptions(**values)
    _check_options(command_options)
    folders = resolve_roots(search_roots(root, demo=demo))
    screen = Screen(color, width)
    archive = Archive()
    if command_options.mode == "verify":
        _verify_archived(archive, find_entries(archive, command_options.names, folders), screen, command_options)
    elif command_options.mode == "restore":
        chosen = find_entries(archive, command_options.names, folders)
        _restore_archived(
            archive,
            restorable_entries(archive, command_options.to) if chosen is None else chosen,
            screen,
            command_options,
        )
    elif command_options.mode == "forget":
        _delete_archived(archive, find_entries(archive, command_options.names, folders) or [], screen, command_options)
    elif command_options.mode == "list":
        _list_archived(archive, find_entries(archive, command_options.names, folders), screen, command_options)
    else:
        _archive_sessions(archive, folders, screen, command_options)


def _check_options(options: _ArchiveOptions) -> None:
    if options.mode in ("restore", "forget") and not (options.names or options.everyone):
        alternative = ", or add --all for all deleted sessions" if options.mode == "restore" else ""
        raise click.UsageError(
            f"--{options.mode} needs a session: give an ID, path or title{alternative}; "
            "run `steno archive --list` to list archived sessions"
        )
    if options.everyone and (options.mode != "restore" or options.names or options.generation):
        raise click.UsageError("--all requires --restore, without SESSION and --generation")
    if options.force and options.mode != "forget":
        raise click.UsageError("--force requires --forget")
    if options.mode != "restore":
        for option, value in (("--to", options.to), ("--generation", options.generation)):
            if value is not None:
                raise click.UsageError(f"{option} requires --restore")
    if options.to is not None and not options.to.strip():
        raise click.UsageError("--to is empty")
    if options.full and options.mode is not None:
        raise click.UsageError(f"--full cannot be combined with --{options.mode}")


# Archiving


def _archive_sessions(archive: Archive, folders: tuple[str, ...], screen: Screen, options: _ArchiveOptions) -> None:
    problems: list[Problem] = []
    total, groups_to_archive = _changed_groups(archive, folders, problems, options)
    with ProgressBar(sum(group.size for group in groups_to_archive), "Archiving") as bar:
        archived = [archive.keep(group, full=options.full, on_progress=bar.advance) for group in groups_to_archive]
    if archived:
        archive.compact()
    problems += [problem for session in archived for problem in session.problems]
    summary = ArchiveReport(total, tuple(each for each in archived if each.changes), tuple(problems))
    if options.as_json:
        write_json(_summary_json(summary, archive))
    else:
        screen.print_lines(_summary_lines(summary, archive))
        steps = [f"{program_name()} archive --verify", f"{program_name()} archive --list"]
        screen.print_next_steps(steps)
    _report_unreadable(summary.problems)


def _changed_groups(
    archive: Archive, folders: tuple[str, ...], problems: list[Problem], options: _ArchiveOptions
) -> tuple[int, list[SessionGroup]]:
    """Return the number of selected sessions, and the sessions that may have changed."""
    if not options.names:
        pending = list(archive.pending(session_groups(folders, problems)))
        return len(pending), [group for group, has_changes in pending if has_changes or options.full]
    files = [find(name, folders) for name in options.names]
    for name, file in zip(options.names, files, strict=True):
        if file.place.role == "agent":
            raise NotFound(f"{name} is a sub-agent", hint="Archive its session instead; that includes the sub-agent.")
    on_disk = [each for each in files if not isinstance(each, ArchivedFile)]
    return len(files), list(session_groups(folders, problems, on_disk))


def _summary_lines(summary: ArchiveReport, archive: Archive) -> Iterator[StyledLine]:
    session_count = len(summary.archived)
    if not summary.sessions:
        yield ["No sessions to archive."]
    elif not session_count:
        yield [("✓", "green"), f" No changes: {session_count_text(summary.sessions)} already archived"]
    else:
        files = humanize.count(summary.files, "file")
        sizes = f"{humanize.size(summary.added)}, {humanize.size(summary.packed)} compressed"
        text = f" Archived {session_count:,} of {session_count_text(summary.sessions)}: {files}, {sizes}"
        yield [("✓", "green"), text]
    if summary.rewritten:
        files = humanize.count(summary.rewritten, "file")
        yield [f"  {files} rewritten since the last run; the previous generation is kept."]
    if summary.healed:
        files = humanize.count(summary.healed, "file")
        yield [f"  {files} damaged in the archive; replaced from disk."]
    yield [(f"  {archive_summary(archive)}", "dim")]


def _report_unreadable(problems: tuple[Problem, ...]) -> None:
    if unreadable := unreadable_problems(problems):
        report_unreadable(unreadable, action="archived")
        raise click.exceptions.Exit(3)


def _summary_json(summary: ArchiveReport, archive: Archive) -> dict[str, Any]:
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
                "path": printable_path(session.path),
                "files": [
                    {**msgspec.to_builtins(change), "path": printable_path(change.path)} for change in session.changes
                ],
            }
            for session in summary.archived
        ],
        "problems": [
            {"kind": each.kind, "path": printable_path(each.path), "message": each.message} for each in summary.problems
        ],
        "archive": {
            "folder": printable_path(archive.folder),
            "sessions": len(entries),
            "files": sum(entry.files for entry in entries),
            "size": sum(entry.total for entry in entries),
            "packed": sum(entry.packed for entry in entries),
        },
    }


# Verifying


def _verify_archived(
    archive: Archive, entries: list[CatalogueEntry] | None, screen: Screen, options: _ArchiveOptions
) -> None:
    entries_to_print = archive.entries() if entries is None else entries
    size = sum(entry.total for entry in entries_to_print)
    with ProgressBar(size, "Verifying") as bar:
        failures = list(archive.verify(entries, bar.advance))
    if options.as_json:
        summary = {"sessions": len(entries_to_print), "size": size, "sound": not failures}
        write_json({**summary, "failures": [_failure_json(failure) for failure in failures]})
    else:
        screen.print_lines(
            [("✗ ", "red"), one_line(f"{each.path or each.copy}: {each.message}", _MAX_TEXT_LENGTH)]
            for each in failures
        )
        summary = f"{session_count_text(len(entries_to_print))}, {humanize.size(size)}"
        if failures:
            screen.print_lines([[f"{humanize.count(len(failures), 'failure')} in {summary}"]])
            screen.print_lines(_hint_lines(failures, screen.width))
        else:
            screen.print_lines([[("✓", "green"), f" Verified {summary}"]])
    if failures:
        raise click.exceptions.Exit(1)


def _hint_lines(failures: list[VerificationFailure], width: int) -> Iterator[StyledLine]:
    """Yield the next steps, one for each kind of failure."""
    hints = [failure.hint for failure in failures if failure.hint]
    for hint, number in Counter(hints).items():
        summary = f"{number:,} of these: {hint}" if number < len(failures) else hint
        yield from wrap_line([f"{summary}."], width)


def _failure_json(failure: VerificationFailure) -> dict[str, Any]:
    return {
        "path": printable_path(failure.path),
        "copy": printable_path(failure.copy),
        "message": printable_path(failure.message),
        "hint": failure.hint,
    }


# Restoring


def _restore_archived(
    archive: Archive, entries: list[CatalogueEntry], screen: Screen, options: _ArchiveOptions
) -> None:
    results: list[RestoreResult] = []
    for entry in entries:
        results += archive.restore(entry, options.to, options.generation or 0)
    if options.as_json:
        write_json([{**msgspec.to_builtins(result), "path": printable_path(result.path)} for result in results])
    else:
        screen.print_lines(_restored_line(each) for each in results)
        if not results:
            screen.print_lines([["Nothing to restore: all archived sessions are on disk."]])
    if any(each.state in ("other", "damaged") for each in results):
        raise click.exceptions.Exit(1)


def _restored_line(result: RestoreResult) -> StyledLine:
    mark, style, note = _RESTORE_STATES[result.state]
    summary = note or humanize.size(result.size)
    summary = one_line(f"{summary}: {result.reason}", _MAX_TEXT_LENGTH) if result.reason else summary
    return [(mark, style), f" {one_line(result.path, _MAX_TEXT_LENGTH)}  ", (summary, "dim")]


def _delete_archived(archive: Archive, entries: list[CatalogueEntry], screen: Screen, options: _ArchiveOptions) -> None:
    archived_only = [entry for entry in entries if is_archived_only(entry)]
    if archived_only and not options.force:
        raise BadRequest(f"{archived_only[0].path} exists only in the archive", hint="Add --force to delete it.")
    for entry in entries:
        archive.forget(entry)
    if options.as_json:
        write_json([entry_json(archive, entry, with_contents=False) for entry in entries])
    else:
        screen.print_lines(
            [[f"Deleted from the archive: {one_line(entry.path, _MAX_TEXT_LENGTH)}"] for entry in entries]
        )


# Listing


def _list_archived(
    archive: Archive, entries: list[CatalogueEntry] | None, screen: Screen, options: _ArchiveOptions
) -> None:
    entries_to_print = archive.entries() if entries is None else entries
    if options.as_json:
        with_contents = entries is not None
        write_json([entry_json(archive, entry, with_contents=with_contents) for entry in entries_to_print])
    elif entries is None:
        screen.print_lines(archive_table_lines(entries_to_print, screen.width))
        screen.print_lines(
            [[], [(archive_summary(archive), "dim")]] if entries_to_print else [[archive_summary(archive)]]
        )
    else:
        for entry in entries_to_print:
            screen.print_lines(archived_file_lines(archive, entry))
