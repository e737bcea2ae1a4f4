"""Which dialect a file has, and the file as the real client would have written it."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from steno.format.dialects.names import Dialect
from steno.format.lines import LINE_CAP, read_bytes, read_pieces
from steno.format.records import Piece, Record
from steno.format.source import OpenSource, Source

__all__ = ["converted", "converted_file", "dialect_of_file", "dialect_of_source"]

_RECORDS_TRIED: Final = 100
_HEAD: Final = 1 << 16
_CERTAIN: Final = 2
"""How many more messages must be of one kind than of others for the rest not to be looked at."""
_ROLES: Final = frozenset(("user", "assistant"))


def converted(source: Source, *, cap: int = LINE_CAP) -> Source:
    """Return a source as the real client would have written it: itself, if the client did."""
    if dialect_of_source(source) != "claude":
        return source
    dialect = dialect_of_file(source, cap=cap)
    if dialect == "claude":
        return source
    from steno.format.dialects.converted import ConvertedSource

    return ConvertedSource(source, dialect, cap=cap)


def dialect_of_file(source: Source, *, cap: int = LINE_CAP) -> Dialect:
    """Return the dialect of a file, by what most of its first messages are written in.

    A record that looks like one of a dialect may stand in a file of the real client, damaged.
    """
    votes: Counter[Dialect] = Counter()
    for tried, piece in enumerate(_first_pieces(source, cap)):
        if isinstance(piece, Record):
            votes.update(_vote(piece))
            others = votes.total() - votes["claude"]
            if abs(votes["claude"] - others) > _CERTAIN:
                break
        if tried >= _RECORDS_TRIED:
            break
    others = votes.total() - votes["claude"]
    if others <= votes["claude"]:
        return "claude"
    return "spec-000" if votes["spec-000"] >= votes["spec-004"] else "spec-004"


def _first_pieces(source: Source, cap: int) -> Iterable[Piece]:
    """Return the pieces a file begins with; mostly a little of it is enough."""
    head = source.read(0, _HEAD)
    end = len(head) if len(head) == source.size else head.rfind(b"\n") + 1
    return (
        read_bytes(head[:end])
        if head.count(b"\n", 0, end) > _CERTAIN
        else read_pieces(source, cap=cap)
    )


def _vote(record: Record) -> tuple[Dialect, ...]:
    """Return what a record is written in, where it says so."""
    kind = record.type
    if kind in _ROLES and record.message is not None and record.message.role:
        return ("claude",)
    dialect = record.dialect
    return (dialect,) if dialect != "claude" else ()


def converted_file(source: OpenSource) -> OpenSource:
    """Return an open file as the real client would have written it; it is closed with it."""
    dialect = dialect_of_file(source)
    if dialect == "claude":
        return source
    from steno.format.dialects.converted import ConvertedSource

    return ConvertedSource(source, dialect)


def dialect_of_source(source: Source) -> Dialect:
    """Return the dialect of the file behind a source that `converted` returned."""
    return getattr(source, "dialect", "claude")
