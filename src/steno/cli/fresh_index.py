"""Opens the index for a command: synced first, with a progress bar, unless --no-sync is given."""

import click

from steno.cli.command_arguments import search_roots
from steno.cli.output.progress import progress_factory
from steno.cli.output.screen import print_error
from steno.index.database import SessionIndex, open_index

NO_SYNC = click.option("--no-sync", is_flag=True, help="Do not look for anything new first.")


def open_fresh_index(
    root: tuple[str, ...], *, demo: bool, no_sync: bool = False, while_syncing: str = ""
) -> SessionIndex:
    """Return the index that a command is about.

    `while_syncing` says what is missing from it as long as another process syncs it.

    Raises:
        StenoError: as `open_index`.
    """
    with progress_factory("Reading new sessions") as progress:
        index = open_index(search_roots(root, demo=demo), sync_first=not no_sync, start_progress=progress)
    if while_syncing and index.report is None and not no_sync:
        print_error(f"a sync is at work; {while_syncing}")
    return index
