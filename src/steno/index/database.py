"""The index's SQLite database: its location, its schema versions, and how it is opened.

There is one index for each config directory and one for each set of given directories. A session stays in the index
when its file is deleted. `schema.sql` is the first schema version, and each later version is a script in `_SCRIPTS`; a
released script is never changed. The version is stored in `PRAGMA user_version`.
"""

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self
from zlib import crc32

import msgspec

from steno.errors import Busy, NotFound, Unreadable, Unwritable
from steno.store.atomic import make_private_folder, open_private
from steno.store.config import read_config
from steno.store.environment import config_dir, steno_home

if TYPE_CHECKING:
    from steno.index.sync.updater import SyncReport
    from steno.index.text_index import TextIndex


_INDEX_FOLDER: Final = "index"
_MAX_NAME_LENGTH: Final = 24


class IndexLocation(msgspec.Struct, frozen=True):
    """Location of an index, and the directories whose sessions it contains."""

    folder: str
    roots: tuple[str, ...]


def locate_index(root: str | Sequence[str] | None = None) -> IndexLocation:
    """Return the index of some directories; by default, of the config directory and `index.roots`."""
    if root is None:
        client_folder = os.path.abspath(config_dir())
        configured = (os.path.abspath(os.path.expanduser(configured_root)) for configured_root in read_config().roots)
        return IndexLocation(
            _folder_of((client_folder,)), (client_folder, *(folder for folder in configured if folder != client_folder))
        )
    roots = (root,) if isinstance(root, str) else tuple(root)
    root_paths = tuple(dict.fromkeys(os.path.abspath(folder) for folder in roots))
    return IndexLocation(_folder_of(tuple(sorted(root_paths))), root_paths)


def _folder_of(roots: tuple[str, ...]) -> str:
    """Return the directory of an index: a readable label plus a checksum of the roots."""
    label = os.path.basename(os.path.dirname(roots[0])) + "-" + os.path.basename(roots[0])
    safe_label = "".join(character for character in label if character.isalnum() or character in "-_")[
        :_MAX_NAME_LENGTH
    ]
    checksum = crc32(b"\0".join(os.fsencode(root) for root in roots))
    return os.path.join(steno_home(), _INDEX_FOLDER, f"{safe_label}-{checksum:08x}")


ARRAY_SQL: Final = "(SELECT value FROM json_each(?))"
"""SQL: the values of one bound `json_array`, because SQLite limits the number of bound parameters."""
LIKE_SQL: Final = r"LIKE ? ESCAPE '\'"
"""SQL: a comparison with a pattern whose literal parts are escaped by `escape_like`."""
_LIKE_ESCAPES: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


def json_array(values: Sequence[str] | Sequence[int]) -> str:
    """Encode values as a parameter of `ARRAY_SQL`."""
    return msgspec.json.encode(values).decode()


def escape_like(text: str) -> str:
    """Escape a text so that it matches literally in a pattern of `LIKE_SQL`."""
    return text.translate(_LIKE_ESCAPES)


DATABASE_NAME: Final = "index.sqlite"
_SCRIPTS: Final = ("schema.sql", "schema-2.sql", "schema-3.sql", "schema-4.sql", "schema-5.sql")
SCHEMA_VERSION: Final = len(_SCRIPTS)
"""Schema version that this release writes."""
_REBUILD_HINT: Final = "Run `steno sync --rebuild` to rebuild it."
_BUSY_TIMEOUT_MS: Final = 30_000
_CACHE_KIB: Final = 65_536
last_opened_folder: Final[list[str]] = []
"""Directory of the index that this process opened last; empty at first."""


def open_for_writing(folder: str) -> sqlite3.Connection:
    """Open the index in a directory for writing, creating it if needed.

    Raises:
        Unwritable: the directory is not writable, or a newer release of steno wrote the index.
    """
    last_opened_folder[:] = [folder]
    try:
        make_private_folder(folder)
        path = os.path.join(folder, DATABASE_NAME)
        if os.path.isdir(path):
            raise IndexDamaged(f"{path} is a directory", hint=_REBUILD_HINT)
        # Created here, so that it is private from the start.
        os.close(open_private(path, os.O_RDWR | os.O_CREAT))
        connection = _connect_database(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        _upgrade_schema(connection, path)
    except Unwritable:
        raise
    except (OSError, sqlite3.OperationalError) as error:
        raise Unwritable(f"cannot write the index in {folder}: {_error_message(error)}") from error
    except sqlite3.DatabaseError as error:
        raise IndexDamaged(f"the index in {folder} is damaged: {error}", hint=_REBUILD_HINT) from error
    return connection


def database_stamp(folder: str) -> tuple[int, ...]:
    """Return a value that changes with every change of the index in a directory."""
    path = os.path.join(folder, DATABASE_NAME)
    stamp: list[int] = []
    for file_path in (path, f"{path}-wal"):
        try:
            status = os.stat(file_path)
        except FileNotFoundError:
            continue
        # Readers create and remove an empty file.
        if status.st_size:
            stamp += (status.st_ino, status.st_size, status.st_mtime_ns)
    return tuple(stamp)


def open_for_reading(folder: str) -> sqlite3.Connection | None:
    """Open the index in a directory for reading; None if it is missing or has another version.

    Raises:
        IndexDamaged: the file is not a valid index.
        Unreadable: the file cannot be read.
    """
    path = os.path.join(folder, DATABASE_NAME)
    if not os.path.exists(path):
        return None
    last_opened_folder[:] = [folder]
    if not os.path.isfile(path):
        raise IndexDamaged(f"{path} is not a file", hint=_REBUILD_HINT)
    try:
        connection = _connect_read_only(path)
        if _schema_version(connection) != SCHEMA_VERSION:
            connection.close()
            return None
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.OperationalError as error:
        raise Unreadable(f"cannot read the index in {folder}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise IndexDamaged(f"the index in {folder} is damaged: {error}", hint=_REBUILD_HINT) from error
    return connection


def _connect_read_only(path: str) -> sqlite3.Connection:
    connection = _connect_database(path)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # If the directory is not writable, no other process writes to it either.
        connection.close()
        address = "file:" + path.replace("?", "%3f").replace("#", "%23") + "?immutable=1"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    return connection


class IndexDamaged(Unwritable):
    """The index exists but is damaged."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None, None, None]:
    """Run a block in a transaction that is rolled back on errors."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _connect_database(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _upgrade_schema(connection: sqlite3.Connection, path: str) -> None:
    if _schema_version(connection) == SCHEMA_VERSION:
        return
    with transaction(connection):
        # Another process may have upgraded it meanwhile.
        version = _schema_version(connection)
        if version > SCHEMA_VERSION:
            raise Unwritable(f"{path} was written by a newer version of steno", hint="Update steno.")
        _run_scripts(connection, version)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _run_scripts(connection: sqlite3.Connection, version: int) -> None:
    for script in _SCRIPTS[version:]:
        for statement in _script_statements(script):
            connection.execute(statement)


def has_schema(connection: sqlite3.Connection) -> bool:
    """Return whether the database has every table, index and trigger of the newest version, unchanged."""
    with closing(sqlite3.connect(":memory:")) as new:
        _run_scripts(new, 0)
        return _schema_objects(new) <= _schema_objects(connection)


def _schema_objects(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _script_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; `executescript` would end the transaction."""
    from importlib.resources import files

    statement = ""
    for line in files("steno.index").joinpath(script).read_text("utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _error_message(error: OSError | sqlite3.Error) -> str:
    message = error.strerror if isinstance(error, OSError) else str(error)
    return (message or str(error)).lower()


class SessionIndex:
    """An index open for reading. Close it, or use it in a `with` block."""

    def __init__(
        self, location: IndexLocation, connection: sqlite3.Connection, report: "SyncReport | None" = None
    ) -> None:
        self.location = location
        self.connection = connection
        self.report = report
        """Report of the sync that ran before opening; None if no sync ran."""

    @cached_property
    def texts(self) -> "TextIndex":
        """The full-text index."""
        from steno.index.text_index import open_text_index

        return open_text_index(self.location.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.connection.close()


def open_index(
    root: str | Sequence[str] | None = None,
    *,
    sync_first: bool = True,
    start_progress: Callable[[int], Callable[[int], None]] | None = None,
) -> SessionIndex:
    """Open the index of some directories, by default of the config directory; `sync_first` syncs it.

    If another sync is running, the index is opened without waiting.

    Raises:
        NotFound: the index does not exist and was not created.
        Unreadable: the index cannot be read.
        Unwritable: the index cannot be updated.
    """
    location = locate_index(root)
    report = None
    if sync_first:
        from steno.index.sync.updater import sync

        try:
            report = sync(location, wait=False, start_progress=start_progress)
        except Busy:
            report = None
    connection = open_for_reading(location.folder)
    if connection is None:
        raise NotFound("the index does not exist yet", hint="Run `steno sync` to create it.")
    return SessionIndex(location, connection, report)
