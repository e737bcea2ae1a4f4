"""Recovers from a damaged index: it is set aside, and the next sync makes a new one."""

import os
import sqlite3
from typing import Final

from steno.errors import StenoError
from steno.index.database import DATABASE, Damaged, last_opened
from steno.index.texts import FOLDER, WordsDamaged
from steno.store.damaged_state import set_aside

__all__ = ["is_damage", "recover"]

_SIGNS: Final = (
    "malformed",
    "not a database",
    "could not decode",
    "no such table",
    "no such column",
    "unsupported file format",
    "database schema",
    "constraint failed",
    "datatype mismatch",
)
"""What SQLite says of a database that cannot be read as it was written."""


def is_damage(error: BaseException) -> bool:
    """Return whether an error, or what caused it, says that an index is damaged."""
    for cause in _causes(error):
        if isinstance(cause, Damaged | WordsDamaged):
            return True
        if isinstance(cause, sqlite3.DatabaseError):
            return any(sign in str(cause).lower() for sign in _SIGNS)
    return False


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
    if not is_damage(error):
        return False
    folder = folder or next(iter(last_opened), "")
    if not folder:
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
