"""Which dialect a file has, and the file as the real client would have written it."""

from typing import Final

from steno.format.dialects.single import Dialect
from steno.format.lines import LINE_CAP, read_pieces
from steno.format.records import Record
from steno.format.source import Source

__all__ = ["converted", "dialect_of_file", "dialect_of_source"]

_RECORDS_TRIED: Final = 100
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
    """Return the dialect of a file, by the first message that has one."""
    for tried, piece in enumerate(read_pieces(source, cap=cap)):
        if isinstance(piece, Record):
            dialect = piece.dialect
            if dialect != "claude":
                return dialect
            if piece.type in _ROLES and piece.message is not None:
                return "claude"
        if tried >= _RECORDS_TRIED:
            break
    return "claude"


def dialect_of_source(source: Source) -> Dialect:
    """Return the dialect of the file behind a source that `converted` returned."""
    return getattr(source, "dialect", "claude")
