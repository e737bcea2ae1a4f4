"""The bytes that places in the index are places in."""

import sqlite3

from steno.format.source import OpenSource
from steno.index.scan import path_from
from steno.index.state import is_converted_state
from steno.store.archive.opened import open_anywhere

__all__ = ["open_file"]


def open_file(connection: sqlite3.Connection, file: int) -> OpenSource | None:
    """Return a file of the index, open; of one with records in a dialect, its converted form.

    None where the index has no such file.

    Raises:
        Unreadable: it is neither on the disk nor in the archive, or cannot be read.
    """
    row = connection.execute("SELECT path, state FROM files WHERE id = ?", (file,)).fetchone()
    if row is None:
        return None
    return open_anywhere(path_from(row[0]), converted=is_converted_state(row[1] or b""))
