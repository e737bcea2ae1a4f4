"""`steno sync`: the index brought up to date, once or for as long as one likes."""

import click

from steno.cli.options import COLOR, JSON, WHERE, options, roots
from steno.cli.screen import Screen, complain
from steno.cli.syncing import stay, sync_once
from steno.index.home import index_of
from steno.index.sync import forget
from steno.index.sync import forget_gone as take_out_gone
from steno.report import words
from steno.safe.terminal import ColourMode

__all__ = ["command"]


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
    sync_once(home, screen, as_json=as_json)
    if watch:
        stay(home, screen, as_json=as_json)
