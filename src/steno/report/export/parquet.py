"""The tables of the index as Parquet files, for those who ask with other engines.

Needs pyarrow, which the extra `parquet` installs.
"""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from io import BytesIO
from sqlite3 import Connection
from typing import Any, Final

from steno.extras import require
from steno.report.export.files import Job
from steno.report.export.put import make_folder, put_file
from steno.safe.masking import Masker

__all__ = ["TABLES", "need_pyarrow", "tables", "write_tables"]

TABLES: Final = {
    "files": ("id",),
    "sessions": ("file",),
    "turns": ("file",),
    "messages": ("id", 40),
    "tool_calls": ("message", 40),
    "file_edits": ("message", 40),
    "usage": ("file",),
    "links": ("file",),
}
"""Every table, with the column that says which file a row is of, and how many bits to drop of it."""
_LEFT: Final = {"files": ("state", "mark", "root", "device", "inode")}
"""What only the index itself has a use for."""
_TYPES: Final = {"INTEGER": "int64", "REAL": "float64"}
"""What a column is, by how the index declares it; all else is text."""
_MOST: Final = 500


def need_pyarrow() -> None:
    """Say so where pyarrow is not there.

    Raises:
        BadRequest: it is not.
    """
    require("parquet", "Parquet")


def tables(
    connection: Connection, files: Sequence[int], masker: Masker | None
) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield each table with its columns, of some files."""
    for name, (column, *bits) in TABLES.items():
        key = f"{column} >> {bits[0]}" if bits else column
        rows: list[tuple[Any, ...]] = []
        left = _LEFT.get(name, ())
        names = [each for each in _types(connection, name) if each not in left]
        wanted = ", ".join(f'"{each}"' for each in names)
        for at in range(0, max(1, len(files)), _MOST):
            some = files[at : at + _MOST]
            marks = ", ".join("?" * len(some))
            # Names of tables and columns are ours; the numbers are bound.
            asked = connection.execute(
                f"SELECT {wanted} FROM {name} WHERE {key} IN ({marks})", some
            )
            rows += asked.fetchall()
        yield (
            name,
            {
                each: [_value(row[place], masker) for row in rows]
                for place, each in enumerate(names)
            },
        )


def _value(value: Any, masker: Masker | None) -> Any:
    if isinstance(value, bytes):
        value = os.fsdecode(value).encode("utf-8", "replace").decode()
    if masker is None or not isinstance(value, str) or not value:
        return value
    return masker.text(value)


def _types(connection: Connection, name: str) -> dict[str, str]:
    """Return what the columns of a table are, also where it has no rows to tell it by.

    Generated columns are not among them: they repeat others, for the sake of the index.
    """
    rows = connection.execute(f"SELECT name, type FROM pragma_table_info('{name}')")
    return {column: _TYPES.get(declared, "string") for column, declared in rows}


def write_tables(connection: Connection, files: Sequence[int], job: Job) -> list[str]:
    """Write every table into a file of its own; return their paths.

    Raises:
        StenoError: something cannot be written.
    """
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    make_folder(job.out, force=job.force)
    written: list[str] = []
    for name, columns in tables(connection, files, job.masker):
        made = BytesIO()
        types = _types(connection, name)
        schema = arrow.schema([(each, getattr(arrow, types[each])()) for each in columns])
        parquet.write_table(arrow.table(columns, schema=schema), made, compression="zstd")
        path = os.path.join(job.out, f"{name}.parquet")
        put_file(path, [made.getvalue()], force=job.force)
        written.append(path)
    return written
