"""Recovers from a damaged index: it is moved aside, and the next sync builds a new one."""

import os
import sqlite3
from contextlib import closing
from typing import Final

from steno.errors import StenoError, Unreadable
from steno.index.database import DATABASE_NAME, IndexDamaged, has_schema, last_opened_folder, open_for_reading
from steno.index.text_index import TEXT_FOLDER, TextIndexDamaged
from steno.store.damaged_files import move_aside

_DAMAGE_MESSAGES: Final = ("malformed", "not a database", "could not decode", "unsupported file format")
"""SQLite messages that always mean a damaged database."""
_POSSIBLE_DAMAGE_MESSAGES: Final = (
    "no such table",
    "no such column",
    "database schema",
    "constraint failed",
    "datatype mismatch",
)
"""SQLite messages of a damaged database that can also come from an invalid statement."""


def is_damage(error: BaseException, folder: str = "") -> bool:
    """Return whether an error, or one of its causes, means that an index is damaged.

    An ambiguous message counts only if a check of the index confirms it. Without `folder`, the index that this process
    opened last is checked.
    """
    for cause in _exception_chain(error):
        if isinstance(cause, IndexDamaged | TextIndexDamaged):
            return True
        if isinstance(cause, sqlite3.DatabaseError):
            return _contains_any(cause, _DAMAGE_MESSAGES) or (
                _contains_any(cause, _POSSIBLE_DAMAGE_MESSAGES) and _is_database_damaged(_folder_or_last(folder))
            )
    return False


def _contains_any(error: sqlite3.DatabaseError, messages: tuple[str, ...]) -> bool:
    text = str(error).lower()
    return any(message in text for message in messages)


def _folder_or_last(folder: str) -> str:
    return folder or next(iter(last_opened_folder), "")


def _is_database_damaged(folder: str) -> bool:
    if not folder:
        return False
    try:
        connection = open_for_reading(folder)
        if connection is None:
            return False
        with closing(connection):
            check = "PRAGMA quick_check(1)"
            return not has_schema(connection) or connection.execute(check).fetchone() != ("ok",)
    except IndexDamaged:
        return True
    except Unreadable:
        return False
    except sqlite3.DatabaseError as error:
        return _contains_any(error, _DAMAGE_MESSAGES)


def _exception_chain(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, each once because the chain can be circular."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and not any(cause is known for known in chain):
        chain.append(cause)
        cause = cause.__cause__
    return chain


def recover(error: BaseException, folder: str = "") -> bool:
    """Move the damaged part of an index aside; return whether this was done.

    Without `folder`, the index that this process opened last is used.
    """
    folder = _folder_or_last(folder)
    if not folder or not is_damage(error, folder):
        return False
    try:
        if any(isinstance(cause, TextIndexDamaged) for cause in _exception_chain(error)):
            _discard_text_index(folder)
        else:
            _discard_database(folder)
    except (OSError, StenoError, sqlite3.Error):
        return False
    return True


def _discard_database(folder: str) -> None:
    """Move the database aside and delete the full-text index, which is useless without it."""
    from shutil import rmtree

    path = os.path.join(folder, DATABASE_NAME)
    move_aside(path, "the index")
    for ending in ("-wal", "-shm", "-journal"):
        if os.path.lexists(path + ending):
            os.unlink(path + ending)
    rmtree(os.path.join(folder, TEXT_FOLDER), ignore_errors=True)


def _discard_text_index(folder: str) -> None:
    """Move the full-text index aside and mark every file as unread."""
    from steno.index.sync.updater import mark_all_unread

    path = os.path.join(folder, TEXT_FOLDER)
    if os.path.lexists(path):
        move_aside(path, "the search index")
    mark_all_unread(folder)
