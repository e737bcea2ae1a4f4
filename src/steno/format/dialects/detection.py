"""Whether a file has records in a dialect, and the file as the real client would have written it.

A file of a dialect shows it at its beginning. Any other file is read first, as nearly none has such
a record; whoever reads it sees the first one, and reads the file again, converted.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeGuard

from steno.format.lines import LINE_CAP, read_bytes, read_pieces
from steno.format.records import ROLES, Dialect, Piece, Record
from steno.format.source import OpenSource, Source

if TYPE_CHECKING:
    from steno.format.dialects.converted_source import ConvertedSource


_MAX_RECORDS: Final = 100
_HEAD_SIZE: Final = 1 << 16
_CERTAIN_MARGIN: Final = 2
"""How many more messages must be of one kind than of others for the rest not to be looked at."""


def convert_if_dialect(source: Source, *, cap: int = LINE_CAP) -> Source:
    """Return a source as the real client would have written it, if its beginning is in a dialect.

    Records of a dialect further down are found by whoever reads them: `convert_source`.
    """
    if is_converted(source) or not begins_in_dialect(source, cap=cap):
        return source
    return convert_source(source, cap=cap)


def convert_source(source: Source, *, cap: int = LINE_CAP) -> "ConvertedSource":
    """Return a source as the real client would have written it."""
    from steno.format.dialects.converted_source import ConvertedSource

    return source if isinstance(source, ConvertedSource) else ConvertedSource(source, cap=cap)


def convert_open(source: OpenSource, *, known: bool | None = None) -> OpenSource:
    """Return an open file as the real client would have written it; it is closed with it.

    `known` says whether it has records in a dialect; without it only its beginning is looked at.
    """
    if not (begins_in_dialect(source) if known is None else known):
        return source
    return convert_source(source)


def begins_in_dialect(source: Source, *, cap: int = LINE_CAP) -> bool:
    """Whether most of the first messages of a file are written in a dialect."""
    votes: Counter[Dialect] = Counter()
    for number, piece in enumerate(_first_pieces(source, cap)):
        if isinstance(piece, Record):
            votes.update(dialect_votes(piece))
            in_dialect = votes.total() - votes["claude"]
            if abs(votes["claude"] - in_dialect) > _CERTAIN_MARGIN:
                break
        if number >= _MAX_RECORDS:
            break
    return votes.total() > 2 * votes["claude"]


def _first_pieces(source: Source, cap: int) -> Iterable[Piece]:
    """Return the pieces a file begins with; mostly a little of it is enough."""
    head = source.read(0, _HEAD_SIZE)
    end = len(head) if len(head) == source.size else head.rfind(b"\n") + 1
    return read_bytes(head[:end]) if head.count(b"\n", 0, end) > _CERTAIN_MARGIN else read_pieces(source, cap=cap)


def dialect_votes(record: Record) -> tuple[Dialect, ...]:
    """Return what a record is written in, where it says so."""
    kind = record.type
    if kind in ROLES and record.message is not None and record.message.role:
        return ("claude",)
    dialect = record.dialect
    return (dialect,) if dialect != "claude" else ()


def dialect_of_source(source: Source) -> Dialect:
    """Return the dialect that most messages of a file are written in."""
    return source.dialect if is_converted(source) else "claude"


def is_converted(source: object) -> TypeGuard["ConvertedSource"]:
    """Whether a source is the converted form of another one."""
    return getattr(source, "original", None) is not None and hasattr(source, "original_span")


def hidden_ids(source: object) -> frozenset[str]:
    """Return the ids of what is not part of a conversation: deleted, or on an inactive branch."""
    return source.hidden_ids() if is_converted(source) else frozenset()


def dialect_label(source: object) -> str:
    """Return what a file with records in a dialect is, in a few words; nothing for any other."""
    return source.label if is_converted(source) else ""


def records_in_dialect(source: object) -> int:
    """Return how many records of a file are in a form that the real client does not write."""
    return source.records_in_dialect if is_converted(source) else 0
