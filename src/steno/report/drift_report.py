"""Format drift: records, blocks and fields that are not in the catalogue, summarized."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from steno.check.drift import Observer
from steno.check.drift_model import Code, Drift
from steno.errors import Unreadable
from steno.format.catalogue import version_key
from steno.format.lines import read_pieces
from steno.format.records import PUBLISHED_DESCRIPTIONS_PAGE, Record
from steno.store.discovery import DiscoveredFile, Problem
from steno.store.file_source import FileSource

CODE_DESCRIPTIONS: Final[dict[Code, str]] = {
    "UNKNOWN_TYPE": "unknown record types",
    "PUBLISHED_FORM": f"record types found in a published description but not in Claude Code; see {PUBLISHED_DESCRIPTIONS_PAGE}",
    "NEW_BLOCK": "unknown content blocks",
    "NEW_TOOL": "unknown tools",
    "NEW_FIELD": "unknown fields",
    "NEW_VALUE": "unknown values",
    "TYPE_MISMATCH": "fields with a different JSON type",
    "MISSING_FIELD": "missing fields",
}
"""Description of each drift code, in the order of a report."""


def observe_files(
    files: Iterable[DiscoveredFile],
    observer: Observer,
    *,
    problems: list[Problem],
    progress: Callable[[int], None] | None = None,
) -> None:
    """Pass every record of the files to an observer; unreadable files are added to `problems`."""
    for session_file in files:
        try:
            with FileSource(session_file.path) as source:
                for piece in read_pieces(source):
                    if progress is not None:
                        progress(piece.length)
                    if isinstance(piece, Record):
                        observer.feed(piece)
        except Unreadable as error:
            problems.append(Problem("unreadable", session_file.path, str(error)))
        observer.end_file()


def merge_drift(drift_lists: Iterable[Iterable[Drift]]) -> list[Drift]:
    """Merge the drift of several observers."""
    merged_by_key: dict[tuple[str, ...], Drift] = {}
    for drift in (drift_item for drifts in drift_lists for drift_item in drifts):
        key = (drift.code, drift.kind, drift.path, drift.name)
        earlier = merged_by_key.get(key)
        merged_by_key[key] = drift if earlier is None else _add_drift(earlier, drift)
    return list(merged_by_key.values())


def _add_drift(first: Drift, second: Drift) -> Drift:
    versions = {*first.versions, *second.versions}
    return msgspec.structs.replace(
        first,
        count=first.count + second.count,
        versions={
            version: first.versions.get(version, 0) + second.versions.get(version, 0)
            for version in sorted(versions, key=version_key)
        },
        types=tuple(sorted({*first.types, *second.types})),
    )


class DriftRow(msgspec.Struct):
    """A difference from the catalogue that several record types share."""

    code: Code
    kinds: list[str]
    path: str
    count: int
    versions: list[str]
    sample: str


def drift_rows(drifts: Iterable[Drift]) -> list[DriftRow]:
    """Return drift as rows, one for a difference that several record types share."""
    rows: dict[tuple[str, ...], DriftRow] = {}
    for drift in drifts:
        path = f"{drift.path} = {drift.name}" if drift.name else drift.path
        key = (drift.code, path) if path else (drift.code, path, drift.kind)
        row = rows.setdefault(key, DriftRow(drift.code, [], path, 0, [], _sample_of(drift)))
        row.kinds.append(drift.kind)
        row.count += drift.count
        row.versions = sorted({*row.versions, *drift.versions}, key=version_key)
    return sorted(rows.values(), key=_sort_key)


def _sort_key(row: DriftRow) -> tuple[int, int, str]:
    return list(CODE_DESCRIPTIONS).index(row.code), -row.count, row.path


def _sample_of(drift: Drift) -> str:
    if drift.code == "TYPE_MISMATCH":
        return f"{'/'.join(drift.types)}, not {'/'.join(drift.known)}"
    return "" if drift.name else drift.sample
