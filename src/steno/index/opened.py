"""The index as commands and programs use it: brought up to date, and opened for reading."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

from steno.errors import Busy, NotFound
from steno.index.database import open_to_read
from steno.index.home import Home, index_of

if TYPE_CHECKING:
    from steno.index.sync import Report
    from steno.index.texts import Texts

__all__ = ["Index", "open_index"]


class Index:
    """An index, open for reading. Close it, or use it in a `with`."""

    def __init__(
        self, home: Home, connection: sqlite3.Connection, report: "Report | None" = None
    ) -> None:
        self.home = home
        self.connection = connection
        self.report = report
        """What the sync before did; None when there was none."""

    @cached_property
    def texts(self) -> "Texts":
        """The words."""
        from steno.index.texts import open_texts

        return open_texts(self.home.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self.connection.close()


def open_index(
    root: str | Sequence[str] | None = None,
    *,
    fresh: bool = True,
    planned: Callable[[int], Callable[[int], None]] | None = None,
) -> Index:
    """Return the index of some folders, by default of the client's; `fresh` syncs it first.

    When another sync is at work it is opened as it is.

    Raises:
        NotFound: there is no index, and none was to be made.
        Unreadable: it cannot be read.
        Unwritable: it cannot be brought up to date.
    """
    home = index_of(root)
    report = None
    if fresh:
        from steno.index.sync import sync

        try:
            report = sync(home, wait=False, planned=planned)
        except Busy:
            report = None
    connection = open_to_read(home.folder)
    if connection is None:
        raise NotFound("there is no index yet", hint="`steno sync` makes it")
    return Index(home, connection, report)
