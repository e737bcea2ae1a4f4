"""The index for a command: brought up to date first, with a bar when that takes a while."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

from steno.cli.options import roots
from steno.cli.progress import Progress
from steno.index.opened import Index, open_index

__all__ = ["NO_SYNC", "fresh_index", "planned"]

NO_SYNC = click.option("--no-sync", is_flag=True, help="Do not look for anything new first.")

_Plan = Callable[[int], Callable[[int], None]]


@contextmanager
def planned(label: str) -> Generator[_Plan, None, None]:
    """Give a sync something to tell how much there is to read, and how far it is; draw a bar."""
    bars: list[Progress] = []

    def begin(size: int) -> Callable[[int], None]:
        bar = Progress(size, label)
        bars.append(bar)
        return bar.add

    try:
        yield begin
    finally:
        for bar in bars:
            bar.clear()


def fresh_index(root: tuple[str, ...], *, demo: bool, no_sync: bool = False) -> Index:
    """Return the index that a command is about.

    Raises:
        StenoError: as `open_index`.
    """
    with planned("Reading new sessions") as plan:
        return open_index(roots(root, demo=demo), fresh=not no_sync, planned=plan)
