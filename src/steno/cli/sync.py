"""`steno sync`: the index brought up to date, once or for as long as one likes."""

from typing import Any

import click
import msgspec

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
@click.option(
    "--steps",
    metavar="DIR",
    help="Keep a folder of steps.jsonl and metadata.json up to date instead of the index.",
)
@click.option(
    "--listed", is_flag=True, help="With --steps, leave out short sessions, as `ls --listed`."
)
@click.option(
    "--redact/--no-redact", default=True, help="With --steps, mask secrets.  [default: redact]"
)
@options(JSON)
@options(COLOR)
def command(
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Bring the index up to date with the sessions.

    `search` and `usage` do this themselves; the first time takes a while (16 seconds for a gigabyte
    on two idle cores, up to a minute on busy ones), later only what is new is read. Ctrl-C is safe at any time: the next sync goes on
    where this one stopped. Sessions whose file is deleted stay in the index.

    Further folders, such as copies from other machines, are named in the config file (`index.roots`).

    With --steps DIR, each session is written to DIR/SESSION/steps.jsonl and metadata.json. Only
    changed sessions are written again, and folders of sessions that are gone are removed; anything
    else in DIR is left alone.
    """
    wanted = _Options(**options)
    if wanted.steps is not None:
        _write_steps(wanted.steps, wanted, roots(root, demo=demo), Screen(color), as_json=as_json)
        return
    if wanted.listed or not wanted.redact:
        raise click.UsageError("--listed and --no-redact need --steps DIR")
    home = index_of(roots(root, demo=demo))
    screen = Screen(color)
    if wanted.rebuild:
        forget(home)
    if wanted.forget_gone:
        number = take_out_gone(home)
        complain(f"{words.count(number, 'file')} taken out of the index")
    sync_once(home, screen, as_json=as_json)
    if wanted.watch:
        stay(home, screen, as_json=as_json)


class _Options(msgspec.Struct):
    watch: bool = False
    rebuild: bool = False
    forget_gone: bool = False
    steps: str | None = None
    listed: bool = False
    redact: bool = True


def _write_steps(
    folder: str,
    wanted: _Options,
    where: tuple[str, ...] | None,
    screen: Screen,
    *,
    as_json: bool,
) -> None:
    """Bring a folder of steps up to date, and keep it so if that is wanted."""
    from steno.cli.steps_report import write_steps_once, write_steps_while_watching
    from steno.report.export.steps_folder import StepsJob
    from steno.safe.masking import Masker
    from steno.store.library import roots_of

    if wanted.rebuild or wanted.forget_gone:
        raise click.UsageError("--steps cannot be combined with --rebuild or --forget-gone")
    if not folder:
        raise click.UsageError("--steps needs a folder: --steps DIR")
    masker = Masker() if wanted.redact else None
    job = StepsJob(folder, roots_of(where), masker, listed=wanted.listed)
    report = write_steps_once(job, screen, as_json=as_json)
    if wanted.watch:
        write_steps_while_watching(job, screen, report, as_json=as_json)
    elif report.failed:
        raise click.exceptions.Exit(1)
