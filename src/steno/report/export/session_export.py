"""Exports sessions and index tables to files: selection, file names, writing without overwriting."""

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.errors import BadRequest, Unreadable, Unwritable
from steno.extras import require
from steno.format.encode import encode_line
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import clock
from steno.report.export.export_formats import api_messages, lossless_json, render_markdown, render_plain_text
from steno.report.export.export_options import ExportFormat, ExportLevel
from steno.report.export.session_masking import MaskedSession, open_masked
from steno.report.humanize import local_date
from steno.report.usage.usage_query import UsageQuery
from steno.sanitize.secret_masker import Masker
from steno.session.session import Session
from steno.store import environment
from steno.store.archive.catalogue import archived_at
from steno.store.discovery import DiscoveredFile, discover_file
from steno.store.session_lookup import sessions_newest_first
from steno.store.summary import project_in_listing

if TYPE_CHECKING:
    from steno.index.database import SessionIndex


_MAX_SLUG_LENGTH: Final = 48
_NON_ALPHANUMERIC: Final = re.compile(r"[^a-z0-9]+")


def export_name(session: Session, used_names: set[str]) -> str:
    """Return a file name that is valid on all file systems, and add it to the used names."""
    started = session.started
    day = local_date(started)
    short_id = _slug(session.id[:SHORT_ID_LENGTH])
    stem = "-".join(part for part in (day, _slug(session.title.text), short_id) if part) or "session"
    return unused_name(stem, used_names)


def unused_name(stem: str, used_names: set[str]) -> str:
    """Return an unused name, and add it to the used names."""
    name, number = stem, 1
    while name in used_names or name == "index":
        number += 1
        name = f"{stem}_{number}"
    used_names.add(name)
    return name


def _slug(text: str) -> str:
    r"""Return the ASCII letters and digits of a text, with dashes between words.

    >>> _slug("Fix the <b>Überlauf</b>, ../../now!")
    'fix-the-b-uberlauf-b-now'
    """
    ascii_text = unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode().lower()
    return _NON_ALPHANUMERIC.sub("-", ascii_text).strip("-")[:_MAX_SLUG_LENGTH].rstrip("-")


_BUFFER_SIZE: Final = 1 << 18
_OVERWRITE_HINT: Final = "Add --force to overwrite it."


def create_output_folder(path: str, *, force: bool) -> None:
    """Create a directory, or accept an empty one.

    Raises:
        BadRequest: The directory is not empty and `force` is not set.
        Unwritable: The directory cannot be created.
    """
    try:
        os.makedirs(path, exist_ok=True)
        with os.scandir(path) as entries:
            empty = next(entries, None) is None
    except OSError as error:
        raise Unwritable(f"cannot create {path}: {_error_text(error)}") from error
    if not empty and not force:
        raise BadRequest(f"{path} is not empty", hint="Add --force to write into it.")


def write_output_file(path: str, chunks: Iterable[bytes], *, force: bool) -> int:
    """Write a file and return its size in bytes.

    Raises:
        BadRequest: The file exists and `force` is not set.
        Unwritable: The file cannot be written.
    """
    if not force and os.path.lexists(path):
        raise BadRequest(f"{path} already exists", hint=_OVERWRITE_HINT)
    partial_path = f"{path}.{os.getpid()}.part"
    size = 0
    try:
        with open(partial_path, "xb", buffering=_BUFFER_SIZE) as file:
            for chunk in chunks:
                size += file.write(chunk)
        os.replace(partial_path, path)
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {_error_text(error)}") from error
    finally:
        with suppress(OSError):
            os.unlink(partial_path)
    return size


def _error_text(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def sessions_of_project(project: str, roots: Sequence[str] | None) -> list[DiscoveredFile]:
    """Return the sessions whose project path contains a text, newest first.

    `.` matches the current directory and its subdirectories.
    """
    query = UsageQuery(project=project, here=os.getcwd() if project == "." else "")
    return [
        session_file
        for session_file in sessions_newest_first(roots, archived=True)
        if (session_project := _shown_project(session_file)) is not None and query.matches_project(session_project)
    ]


def _shown_project(session_file: DiscoveredFile) -> str | None:
    try:
        return project_in_listing(session_file)
    except Unreadable:
        return None


def sessions_with_text(index: "SessionIndex", text: str) -> list[DiscoveredFile]:
    """Return the sessions that match a search, including matches in sub-agents, newest first.

    Raises:
        StenoError: The query is invalid, or the index cannot be read.
    """
    from steno.index.database import ARRAY_SQL, json_array
    from steno.index.search.finder import open_finder
    from steno.index.search.query_parser import parse_query
    from steno.index.session_stats import FILE_ID_SHIFT

    finder = open_finder(index, lambda time_text: clock.parse_time_range(time_text, environment.now()))
    messages = finder.find(parse_query(text), "newest", require_terms=True).messages
    files = list(dict.fromkeys(message >> FILE_ID_SHIFT for message in messages))
    rows = index.connection.execute(
        "SELECT DISTINCT f.path FROM sessions m JOIN sessions s ON s.id = m.id AND s.agent = '' "
        f"JOIN files f ON f.id = s.file WHERE m.file IN {ARRAY_SQL} ORDER BY s.ended DESC",
        (json_array(files),),
    )
    paths = [os.fsdecode(path) for (path,) in rows.fetchall()]
    session_files = (discover_file(path) if os.path.lexists(path) else archived_at(path) for path in paths)
    return [session_file for session_file in session_files if session_file is not None]


def index_ids_of(index: "SessionIndex", files: Sequence[DiscoveredFile]) -> list[int]:
    """Return the file numbers of sessions and their sub-agents in the index."""
    from steno.index.database import ARRAY_SQL, json_array

    paths = [_index_path(session_file.path) for session_file in files]
    rows = index.connection.execute(
        "SELECT DISTINCT m.file FROM files f JOIN sessions s ON s.file = f.id "
        f"JOIN sessions m ON m.id = s.id WHERE CAST(f.path AS TEXT) IN {ARRAY_SQL}",
        (json_array(paths),),
    )
    return sorted(number for (number,) in rows.fetchall())


def _index_path(path: str) -> str:
    return os.path.abspath(path).encode("utf-8", "replace").decode()


_FILE_ENDINGS: Final[dict[str, str]] = {"markdown": ".md", "txt": ".txt", "json": ".json", "messages": ".json"}


class ExportJob(msgspec.Struct):
    """Options for exporting sessions."""

    format: ExportFormat = "html"
    level: ExportLevel = "full"
    masker: Masker | None = None
    out: str = ""
    force: bool = False
    done: Callable[[int], None] = lambda _size: None
    """Called with the number of bytes read."""


def export_chunks(session_file: DiscoveredFile, job: ExportJob) -> Iterator[bytes]:
    """Yield a session in a single-file format.

    Raises:
        Unreadable: The session cannot be read.
    """
    if job.format == "json":
        yield from lossless_json(session_file, job.masker)
        return
    masked_session = open_masked(session_file, job.masker)
    yield from _render_chunks(masked_session, job)


def _render_chunks(masked_session: MaskedSession, job: ExportJob) -> Iterator[bytes]:
    if job.format == "messages":
        message_list = api_messages(masked_session, masked=job.masker is not None)
        yield encode_line({"messages": message_list})
        return
    render = render_markdown if job.format == "markdown" else render_plain_text
    for part in render(masked_session.session, job.level):
        yield part.encode("utf-8", "replace")


def write_files(files: Iterable[tuple[str, list[bytes]]], job: ExportJob) -> list[str]:
    """Write files, given as chunks, into a directory; return their paths.

    Raises:
        StenoError: A file cannot be read or written.
    """
    create_output_folder(job.out, force=job.force)
    written: list[str] = []
    for name, chunks in files:
        path = os.path.join(job.out, name)
        write_output_file(path, chunks, force=job.force)
        written.append(path)
    return written


def write_sessions(files: Sequence[DiscoveredFile], job: ExportJob) -> list[str]:
    """Write each session to a file; return the paths.

    Raises:
        StenoError: A session cannot be read or written.
    """
    create_output_folder(job.out, force=job.force)
    used_names: set[str] = set()
    written: list[str] = []
    for session_file in files:
        masked_session = open_masked(session_file, _reading_masker(job))
        name = export_name(masked_session.session, used_names) + _FILE_ENDINGS[job.format]
        path = os.path.join(job.out, name)
        chunks = (
            lossless_json(session_file, job.masker) if job.format == "json" else _render_chunks(masked_session, job)
        )
        write_output_file(path, chunks, force=job.force)
        job.done(session_file.size)
        written.append(path)
    return written


def _reading_masker(job: ExportJob) -> Masker | None:
    """Return the masker for rendering; lossless JSON masks and counts separately."""
    return Masker() if job.masker is not None and job.format == "json" else job.masker


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
"""Exported tables, each with the column of the file number, and the number of bits to shift its value right."""
_OMITTED_COLUMNS: Final = {"files": ("state", "mark", "root", "device", "inode")}
"""Columns that are internal to the index."""
_ARROW_TYPES: Final = {"INTEGER": "int64", "REAL": "float64"}
"""Arrow types by declared column type; all others are text."""
_MAX_IDS_PER_QUERY: Final = 500


def require_pyarrow() -> None:
    """Require pyarrow.

    Raises:
        BadRequest: pyarrow is not installed.
    """
    require("parquet", "Parquet")


def table_columns(
    connection: Connection, files: Sequence[int], masker: Masker | None
) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """Yield each table with its columns, restricted to files."""
    for name, (column, *bits) in PARQUET_TABLES.items():
        key = f"{column} >> {bits[0]}" if bits else column
        rows: list[tuple[Any, ...]] = []
        omitted = _OMITTED_COLUMNS.get(name, ())
        names = [column_name for column_name in _column_types(connection, name) if column_name not in omitted]
        column_list = ", ".join(f'"{each}"' for each in names)
        for at in range(0, max(1, len(files)), _MAX_IDS_PER_QUERY):
            chunk = files[at : at + _MAX_IDS_PER_QUERY]
            placeholders = ", ".join("?" * len(chunk))
            # Table and column names are constants; the numbers are bound parameters.
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
    """Return the Arrow types of the columns of a table.

    Generated columns are not included: they repeat other columns for the index.
    """
    rows = connection.execute(f"SELECT name, type FROM pragma_table_info('{name}')")
    return {column: _ARROW_TYPES.get(declared, "string") for column, declared in rows}


def write_parquet_tables(connection: Connection, files: Sequence[int], job: ExportJob) -> list[str]:
    """Write each table to a Parquet file; return the paths.

    Raises:
        StenoError: A file cannot be written.
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
