"""Opens the index for a command, synced first with a progress bar unless --no-sync is given."""

import click

from steno.cli.command_arguments import search_roots
from steno.cli.output.progress import progress_factory
from steno.cli.output.screen import print_error
from steno.index.database import SessionIndex, open_index

NO_SYNC = click.option("--no-sync", is_flag=True, help="Do not update the index first")


def open_fresh_index(
    root: tuple[str, ...], *, demo: bool, no_sync: bool = False, while_syncing: str = ""
) -> SessionIndex:
    """Return the index of the search roots.

    `while_syncing` describes the effect on the output if another process is syncing the index.

    Raises:
        StenoError: as `open_index`.
    """
    with progress_factory("Indexing sessions") as progress:
        index = open_index(search_roots(root, demo=demo), sync_first=not no_sync, start_progress=progress)
    if while_syncing and index.report is None and not no_sync:
        print_error(f"another process is updating the index; {while_syncing}")
    return index
