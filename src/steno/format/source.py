"""Byte sources that can be read by range, spans, and notes on damaged bytes."""

from collections.abc import Iterator
from typing import Final, Protocol, Self

import msgspec

DAMAGE_HINTS: Final[dict[str, str]] = {
    "line.torn": "incomplete record; the following records are intact",
    "line.glued": "missing newline between two records; both were read",
    "line.spliced": "incomplete record earlier on the same line; this record was read",
    "line.nul-run": "zero bytes, left by a file system crash; the following bytes were read",
    "line.bom": "byte order mark; harmless",
    "line.crlf": "Windows line ending; harmless",
    "line.utf8": "invalid UTF-8; shown as \N{REPLACEMENT CHARACTER}",
    "line.surrogate": "half of a surrogate pair; shown as \N{REPLACEMENT CHARACTER}",
    "line.control": "unescaped control character in a string; Claude Code skips this line",
    "line.number": "number that JSON does not allow; Claude Code skips this line",
    "line.oversize": "line longer than the limit; pass a higher `cap=` to `load` or `read_pieces`",
    "line.depth": "nested too deeply",
    "line.bigint": "integer that JavaScript cannot represent exactly",
    "line.duplicate-key": "duplicate key in an object; the last one counts",
    "line.not-object": "JSON, but not an object",
    "line.not-json": "not JSON",
    "sidecar.not-json": "sidecar file that is not JSON",
    "sidecar.not-object": "sidecar file with unexpected JSON",
    "sidecar.shape": "field of a sidecar file with the wrong type",
}
"""Description of each damage ID."""


class Span(msgspec.Struct, frozen=True):
    """A range of bytes in one file."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the span."""
        return self.offset + self.length


class Damage(msgspec.Struct, frozen=True):
    """A note about damaged bytes. Reading continues after them."""

    id: str
    span: Span
    message: str = ""

    @property
    def hint(self) -> str:
        """Description of this kind of damage."""
        return DAMAGE_HINTS.get(self.id, "")


CHUNK_SIZE: Final = 1 << 20


class Source(Protocol):
    """A range of bytes with a known size. `steno.store.file_source` reads it from a file."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        ...

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `start` on, in order."""
        ...


class OpenSource(Source, Protocol):
    """A source that holds a file open; close it, or use it in a `with` block."""

    def close(self) -> None:
        """Close the file; can be called repeatedly."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class BytesSource:
    """A source over bytes in memory, which start at the offset `start` of their file."""

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._start = start

    @property
    def size(self) -> int:
        """Offset of the end of the bytes."""
        return self._start + len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        offset -= self._start
        return self._data[offset : offset + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `start` on at once."""
        if start < self.size:
            yield self._data[start - self._start :]
