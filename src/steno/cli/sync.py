"""`steno sync`: the index brought up to date, once or for as long as one likes."""

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from steno.cli import words
from steno.cli.fresh import planned
from steno.cli.options import COLOR, JSON, WHERE, options, roots
from steno.cli.screen import Screen, complain, write_json
from steno.index.home import Home, index_of
from steno.index.sync import Report, forget, sync
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
@options(JSON)
@options(COLOR)
def command(
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    watch: bool,
    rebuild: bool,
    as_json: bool,
) -> None:
    """Bring the index up to date with the sessions.

    `search` and `usage` do this themselves; the first time takes a while (about 10 seconds for a
    gigabyte), later only what is new is read. Ctrl-C is safe at any time: the next sync goes on
    where this one stopped. Sessions whose file is deleted stay in the index.

    Further folders, such as copies from other machines, are named in the config file (`index.roots`).
    """
    home = index_of(roots(root, demo=demo))
    screen = Screen(color)
    if rebuild:
        forget(home)
    _once(home, screen, as_json=as_json)
    if watch:
        _stay(home, screen, as_json=as_json)


def _once(home: Home, screen: Screen, *, as_json: bool, quiet: bool = False) -> None:
    with planned("Reading") as plan:
        report = sync(home, planned=plan)
    kept = _archive(home)
    for problem in report.problems:
        if problem.kind in _TROUBLE:
            complain(f"cannot read {problem.path}: {problem.message}")
    if as_json:
        write_json(_json(home, report, kept))
    elif report.read or report.gone or not quiet:
        screen.lines([_line(report, kept)])


def _archive(home: Home) -> "Summary | None":
    """Keep what is new for good as well, if that is wanted."""
    if not read_config().archive_on:
        return None
    from steno.store.archive.archive import archive_all

    return archive_all(home.roots, patient=True)


def _stay(home: Home, screen: Screen, *, as_json: bool) -> None:
    from steno.store.watch import Watch

    with Watch(home.roots) as watch:
        for _ in watch:
            # Whatever changed, a sync finds it; it opens nothing else.
            _once(home, screen, as_json=as_json, quiet=True)
            sys.stdout.flush()


def _line(report: Report, kept: "Summary | None") -> Line:
    files = words.count(report.files, "file")
    if not report.read and not report.gone:
        line: Line = [f"{files}, nothing new"]
    else:
        new = words.count(report.read, "file")
        line = [f"{files}, {new} read: {words.size(report.size)} in {report.seconds:.1f} s"]
    if report.gone:
        line.append((f", {report.gone:,} gone (still in the index)", "yellow"))
    if kept is not None and kept.added:
        line.append((f", {words.size(kept.added)} archived", "dim"))
    return line


def _json(home: Home, report: Report, kept: "Summary | None") -> dict[str, Any]:
    return {
        "folder": home.folder,
        "roots": home.roots,
        "files": report.files,
        "read": report.read,
        "bytes": report.size,
        "gone": report.gone,
        "seconds": round(report.seconds, 3),
        "archived": kept.added if kept is not None else None,
        "problems": [
            {"kind": each.kind, "path": each.path, "message": each.message}
            for each in report.problems
        ],
    }
