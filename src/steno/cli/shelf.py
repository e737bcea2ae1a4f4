"""What is in the archive: by the names that people give, and as lines to list."""

import os
from collections.abc import Iterator
from typing import Any, Final

from steno.cli.names import stem_of, text_of
from steno.cli.table import Column, layout
from steno.errors import Ambiguous, NotFound, Unreadable
from steno.report import clock, words
from steno.safe.terminal import Line, one_line
from steno.store.archive.archive import Archive
from steno.store.archive.catalogue import Entry
from steno.store.archive.index import File
from steno.store.library import find

__all__ = [
    "entry_json",
    "files_of",
    "is_gone",
    "named_entries",
    "restorable",
    "sessions_told",
    "table",
    "total_told",
]

_NANO: Final = 1e9
_SHORT: Final = 8
_LONG: Final = 2000
_LISTED: Final = 6


def named_entries(
    archive: Archive, names: tuple[str, ...], where: tuple[str, ...]
) -> list[Entry] | None:
    """Return what was kept of sessions that are named; None when none is."""
    if not names:
        return None
    entries: dict[str, Entry] = {}
    for name in names:
        entry = _entry(archive, name, where)
        entries[entry.path] = entry
    return list(entries.values())


def _entry(archive: Archive, name: str, where: tuple[str, ...]) -> Entry:
    """Return what was kept under a name; the folder that it lay in may be gone."""
    kept = archive.named(name)
    if len(kept) == 1 and stem_of(kept[0].path).lower() == name.lower():
        return kept[0]
    try:
        found = find(name, where)
    except (NotFound, Unreadable):
        if len(kept) == 1:
            return kept[0]
        if kept:
            paths = tuple(each.path for each in kept)
            about = f"{len(kept)} sessions in the archive go by {name!r}"
            hint = f"one of: {', '.join(paths[:_LISTED])}{', …' if len(paths) > _LISTED else ''}"
            raise Ambiguous(about, candidates=paths, hint=hint) from None
        raise
    return archive.entry(found.path)


def restorable(archive: Archive, to: str | None) -> list[Entry]:
    """Return what there is to put back: all that is gone, to another folder all that is kept."""
    return [each for each in archive.entries() if to is not None or is_gone(each)]


def sessions_told(number: int) -> str:
    """Return how many sessions, in words."""
    return words.count(number, "session")


def total_told(archive: Archive) -> str:
    """Return what is in the archive in all, in words."""
    entries = archive.entries()
    files = words.count(sum(entry.files for entry in entries), "file")
    size = words.size(sum(entry.total for entry in entries))
    packed = words.size(sum(entry.packed for entry in entries))
    return f"In the archive: {sessions_told(len(entries))}, {files}, {size} in {packed}."


def table(entries: list[Entry], width: int) -> list[Line]:
    """Return the sessions that are kept, one a line."""
    if not entries:
        return []
    several = [f"{e.generations:,} generations" if e.generations > 1 else "" for e in entries]
    columns = [
        Column("ID", [one_line(stem_of(e.path)[:_SHORT], _SHORT) for e in entries], "bold"),
        Column("FOLDER", [one_line(_folder(e.path), 200) for e in entries], flexible=True),
        Column("FILES", [f"{e.files:,}" for e in entries], right=True),
        Column("SIZE", [words.size(e.total) for e in entries], right=True),
        Column("PACKED", [words.size(e.packed) for e in entries], right=True),
        Column("", several, needs=20),
        Column("", ["archived only" if is_gone(e) else "" for e in entries], "dim", needs=10),
    ]
    heads, cells = layout(columns, width)
    return [heads, *cells]


def _folder(path: str) -> str:
    return os.path.basename(os.path.dirname(path))


def is_gone(entry: Entry) -> bool:
    """Say whether a session is in the archive only."""
    return not os.path.lexists(entry.path)


def files_of(archive: Archive, entry: Entry) -> Iterator[Line]:
    """Yield what is kept of a session, every generation of every file."""
    index = archive.index(entry)
    yield [(one_line(entry.path, _LONG), "bold")]
    for file in index.standing():
        count = len(index.generations(file.path))
        generation = f"  generation {file.generation} of {count}" if count > 1 else ""
        sizes = f"{words.size(file.size)} in {words.size(file.packed)}{generation}"
        yield ["  ", one_line(_below(file.path, entry.path), _LONG), "  ", (sizes, "dim")]
    yield [(f"  in {one_line(archive.folder_of(entry), _LONG)}", "dim")]


def _below(path: str, session: str) -> str:
    return path.removeprefix(os.path.dirname(session) + os.sep)


def entry_json(archive: Archive, entry: Entry, *, inside: bool) -> dict[str, Any]:
    """Return a session for programs; `inside` adds what is kept of it."""
    told: dict[str, Any] = {
        "id": text_of(stem_of(entry.path)),
        "path": text_of(entry.path),
        "folder": text_of(archive.folder_of(entry)),
        "size": entry.size,
        "modified": clock.iso(entry.mtime_ns / _NANO),
        "files": entry.files,
        "total": entry.total,
        "packed": entry.packed,
        "generations": entry.generations,
        "archived_only": is_gone(entry),
    }
    if inside:
        told["contents"] = [_file_json(file) for file in archive.index(entry).standing()]
    return told


def _file_json(file: File) -> dict[str, Any]:
    return {
        "path": text_of(file.path),
        "role": file.role,
        "generation": file.generation,
        "size": file.size,
        "packed": file.packed,
        "copy": file.name,
    }
