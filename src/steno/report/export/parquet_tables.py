"""Writes the tables of the index as Parquet files.

Needs pyarrow, which the extra `parquet` installs.
"""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from io import BytesIO
from sqlite3 import Connection
from typing import Any, Final

from steno.extras import require
from steno.report.export.session_export import ExportJob, create_output_folder, write_output_file
from steno.sanitize.secret_masker import Masker

PARQUET_TABLES: Final = {
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
_OMITTED_COLUMNS: Final = {"files": ("state", "mark", "root", "device", "inode")}
"""What only the index itself has a use for."""
_ARROW_TYPES: Final = {"INTEGER": "int64", "REAL": "float64"}
"""What a column is, by how the index declares it; all else is text."""
_MAX_IDS_PER_QUERY: Final = 500


def require_pyarrow() -> None:
    """Say so where pyarrow is not there.

    Raises:
        BadRequest: it is not.
    """
    require("parquet", "Parquet")


def table_columns(
    connection: Connection, files: Sequence[int], masker: Masker | None
) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield each table with its columns, of some files."""
    for name, (column, *bits) in PARQUET_TABLES.items():
        key = f"{column} >> {bits[0]}" if bits else column
        rows: list[tuple[Any, ...]] = []
        omitted = _OMITTED_COLUMNS.get(name, ())
        names = [column_name for column_name in _column_types(connection, name) if column_name not in omitted]
        column_list = ", ".join(f'"{each}"' for each in names)
        for at in range(0, max(1, len(files)), _MAX_IDS_PER_QUERY):
            chunk = files[at : at + _MAX_IDS_PER_QUERY]
            placeholders = ", ".join("?" * len(chunk))
            # Names of tables and columns are ours; the numbers are bound.
            cursor = connection.execute(f"SELECT {column_list} FROM {name} WHERE {key} IN ({placeholders})", chunk)
            rows += cursor.fetchall()
        yield (name, {each: [_value(row[index], masker) for row in rows] for index, each in enumerate(names)})


def _value(value: Any, masker: Masker | None) -> Any:
    if isinstance(value, bytes):
        value = os.fsdecode(value).encode("utf-8", "replace").decode()
    if masker is None or not isinstance(value, str) or not value:
        return value
    return masker.mask_text(value)


def _column_types(connection: Connection, name: str) -> dict[str, str]:
    """Return what the columns of a table are, also where it has no rows to tell it by.

    Generated columns are not among them: they repeat others, for the sake of the index.
    """
    rows = connection.execute(f"SELECT name, type FROM pragma_table_info('{name}')")
    return {column: _ARROW_TYPES.get(declared, "string") for column, declared in rows}


def write_parquet_tables(connection: Connection, files: Sequence[int], job: ExportJob) -> list[str]:
    """Write every table into a file of its own; return their paths.

    Raises:
        StenoError: something cannot be written.
    """
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    create_output_folder(job.out, force=job.force)
    written: list[str] = []
    for name, columns in table_columns(connection, files, job.masker):
        buffer = BytesIO()
        types = _column_types(connection, name)
        schema = arrow.schema([(column, getattr(arrow, types[column])()) for column in columns])
        parquet.write_table(arrow.table(columns, schema=schema), buffer, compression="zstd")
        path = os.path.join(job.out, f"{name}.parquet")
        write_output_file(path, [buffer.getvalue()], force=job.force)
        written.append(path)
    return written
