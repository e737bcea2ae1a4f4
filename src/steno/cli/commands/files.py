"""`steno files`: lists the files that agents accessed, and shows the versions of a file."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import root_arguments, search_roots
from steno.cli.fresh_index import NO_SYNC, open_fresh_index
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options, complete
from steno.cli.output.screen import Screen, print_error, write_bytes, write_json
from steno.errors import BadRequest, NotFound
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import clock
from steno.report.humanize import MS_PER_SECOND
from steno.report.session_references import printable_path
from steno.sanitize.terminal import ColourMode
from steno.store import environment

if TYPE_CHECKING:
    from steno.index.database import SessionIndex
    from steno.report.file_history.file_versions import History, Version
    from steno.report.file_history.touched_files import TouchedSort


_SORT_CHOICES: Final = ("last", "edits", "reads", "lines", "sessions", "path")
_DISK_VERSION: Final = "disk"
_LAST_NAME: Final = "last"
_MIN_ID_LENGTH: Final = 4
_MAX_FILE_SIZE: Final = 32 << 20
_HELP: Final = """\
List the files that agents changed, and show any version.

Without a name: all files that agents accessed, newest first. With a directory: the files in it.
With a SESSION: its files. With a PATH: every version that agents read or wrote, rebuilt from
sessions and from the backups of Claude Code. Unrecorded content is shown as unknown. A shell
command that names the file leaves a gap in the history until a later version shows its effect.

PATH may be the end of a path, such as src/login.py. VERSION is a number (3), a session and a turn
(7c1f:4, the file after that turn; :4 for the last session), a time (@yesterday), or `first`,
`last` or `disk`.

\b
Examples:
  steno files . --changed                   List changed files in this directory
  steno files --project api --since 7d      List files of a project, last 7 days
  steno files 7c1f                          List files of a session
  steno files src/login.py                  Show the history of a file
  steno files src/login.py --at 7c1f:4      Show the file after a turn
  steno files src/login.py --diff 2 last    Show the changes between two versions
  steno files src/login.py --at 2 --restore -o login.old.py
  steno files --verify                      Check that all versions can be rebuilt
"""


class _FilesOptions(msgspec.Struct):
    name: str | None = None
    at: str | None = None
    diff: tuple[str, str] | None = None
    restore: bool = False
    output: str | None = None
    force: bool = False
    verify: bool = False
    project: str | None = None
    since: str | None = None
    changed: bool = False
    sort: "TouchedSort" = "last"
    limit: int | None = None
    everything: bool = False
    as_json: bool = False
    no_sync: bool = False
    no_pager: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False

    @property
    def root_options(self) -> str:
        """The options that select the same sessions in another command."""
        return root_arguments(self.root, demo=self.demo)


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return completions: sessions, or files if no session matches."""
    from click.shell_completion import CompletionItem

    return complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


@click.command("files", help=_HELP, short_help="List the files that agents changed, and show any version.")
@click.argument("name", metavar="[SESSION|PATH]", required=False, shell_complete=_complete_name)
@click.option("--at", metavar="VERSION", help="Show the file at a version, or the files of a session at a turn")
@click.option("--diff", nargs=2, metavar="A B", help="Show the changes between two versions")
@click.option("--restore", is_flag=True, help="Write the version to a new file  [default version: last]")
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Output file of --restore")
@click.option("--force", is_flag=True, help="Overwrite an existing file; without -o, the file itself")
@click.option("--project", metavar="P", help="Filter by project path; `.` is the current directory")
@click.option("--since", metavar="WHEN", help="Only files accessed since WHEN: 2026-11-07, 7d, 3h")
@click.option("--changed", is_flag=True, help="Only files that were changed")
@click.option("--sort", type=click.Choice(_SORT_CHOICES), default="last", show_default=True, help="Sort order")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0),
    help="Maximum number of rows; 0 = all  [default: 30; all with --json]",
)
@click.option("--all", "everything", is_flag=True, help="Show every access, including commands without effect")
@click.option("--verify", is_flag=True, help="Rebuild every file and report mismatches")
@add_options(NO_SYNC, ROOT_OPTIONS, JSON)
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(color: ColourMode, width: int | None, **values: Any) -> None:
    """List files, or show the versions of a file."""
    command_options = _FilesOptions(**values)
    _check_options(command_options)
    screen = Screen(color, width)
    if command_options.verify:
        _verify_histories(command_options, screen)
        return
    with open_fresh_index(
        command_options.root,
        demo=command_options.demo,
        no_sync=command_options.no_sync,
        while_syncing="results may be incomplete",
    ) as index:
        if command_options.name is None or _is_folder_name(index, command_options.name):
            _list_files(index, command_options, screen)
            return
        session, path = _resolve_name(index, command_options)
        if session:
            _print_session_files(index, session, command_options, screen)
        else:
            _print_file_history(index, path, command_options, screen)


def _check_options(options: _FilesOptions) -> None:
    """Check that no option would be ignored."""
    if options.diff is not None and (options.at or options.restore):
        raise click.UsageError("--diff cannot be combined with --at or --restore")
    if not options.restore and (options.output is not None or options.force):
        raise click.UsageError("-o and --force require --restore")
    if options.name is None and (options.at or options.diff or options.restore):
        raise click.UsageError("--at, --diff and --restore require a file")
    is_about_all_files = options.project or options.since or options.changed or options.verify
    if options.name is not None and is_about_all_files and (options.verify or not os.path.isdir(options.name)):
        raise click.UsageError("--project, --since, --changed and --verify cannot be combined with a file or session")


# All files


def _list_files(index: "SessionIndex", options: _FilesOptions, screen: Screen) -> None:
    from steno.cli.output.file_history_lines import touched_file_lines
    from steno.report.file_history.touched_files import (
        TouchedFilter,
        list_touched_files,
        sort_touched,
        touched_projects,
    )
    from steno.report.usage.usage_query import matches_project

    project_paths = None
    if options.project:
        known_projects = (project.path for project in touched_projects(index.connection))
        project_paths = tuple(each for each in known_projects if matches_project(each, options.project, os.getcwd()))
    since = None
    if options.since:
        since = round(clock.parse_time_range(options.since, environment.now())[0] * MS_PER_SECOND)
    folder = os.path.abspath(options.name) if options.name is not None else ""
    touched_filter = TouchedFilter(
        changed=options.changed, since=since, sort=options.sort, among=project_paths, below=printable_path(folder)
    )
    limit = (30 if not options.as_json else 0) if options.limit is None else options.limit
    touched_files = list_touched_files(index.connection, touched_filter, limit=limit + 1 if limit else None)
    rows = sort_touched(touched_files, options.sort)
    if options.as_json:
        write_json(rows[: limit or None])
    else:
        has_more = bool(limit) and len(rows) > limit
        screen.print_lines(
            touched_file_lines(rows[: limit or None], screen.width, environment.now(), has_more=has_more)
        )
        screen.print_next_steps([f"steno files{options.root_options} PATH"])
    if not rows and touched_filter != TouchedFilter(sort=options.sort):
        raise click.exceptions.Exit(1)


# Name resolution


def _is_folder_name(index: "SessionIndex", name: str) -> bool:
    """Return whether a name is a directory, and not a file that agents accessed."""
    from steno.report.file_history.touched_files import find_paths_by_suffix

    if name == _LAST_NAME or _looks_like_id(name) or not os.path.isdir(name):
        return False
    return not find_paths_by_suffix(index.connection, printable_path(name))


def _resolve_name(index: "SessionIndex", options: _FilesOptions) -> tuple[str, str]:
    """Return the session ID and path for a name; one of them is ""."""
    from steno.report.file_history.touched_files import find_touched_path

    name = options.name or ""
    if name == _LAST_NAME or _looks_like_id(name):
        try:
            return _find_session_id(index, name, options), ""
        except NotFound:
            return "", find_touched_path(index.connection, name, os.getcwd())
    try:
        return "", find_touched_path(index.connection, name, os.getcwd())
    except NotFound as missing:
        try:
            return _find_session_id(index, name, options), ""
        except (NotFound, OSError):
            raise missing from None


def _looks_like_id(name: str) -> bool:
    letters = name.lower().replace("-", "")
    return len(letters) >= _MIN_ID_LENGTH and all(letter in "0123456789abcdef" for letter in letters)


def _find_session_id(index: "SessionIndex", name: str, options: _FilesOptions) -> str:
    from steno.report.session_lookup import session_at
    from steno.store.session_lookup import find

    file = find(name, search_roots(options.root, demo=options.demo))
    row = session_at(index.connection, file.path)
    if row is None:
        raise NotFound(f"{name!r} is not in the index", hint="Add --root DIR with the directory of the file.")
    return row[0]


# One session


def _print_session_files(index: "SessionIndex", session: str, options: _FilesOptions, screen: Screen) -> None:
    from steno.cli.output.file_history_lines import session_file_lines
    from steno.report.file_history.touched_files import files_of_session

    if options.diff or options.restore:
        raise BadRequest(f"{options.name!r} is a session", hint="--diff and --restore require a file.")
    turn = (options.at or "").removeprefix(":")
    if turn and not turn.isdecimal():
        raise BadRequest(f"{options.at!r} is not a turn number", hint="Example: `--at 4`.")
    file_touches = files_of_session(index.connection, session, until=int(turn) if turn else None)
    title, project = index.connection.execute(
        "SELECT title, project FROM sessions WHERE id = ? ORDER BY agent != '' LIMIT 1", (session,)
    ).fetchone()
    if options.as_json:
        write_json({"session": session, "title": title, "project": project, "files": file_touches})
        return
    screen.print_lines(session_file_lines(file_touches, session, title, project, screen.width))
    screen.print_next_steps(
        [f"steno files{options.root_options} PATH", f"steno show{options.root_options} {session[:SHORT_ID_LENGTH]}"]
    )


# One file


def _print_file_history(index: "SessionIndex", path: str, options: _FilesOptions, screen: Screen) -> None:
    from steno.cli.output.file_history_lines import file_history_json, file_history_lines
    from steno.cli.output.screen import print_paged
    from steno.report.file_history.history import history
    from steno.store.session_lookup import open_session

    file_history = history(index.connection, path, open_session)
    if file_history is None:
        raise NotFound(f"no session accessed {path}")
    if options.diff is not None:
        _print_diff(file_history, options.diff, options, screen)
    elif options.restore:
        _restore_version(index, file_history, options, screen)
    elif options.at is not None:
        _print_version(file_history, _find_version(file_history, options.at), options, screen)
    elif options.as_json:
        write_json(file_history_json(file_history))
    else:
        lines = file_history_lines(file_history, screen.width, environment.now(), show_all=options.everything)
        print_paged(screen, lines, use_pager=not options.no_pager)
        files_command = f"steno files{options.root_options} PATH"
        screen.print_next_steps([f"{files_command} --at N", f"{files_command} --diff N last"])


def _find_version(file_history: "History", text: str) -> "Version":
    from steno.report.file_history.file_versions import find_version

    if text == _DISK_VERSION:
        return _version_on_disk(file_history)
    return find_version(file_history, text, environment.now())


def _version_on_disk(file_history: "History") -> "Version":
    from steno.report.file_history.file_versions import Version
    from steno.store.discovery import read_regular_file

    data = read_regular_file(file_history.path, _MAX_FILE_SIZE)
    text = data.decode("utf-8", "replace")
    return Version(name=_DISK_VERSION, verb="read", tool=_DISK_VERSION, known="exact", text=text)


def _print_version(file_history: "History", version: "Version", options: _FilesOptions, screen: Screen) -> None:
    from steno.cli.output.file_history_lines import version_json, version_lines
    from steno.cli.output.screen import print_paged
    from steno.report.file_history.file_versions import version_bytes

    if options.as_json:
        write_json(version_json(file_history, version, with_text=True))
    elif screen.is_terminal or version.text is None:
        print_paged(screen, version_lines(file_history, version, screen.width), use_pager=not options.no_pager)
        if version.text is None:
            raise click.exceptions.Exit(1)
    else:
        # A pipe receives the exact content of the file.
        write_bytes(version_bytes(version))


def _print_diff(file_history: "History", names: tuple[str, str], options: _FilesOptions, screen: Screen) -> None:
    from steno.cli.output.file_history_lines import diff_json, diff_lines, diff_text
    from steno.cli.output.screen import print_paged
    from steno.report.file_history.file_versions import version_bytes

    old_version, new_version = (_find_version(file_history, name) for name in names)
    for version in (old_version, new_version):
        version_bytes(version)
    if options.as_json:
        write_json(diff_json(file_history, old_version, new_version))
    elif screen.is_terminal:
        print_paged(screen, diff_lines(file_history, old_version, new_version), use_pager=not options.no_pager)
    else:
        write_bytes(diff_text(file_history, old_version, new_version))


def _restore_version(index: "SessionIndex", file_history: "History", options: _FilesOptions, screen: Screen) -> None:
    from steno.report.file_history.file_versions import version_number

    known_versions = (
        known_version for known_version in reversed(file_history.versions) if known_version.text is not None
    )
    version = _find_version(file_history, options.at or next((each.name for each in known_versions), _LAST_NAME))
    if version.name == _DISK_VERSION:
        raise BadRequest("the version on disk cannot be restored")
    number = version_number(file_history, version)
    output = options.output or _default_output(file_history, number, options)
    path, size = restore_version(version, output, force=options.force, roots=index.location.roots)
    if version.note:
        print_error(f"version {number} may be inexact: {version.note}")
    if options.as_json:
        write_json({"version": number, "path": path, "bytes": size})
    else:
        screen.print_lines([[f"Wrote version {number} to {path} ({size:,} bytes)"]])


def restore_version(
    version: "Version", output: str, *, force: bool = False, roots: Sequence[str] = ()
) -> tuple[str, int]:
    """Write a version to a file outside of session directories; return the path and size.

    Raises:
        NotFound: parts of the version are unknown.
        BadRequest: the path is not a file name, or the version is not valid text.
        Unwritable: the file exists, or cannot be written.
    """
    from steno.report.file_history.file_versions import version_bytes
    from steno.store.environment import config_dir, home_dir, steno_home
    from steno.store.safe_output import write_output_file

    data = version_bytes(version)
    forbidden_folders = (*roots, config_dir(), steno_home(), os.path.join(home_dir(), ".claude"))
    return write_output_file(output, data, force=force, protected=forbidden_folders), len(data)


def _default_output(file_history: "History", number: int, options: _FilesOptions) -> str:
    """Return the default output path: a new name here, or with `force` the file itself.

    The path comes from the user's argument, never from the recorded path alone.
    """
    typed_path = os.path.normpath(os.path.join(os.getcwd(), options.name or ""))
    if options.force:
        if file_history.path not in (typed_path, os.path.realpath(typed_path)):
            raise BadRequest(
                f"{options.name!r} is {file_history.path}",
                hint="Give the whole path to overwrite the file with --force, or use -o FILE.",
            )
        return typed_path
    stem, extension = os.path.splitext(os.path.basename(typed_path))
    return f"{stem}.v{number}{extension}"


# Verification


def _verify_histories(options: _FilesOptions, screen: Screen) -> None:
    from steno.cli.output.file_history_lines import verification_lines
    from steno.cli.output.progress import progress_factory
    from steno.index.database import locate_index
    from steno.report.file_history.verification import verify_folders

    folders = locate_index(search_roots(options.root, demo=options.demo)).roots
    with progress_factory("Rebuilding files") as plan:
        report = verify_folders(folders, plan)
    if options.as_json:
        write_json(report)
    else:
        screen.print_lines(verification_lines(report, screen.width))
    sys.stdout.flush()
    if report.wrong:
        raise click.exceptions.Exit(1)
