"""Everything an index holds, said without numbers that depend on how it came about."""

import sqlite3
from collections import Counter
from typing import Any

import tantivy

from steno.index.database import IndexLocation, open_for_reading
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.scan import path_from_column
from steno.index.text_index import FAILED_TAG, open_text_index

__all__ = ["dump"]

_BY_MESSAGE = {"messages": (0,), "tool_calls": (0, 8), "file_edits": (0,), "file_backups": (0,)}
_BY_FILE = {"sessions": (), "turns": (2,), "usage": (2,), "links": (1,)}
_MANY = 1_000_000


def dump(home: IndexLocation, *, gone: bool = False) -> dict[str, Any]:
    """Return what is in the tables and words of an index; `gone` takes in files that are gone."""
    connection = open_for_reading(home.folder)
    assert connection is not None
    rows = connection.execute("SELECT id, path, gone FROM files").fetchall()
    files = {file: path_from_column(path) for file, path, lost in rows if gone or lost is None}
    said: dict[str, Any] = {"files": sorted(files.values())}
    for table, columns in _BY_MESSAGE.items():
        said[table] = sorted(_placed(connection, table, columns, files), key=repr)
    for table, columns in _BY_FILE.items():
        rows = _placed(connection, table, columns, files, owned=True)
        said[table] = sorted(rows, key=repr)
    if gone or len(files) == connection.execute("SELECT count(*) FROM files").fetchone()[0]:
        said["days"] = connection.execute("SELECT * FROM days ORDER BY 1, 2, 3, 4, 5, 6").fetchall()
    said["read"] = sorted(
        (files[file], done) for file, done in connection.execute("SELECT id, done FROM files") if file in files
    )
    said["words"] = _words(home, connection, files)
    assert connection.execute("SELECT count(*) FROM batches WHERE open").fetchone() == (0,)
    connection.close()
    return said


def _placed(
    connection: sqlite3.Connection, table: str, columns: tuple[int, ...], files: dict[int, str], *, owned: bool = False
) -> list[tuple[Any, ...]]:
    """Return rows with paths for numbers of files, and offsets for ids of messages."""
    found: list[tuple[Any, ...]] = []
    # When a file was seen growing, or missed, depends on when it was looked at.
    found_columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    names = ", ".join(name for (name,) in found_columns if name not in ("grown", "gone"))
    owner = 22
    for row in connection.execute(f"SELECT {names} FROM {table}"):
        values = list(row)
        file = values[0] if owned else values[0] >> FILE_ID_SHIFT
        if file not in files:
            continue
        for column in columns:
            if values[column] is not None:
                values[column] &= (1 << FILE_ID_SHIFT) - 1
        if owned:
            values[0] = files[file]
        if table == "sessions":
            values[owner] = files.get(values[owner], "")
        found.append((files[file], *values))
    return found


def _words(home: IndexLocation, connection: sqlite3.Connection, files: dict[int, str]) -> Any:
    texts = open_text_index(home.folder)
    texts.index.reload()
    searcher = texts.index.searcher()

    def messages(query: tantivy.Query) -> Counter[tuple[str, int]]:
        hits = searcher.search(query, _MANY).hits
        ids = searcher.fast_field_values("message", [address for _, address in hits])
        places = (divmod(int(each or 0), 1 << FILE_ID_SHIFT) for each in ids)
        return Counter((files[file], offset) for file, offset in places if file in files)

    names = connection.execute("SELECT kind, name, id FROM names ORDER BY kind, name").fetchall()
    names.append(("failed", "", FAILED_TAG))
    by_name = {
        (kind, name): found
        for kind, name, tag in names
        if (found := messages(tantivy.Query.term_query(texts.schema, "tag", tag)))
    }
    everything = messages(tantivy.Query.all_query())
    common = {
        word: messages(tantivy.Query.term_query(texts.schema, "text", word))
        for word in ("the", "fix", "test", "py", "tide")
    }
    return everything, by_name, common
