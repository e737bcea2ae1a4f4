"""The index's SQLite file: opened, made, brought up to date.

`schema.sql` is the first version. Every later one is a script behind it in `_SCRIPTS`; none is ever
changed once it was released. The version is kept in `PRAGMA user_version`.
"""

import os
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Final

from steno.errors import Unreadable, Unwritable
from steno.store.disk import make_folder, open_private

__all__ = [
    "DATABASE",
    "VERSION",
    "Damaged",
    "has_schema",
    "last_opened",
    "open_database",
    "open_to_read",
    "stamp_of",
    "transaction",
]

DATABASE: Final = "index.sqlite"
_SCRIPTS: Final = ("schema.sql", "schema-2.sql", "schema-3.sql", "schema-5.sql")
VERSION: Final = len(_SCRIPTS)
"""Which version of the tables this steno writes."""
_CURE: Final = "`steno sync --rebuild` makes it anew"
_BUSY_MS: Final = 30_000
_CACHE_KIB: Final = 65_536
last_opened: Final[list[str]] = []
"""The folder of the index that this process opened last; none before the first."""


def open_database(folder: str) -> sqlite3.Connection:
    """Return the index in a folder, ready to be written; it is made where there is none.

    Raises:
        Unwritable: the folder cannot be written to, or a newer steno made the index.
    """
    last_opened[:] = [folder]
    try:
        make_folder(folder)
        path = os.path.join(folder, DATABASE)
        _refuse_folder(path)
        # Made here, so that nobody else may read it from the first byte on.
        os.close(open_private(path, os.O_RDWR | os.O_CREAT))
        connection = _connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        _bring_up_to_date(connection, path)
    except Unwritable:
        raise
    except (OSError, sqlite3.OperationalError) as error:
        raise Unwritable(f"cannot write the index in {folder}: {_said(error)}") from error
    except sqlite3.DatabaseError as error:
        raise Damaged(f"the index in {folder} is damaged: {error}", hint=_CURE) from error
    return connection


def stamp_of(folder: str) -> tuple[int, ...]:
    """Return what changes with every change of the index in a folder."""
    path = os.path.join(folder, DATABASE)
    stamp: list[int] = []
    for each in (path, f"{path}-wal"):
        try:
            status = os.stat(each)
        except FileNotFoundError:
            continue
        # Readers make and remove an empty one.
        if status.st_size:
            stamp += (status.st_ino, status.st_size, status.st_mtime_ns)
    return tuple(stamp)


def open_to_read(folder: str) -> sqlite3.Connection | None:
    """Return the index in a folder for reading; None where there is none of this version.

    Raises:
        Damaged: it is there, and is no index.
        Unreadable: it cannot be read.
    """
    path = os.path.join(folder, DATABASE)
    if not os.path.exists(path):
        return None
    last_opened[:] = [folder]
    if not os.path.isfile(path):
        raise Damaged(f"{path} is not a file", hint=_CURE)
    try:
        connection = _connect_to_read(path)
        if _version(connection) != VERSION:
            connection.close()
            return None
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.OperationalError as error:
        raise Unreadable(f"cannot read the index in {folder}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise Damaged(f"the index in {folder} is damaged: {error}", hint=_CURE) from error
    return connection


def _connect_to_read(path: str) -> sqlite3.Connection:
    connection = _connect(path)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # Where nothing can be written, there is nobody who writes either.
        connection.close()
        address = "file:" + path.replace("?", "%3f").replace("#", "%23") + "?immutable=1"
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False
        )
    return connection


def _refuse_folder(path: str) -> None:
    if os.path.isdir(path):
        raise Damaged(f"{path} is a directory", hint=_CURE)


class Damaged(Unwritable):
    """The index is there, and is none any more."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """All that is done inside happens, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    if _version(connection) == VERSION:
        return
    with transaction(connection):
        # Somebody else may have been faster.
        version = _version(connection)
        if version > VERSION:
            raise Unwritable(f"{path} was made by a newer steno", hint="update steno")
        _run_scripts(connection, version)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _run_scripts(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables from a version to the newest one."""
    for script in _SCRIPTS[version:]:
        for statement in _statements(script):
            connection.execute(statement)


def has_schema(connection: sqlite3.Connection) -> bool:
    """Return whether every table, index and trigger of the newest version is there, unchanged."""
    with closing(sqlite3.connect(":memory:")) as new:
        _run_scripts(new, 0)
        return _schema(new) <= _schema(connection)


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one; `executescript` would end the transaction."""
    from importlib.resources import files

    statement = ""
    for line in files("steno.index").joinpath(script).read_text("utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _said(error: OSError | sqlite3.Error) -> str:
    words = error.strerror if isinstance(error, OSError) else str(error)
    return (words or str(error)).lower()
