"""`steno files`: what agents did to files: to all, in a session, or to one file through time."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.fresh import NO_SYNC, fresh_index
from steno.cli.names import text_of
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, complete, options, roots, where_to_look
from steno.cli.screen import Screen, complain, write_bytes, write_json
from steno.errors import BadRequest, NotFound
from steno.report import clock
from steno.safe.terminal import ColourMode

if TYPE_CHECKING:
    from steno.index.opened import Index
    from steno.report.files.touched import Sort
    from steno.report.files.values import History, Version

__all__ = ["command"]

_SORTS: Final = ("last", "edits", "reads", "lines", "sessions", "path")
_DISK: Final = "disk"
_LAST: Final = "last"
_SHORTEST: Final = 4
_MOST: Final = 32 << 20
_SECOND: Final = 1000
_HELP: Final = """\
Show what agents did to files.

Without a name: the files they touched, newest first; with a folder, those in it. With a SESSION:
its files. With a PATH: the file through time, every version that agents read or wrote, rebuilt
from what the sessions and the client's own backups recorded. What nobody recorded is said to be
unknown; a shell command that names the file is a gap until something later shows what it did.

A PATH may be just its end, as src/login.py. A version is told by its number (3), by a session and
turn (7c1f:4, the file after that turn; :4 is that of the last session), by a time (@yesterday), or
by first, last and disk.

\b
  steno files . --changed                   what was changed in this folder
  steno files --project api --since 7d      what was touched in a project lately
  steno files 7c1f                          what one session touched
  steno files src/login.py                  one file through time
  steno files src/login.py --at 7c1f:4      as it was after that turn
  steno files src/login.py --diff 2 last    what changed in between
  steno files src/login.py --at 2 --restore -o login.old.py
  steno files --verify                      is everything rebuilt as recorded?
"""


class _Asked(msgspec.Struct):
    """What was asked for, beside the name."""

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
    sort: "Sort" = "last"
    limit: int | None = None
    everything: bool = False
    as_json: bool = False
    no_sync: bool = False
    no_pager: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False

    @property
    def where(self) -> str:
        """The options that lead another command to the same sessions."""
        return where_to_look(self.root, demo=self.demo)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer sessions, and where none begins so, files."""
    from click.shell_completion import CompletionItem

    return complete(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


@click.command("files", help=_HELP, short_help="Show what agents did to files, and any version.")
@click.argument("name", metavar="[SESSION|PATH]", required=False, shell_complete=_complete)
@click.option("--at", metavar="VERSION", help="The file at that version; of a session: that turn.")
@click.option("--diff", nargs=2, metavar="A B", help="What changed from one version to another.")
@click.option("--restore", is_flag=True, help="Write that version to a new file (the last one).")
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Where --restore writes.")
@click.option("--force", is_flag=True, help="Write over a file; without -o, over the file itself.")
@click.option("--project", metavar="P", help="Only projects whose path has P in it; `.` is here.")
@click.option("--since", metavar="WHEN", help="Only what was touched since: 2026-11-07, 7d, 3h, …")
@click.option("--changed", is_flag=True, help="Only files that were changed, not only read.")
@click.option(
    "--sort", type=click.Choice(_SORTS), default="last", show_default=True, help="By what."
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(0), help="How many; 0 = all. 30 for people."
)
@click.option("--all", "everything", is_flag=True, help="Every touch by itself, idle commands too.")
@click.option("--verify", is_flag=True, help="Rebuild every file, and count what does not fit.")
@options(NO_SYNC, WHERE, JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(color: ColourMode, width: int | None, **given: Any) -> None:
    """Show what agents did to files."""
    asked = _Asked(**given)
    _refuse(asked)
    screen = Screen(color, width)
    if asked.verify:
        _verify(asked, screen)
        return
    with fresh_index(asked.root, demo=asked.demo, no_sync=asked.no_sync) as index:
        if index.report is None and not asked.no_sync:
            complain("a sync is at work; what it has not finished is not known yet")
        if asked.name is None or _is_folder(index, asked.name):
            _list(index, asked, screen)
            return
        session, path = _meant(index, asked)
        if session:
            _session(index, session, asked, screen)
        else:
            _file(index, path, asked, screen)


def _refuse(asked: _Asked) -> None:
    """Refuse options that would be ignored."""
    if asked.diff is not None and (asked.at or asked.restore):
        raise click.UsageError("--diff goes with neither --at nor --restore")
    if not asked.restore and (asked.output is not None or asked.force):
        raise click.UsageError("-o and --force say where --restore writes")
    if asked.name is None and (asked.at or asked.diff or asked.restore):
        raise click.UsageError("--at, --diff and --restore need a file")
    about_all = asked.project or asked.since or asked.changed or asked.verify
    if asked.name is not None and about_all and (asked.verify or not os.path.isdir(asked.name)):
        raise click.UsageError("--project, --since, --changed and --verify are about all files")


# All files


def _list(index: "Index", asked: _Asked, screen: Screen) -> None:
    from steno.cli.touched import list_lines
    from steno.report.files.touched import Choice, in_order, projects, touched
    from steno.report.usage.wanted import fits

    among = None
    if asked.project:
        known = (each.path for each in projects(index.connection))
        among = tuple(each for each in known if fits(each, asked.project, os.getcwd()))
    since = None
    if asked.since:
        since = round(clock.meant(asked.since, clock.now())[0] * _SECOND)
    below = os.path.abspath(asked.name) if asked.name is not None else ""
    choice = Choice(
        changed=asked.changed, since=since, sort=asked.sort, among=among, below=text_of(below)
    )
    limit = (30 if not asked.as_json else 0) if asked.limit is None else asked.limit
    found = touched(index.connection, choice, limit=limit + 1 if limit else None)
    rows = in_order(found, asked.sort)
    if asked.as_json:
        write_json(rows[: limit or None])
    else:
        more = bool(limit) and len(rows) > limit
        screen.lines(list_lines(rows[: limit or None], screen.width, clock.now(), more=more))
        screen.next_steps([f"steno files{asked.where} PATH"])
    if not rows and choice != Choice(sort=asked.sort):
        raise click.exceptions.Exit(1)


# What is meant


def _is_folder(index: "Index", name: str) -> bool:
    """Say whether a name is that of a folder, and not of a file that agents touched."""
    from steno.report.files.naming import paths_ending

    if name == _LAST or _is_id(name) or not os.path.isdir(name):
        return False
    return not paths_ending(index.connection, text_of(name))


def _meant(index: "Index", asked: _Asked) -> tuple[str, str]:
    """Return the session that a name means, by its id, or else the path."""
    from steno.report.files.naming import path_meant

    name = asked.name or ""
    if name == _LAST or _is_id(name):
        try:
            return _session_of(index, name, asked), ""
        except NotFound:
            return "", path_meant(index.connection, name, os.getcwd())
    try:
        return "", path_meant(index.connection, name, os.getcwd())
    except NotFound as missing:
        try:
            return _session_of(index, name, asked), ""
        except (NotFound, OSError):
            raise missing from None


def _is_id(name: str) -> bool:
    letters = name.lower().replace("-", "")
    return len(letters) >= _SHORTEST and all(each in "0123456789abcdef" for each in letters)


def _session_of(index: "Index", name: str, asked: _Asked) -> str:
    from steno.index.scan import path_to
    from steno.store.library import find

    found = find(name, roots(asked.root, demo=asked.demo))
    row = index.connection.execute(
        "SELECT s.id FROM sessions s JOIN files f ON f.id = s.file WHERE f.path = ?",
        (path_to(found.path),),
    ).fetchone()
    if row is None:
        raise NotFound(
            f"{name!r} is not in this index", hint="--root DIR looks at the folder it lies in"
        )
    return row[0]


# One session


def _session(index: "Index", session: str, asked: _Asked, screen: Screen) -> None:
    from steno.cli.touched import session_lines
    from steno.report.files.session import files_of

    if asked.diff or asked.restore:
        raise BadRequest(f"{asked.name!r} is a session", hint="--diff and --restore need a file")
    turn = (asked.at or "").removeprefix(":")
    if turn and not turn.isdecimal():
        raise BadRequest(f"{asked.at!r} is no turn of a session", hint="--at 4")
    found = files_of(index.connection, session, until=int(turn) if turn else None)
    title, project = index.connection.execute(
        "SELECT title, project FROM sessions WHERE id = ? ORDER BY agent != '' LIMIT 1", (session,)
    ).fetchone()
    if asked.as_json:
        write_json({"session": session, "title": title, "project": project, "files": found})
        return
    screen.lines(session_lines(found, session, title, project, screen.width))
    screen.next_steps([f"steno files{asked.where} PATH", f"steno show{asked.where} {session[:8]}"])


# One file


def _file(index: "Index", path: str, asked: _Asked, screen: Screen) -> None:
    from steno.cli.pager import page
    from steno.cli.timeline import history_json, timeline_lines
    from steno.report.files.history import history
    from steno.store.library import open_session

    found = history(index.connection, path, open_session)
    if found is None:
        raise NotFound(f"nothing is known of {path}")
    if asked.diff is not None:
        _diff(found, asked.diff, asked, screen)
    elif asked.restore:
        _restore(index, found, asked, screen)
    elif asked.at is not None:
        _show(found, _version(found, asked.at), asked, screen)
    elif asked.as_json:
        write_json(history_json(found))
    else:
        lines = timeline_lines(found, screen.width, clock.now(), everything=asked.everything)
        page(screen, lines, wanted=not asked.no_pager)
        again = f"steno files{asked.where} PATH"
        screen.next_steps([f"{again} --at N", f"{again} --diff N last"])


def _version(found: "History", text: str) -> "Version":
    from steno.report.files.moments import version_at

    if text == _DISK:
        return _on_disk(found)
    return version_at(found, text, clock.now())


def _on_disk(found: "History") -> "Version":
    from steno.report.files.values import Version
    from steno.store.plain import read_plain

    data = read_plain(found.path, _MOST)
    text = data.decode("utf-8", "replace")
    return Version(name=_DISK, verb="read", tool=_DISK, known="exact", text=text)


def _show(found: "History", version: "Version", asked: _Asked, screen: Screen) -> None:
    from steno.cli.pager import page
    from steno.cli.timeline import version_json, version_lines
    from steno.report.files.restore import bytes_of

    if asked.as_json:
        write_json(version_json(found, version, whole=True))
    elif screen.tty or version.text is None:
        page(screen, version_lines(found, version, screen.width), wanted=not asked.no_pager)
        if version.text is None:
            raise click.exceptions.Exit(1)
    else:
        # For whoever reads it from a pipe it is the file itself.
        write_bytes(bytes_of(version))


def _diff(found: "History", names: tuple[str, str], asked: _Asked, screen: Screen) -> None:
    from steno.cli.pager import page
    from steno.cli.timeline import diff_json, diff_lines, diff_text
    from steno.report.files.restore import bytes_of

    one, other = (_version(found, name) for name in names)
    for version in (one, other):
        bytes_of(version)
    if asked.as_json:
        write_json(diff_json(found, one, other))
    elif screen.tty:
        page(screen, diff_lines(found, one, other), wanted=not asked.no_pager)
    else:
        write_bytes(diff_text(found, one, other))


def _restore(index: "Index", found: "History", asked: _Asked, screen: Screen) -> None:
    from steno.report.files.moments import number_of
    from steno.report.files.restore import restore

    known = (each for each in reversed(found.versions) if each.text is not None)
    version = _version(found, asked.at or next((each.name for each in known), _LAST))
    if version.name == _DISK:
        raise BadRequest("what is on the disk need not be restored")
    number = number_of(found, version)
    output = asked.output or _output(found, number, asked)
    done = restore(version, output, force=asked.force, roots=index.home.roots)
    if version.note:
        complain(f"version {number} is doubtful: {version.note}")
    if asked.as_json:
        write_json({"version": number, "path": done.path, "bytes": done.size})
    else:
        screen.lines([[f"version {number} is now {done.path} ({done.size:,} bytes)"]])


def _output(found: "History", number: int, asked: _Asked) -> str:
    """Return where to write without being told: a new name here; with --force the file itself.

    What a session calls a file is not taken as a place to write to; only what somebody typed is.
    """
    typed = os.path.normpath(os.path.join(os.getcwd(), asked.name or ""))
    if asked.force:
        if found.path not in (typed, os.path.realpath(typed)):
            raise BadRequest(
                f"{asked.name!r} stands for {found.path}",
                hint="--force writes over a file only where its whole path is named, or -o FILE",
            )
        return typed
    stem, ending = os.path.splitext(os.path.basename(typed))
    return f"{stem}.v{number}{ending}"


# All that can be checked


def _verify(asked: _Asked, screen: Screen) -> None:
    from steno.cli.progress import planned
    from steno.cli.touched import trial_lines
    from steno.index.home import index_of
    from steno.report.files.verify import verify_below

    where = index_of(roots(asked.root, demo=asked.demo)).roots
    with planned("Rebuilding files") as plan:
        trial = verify_below(where, plan)
    if asked.as_json:
        write_json(trial)
    else:
        screen.lines(trial_lines(trial, screen.width))
    sys.stdout.flush()
    if trial.wrong:
        raise click.exceptions.Exit(1)
