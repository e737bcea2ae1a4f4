"""What files contain that the catalogue does not know: observed, added up and told."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from steno.check.drift import Observer
from steno.check.observed import Code, Drift
from steno.check.published import PAGE
from steno.errors import Unreadable
from steno.format.catalogue import version_key
from steno.format.lines import read_pieces
from steno.format.records import Record
from steno.store.found import Found, Problem
from steno.store.read import FileSource

__all__ = ["MEANS", "Row", "merged", "observe", "rows_of"]

MEANS: Final[dict[Code, str]] = {
    "UNKNOWN_TYPE": "kinds of record that the catalogue does not have",
    "PUBLISHED_FORM": f"kinds that a published description has and no client writes; see {PAGE}",
    "NEW_BLOCK": "content blocks that it does not have",
    "NEW_TOOL": "tools that it does not have",
    "NEW_FIELD": "fields that it does not have",
    "NEW_VALUE": "values that it does not list",
    "TYPE_MISMATCH": "fields of another JSON type",
    "MISSING_FIELD": "fields that were always there, and are not",
}
"""What each code says, in the order of a report."""


def observe(
    files: Iterable[Found],
    observer: Observer,
    *,
    problems: list[Problem],
    done: Callable[[int], None] | None = None,
) -> None:
    """Show an observer every record of some files. What cannot be read goes to `problems`."""
    for found in files:
        try:
            with FileSource(found.path) as source:
                for piece in read_pieces(source):
                    if done is not None:
                        done(piece.length)
                    if isinstance(piece, Record):
                        observer.feed(piece)
        except Unreadable as error:
            problems.append(Problem("unreadable", found.path, str(error)))
        observer.end_file()


def merged(several: Iterable[Iterable[Drift]]) -> list[Drift]:
    """Return what was observed in several lots as if it had been one."""
    known: dict[tuple[str, ...], Drift] = {}
    for drift in (each for drifts in several for each in drifts):
        key = (drift.code, drift.kind, drift.path, drift.name)
        before = known.get(key)
        known[key] = drift if before is None else _sum(before, drift)
    return list(known.values())


def _sum(one: Drift, other: Drift) -> Drift:
    both = {*one.versions, *other.versions}
    return msgspec.structs.replace(
        one,
        count=one.count + other.count,
        versions={
            each: one.versions.get(each, 0) + other.versions.get(each, 0)
            for each in sorted(both, key=version_key)
        },
        types=tuple(sorted({*one.types, *other.types})),
    )


class Row(msgspec.Struct):
    """What is the same on several kinds of record, in one line."""

    code: Code
    kinds: list[str]
    path: str
    count: int
    versions: list[str]
    sample: str


def rows_of(drifts: Iterable[Drift]) -> list[Row]:
    """Return what was observed, what is the same on several kinds in one row."""
    rows: dict[tuple[str, ...], Row] = {}
    for drift in drifts:
        path = f"{drift.path} = {drift.name}" if drift.name else drift.path
        key = (drift.code, path) if path else (drift.code, path, drift.kind)
        row = rows.setdefault(key, Row(drift.code, [], path, 0, [], _sample(drift)))
        row.kinds.append(drift.kind)
        row.count += drift.count
        row.versions = sorted({*row.versions, *drift.versions}, key=version_key)
    return sorted(rows.values(), key=_order)


def _order(row: Row) -> tuple[int, int, str]:
    return list(MEANS).index(row.code), -row.count, row.path


def _sample(drift: Drift) -> str:
    if drift.code == "TYPE_MISMATCH":
        return f"{'/'.join(drift.types)}, not {'/'.join(drift.known)}"
    return "" if drift.name else drift.sample
