"""The index for a command: brought up to date first, with a bar when that takes a while."""

import click

from steno.cli.options import roots
from steno.cli.progress import planned
from steno.index.opened import Index, open_index

__all__ = ["NO_SYNC", "fresh_index"]

NO_SYNC = click.option("--no-sync", is_flag=True, help="Do not look for anything new first.")


def fresh_index(root: tuple[str, ...], *, demo: bool, no_sync: bool = False) -> Index:
    """Return the index that a command is about.

    Raises:
        StenoError: as `open_index`.
    """
    with planned("Reading new sessions") as plan:
        return open_index(roots(root, demo=demo), fresh=not no_sync, planned=plan)
