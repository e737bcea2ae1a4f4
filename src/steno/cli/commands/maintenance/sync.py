"""`steno sync`: brings the index up to date, once or continuously."""

from typing import Any

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.commands.maintenance.sync_index import sync_once, watch_and_sync
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, add_options
from steno.cli.output.screen import Screen, print_error
from steno.index.database import locate_index
from steno.index.sync.updater import remove_gone as take_out_gone
from steno.index.sync.updater import reset_index
from steno.report import humanize
from steno.sanitize.terminal import ColourMode


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
    sync_once(home, screen, as_json=as_json)
    if sync_options.watch:
        watch_and_sync(home, screen, as_json=as_json)


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
