"""Recovers from a damaged index: it is set aside, and the next sync makes a new one."""

import os
import sqlite3
from contextlib import closing
from typing import Final

from steno.errors import StenoError, Unreadable
from steno.index.database import DATABASE, Damaged, has_schema, last_opened, open_to_read
from steno.index.texts import FOLDER, WordsDamaged
from steno.store.damaged_state import set_aside

__all__ = ["is_damage", "recover"]

_SIGNS: Final = ("malformed", "not a database", "could not decode", "unsupported file format")
"""What SQLite says only of a database that cannot be read as it was written."""
_WEAK_SIGNS: Final = (
    "no such table",
    "no such column",
    "database schema",
    "constraint failed",
    "datatype mismatch",
)
"""What SQLite says of a damaged database, but also of a wrong statement."""


def is_damage(error: BaseException, folder: str = "") -> bool:
    """Return whether an error, or what caused it, says that an index is damaged.

    A weak sign counts only if the index itself shows the damage. Without a `folder` it is the
    index that this process opened last.
    """
    for cause in _causes(error):
        if isinstance(cause, Damaged | WordsDamaged):
            return True
        if isinstance(cause, sqlite3.DatabaseError):
            return _says(cause, _SIGNS) or (
                _says(cause, _WEAK_SIGNS) and _is_database_damaged(_folder_or_last(folder))
            )
    return False


def _says(error: sqlite3.DatabaseError, signs: tuple[str, ...]) -> bool:
    said = str(error).lower()
    return any(sign in said for sign in signs)


def _folder_or_last(folder: str) -> str:
    return folder or next(iter(last_opened), "")


def _is_database_damaged(folder: str) -> bool:
    """Return whether the schema of an index is incomplete, or its check finds a fault."""
    if not folder:
        return False
    try:
        connection = open_to_read(folder)
        if connection is None:
            return False
        with closing(connection):
            return not has_schema(connection) or _fails_check(connection)
    except Damaged:
        return True
    except Unreadable:
        return False
    except sqlite3.DatabaseError as error:
        return _says(error, _SIGNS)


def _fails_check(connection: sqlite3.Connection) -> bool:
    return connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what caused it, each once: an error may name itself as its cause."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and not any(cause is each for each in found):
        found.append(cause)
        cause = cause.__cause__
    return found


def recover(error: BaseException, folder: str = "") -> bool:
    """Set the damaged part of an index aside; return whether that was done.

    Without a `folder` it is the index that this process opened last.
    """
    folder = _folder_or_last(folder)
    if not folder or not is_damage(error, folder):
        return False
    try:
        if any(isinstance(cause, WordsDamaged) for cause in _causes(error)):
            _drop_words(folder)
        else:
            _drop_database(folder)
    except (OSError, StenoError, sqlite3.Error):
        return False
    return True


def _drop_database(folder: str) -> None:
    """Set the tables aside, with the words, which mean nothing without them."""
    from shutil import rmtree

    path = os.path.join(folder, DATABASE)
    set_aside(path, "the index")
    for ending in ("-wal", "-shm", "-journal"):
        if os.path.lexists(path + ending):
            os.unlink(path + ending)
    rmtree(os.path.join(folder, FOLDER), ignore_errors=True)


def _drop_words(folder: str) -> None:
    """Set the words aside, and have every file read again."""
    from steno.index.sync import read_again

    path = os.path.join(folder, FOLDER)
    if os.path.lexists(path):
        set_aside(path, "the search index")
    read_again(folder)
