"""`steno blame`: which session, turn and prompt wrote each line of a file as it is now."""

import os
import re
from typing import Any, Final

import click
import msgspec

from steno.cli.fresh import NO_SYNC, fresh_index
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, where_to_look
from steno.cli.screen import Screen, complain, write_json
from steno.report import clock
from steno.safe.terminal import ColourMode

__all__ = ["command"]

_LINES: Final = re.compile(r"(.+?):(\d{1,9})(?:-(\d{0,9}))?", re.DOTALL)
_END: Final = 10**9
_HELP: Final = """\
Say which session, turn and prompt wrote each line of a file as it is now.

Lines are followed from the versions that agents read and wrote (see `steno files`) to the file on
the disk. Inside a git repository, a file that was renamed is followed to its earlier names, other
work trees count, and lines that no session wrote say who committed them. Nothing the repository's
own settings name is run.

FILE:10 and FILE:10-20 ask about some lines only.

\b
  steno blame src/login.py          every line
  steno blame src/login.py:40-60    these lines, and the prompts behind them
  steno blame old.py --as /srv/app/login.py    what sessions called it
"""


class _Asked(msgspec.Struct):
    """What was asked for."""

    names: tuple[str, ...] = ()
    no_git: bool = False
    summary: bool = False
    as_json: bool = False
    no_sync: bool = False
    no_pager: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False


@click.command("blame", help=_HELP, short_help="Say which prompt wrote each line of a file.")
@click.argument("file", metavar="FILE[:LINES]", type=click.Path())
@click.option(
    "--as",
    "names",
    multiple=True,
    metavar="PATH",
    help="A path under which sessions know the file too. May be repeated.",
)
@click.option("--no-git", is_flag=True, help="Ask no repository.")
@click.option("--summary", is_flag=True, help="Only who wrote how much.")
@options(NO_SYNC, WHERE, JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(file: str, color: ColourMode, width: int | None, **given: Any) -> None:
    """Say who wrote each line of a file."""
    from steno.cli.blamed import blame_json, blame_lines
    from steno.cli.pager import page
    from steno.report.blame import blame
    from steno.store.library import open_session

    asked = _Asked(**given)
    path, lines = _parsed(file)
    screen = Screen(color, width)
    with fresh_index(asked.root, demo=asked.demo, no_sync=asked.no_sync) as index:
        if index.report is None and not asked.no_sync:
            complain("a sync is at work; what it has not finished is not known yet")
        found = blame(
            index.connection,
            path,
            open_session,
            lines=lines,
            names=asked.names,
            git=not asked.no_git,
        )
    if found.trouble:
        complain(found.trouble, "--no-git asks none")
    if asked.as_json:
        write_json(blame_json(found))
        return
    whole = not screen.tty and width is None
    told = blame_lines(found, screen.width, clock.now(), summary=asked.summary, whole=whole)
    page(screen, told, wanted=not asked.no_pager)
    where = where_to_look(asked.root, demo=asked.demo)
    screen.next_steps([f"steno files{where} FILE", f"steno show{where} SESSION --turn N"])


def _parsed(text: str) -> tuple[str, tuple[int, int] | None]:
    """Return the file and the first and last line; a file that is called so is that file."""
    found = None if os.path.lexists(text) else _LINES.fullmatch(text)
    if found is None:
        return text, None
    first = int(found[2])
    last = first if found[3] is None else int(found[3]) if found[3] else _END
    if not 1 <= first <= last:
        raise click.UsageError(f"no lines go from {first} to {last}")
    return found[1], (first, last)
