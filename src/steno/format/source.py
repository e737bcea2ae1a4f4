"""Byte sources that can be read by span, the spans, and notes on damaged bytes."""

from collections.abc import Iterator
from typing import Final, Protocol, Self

import msgspec

DAMAGE_HINTS: Final[dict[str, str]] = {
    "line.torn": "the writer was cut off inside this record; what follows it is intact",
    "line.glued": "a newline is missing between two records; both were read",
    "line.spliced": "a cut-off record stands before this one on the same line; this one was read",
    "line.nul-run": "zero bytes left by a crash of the file system; what follows them was read",
    "line.bom": "a byte order mark; harmless",
    "line.crlf": "a Windows line ending; harmless",
    "line.utf8": "bytes that are not UTF-8; shown as \N{REPLACEMENT CHARACTER}",
    "line.surrogate": "half of a surrogate pair; shown as \N{REPLACEMENT CHARACTER}",
    "line.control": "a raw control character inside a string; the real client skips this line",
    "line.number": "a number JSON does not have; the real client skips this line",
    "line.oversize": "longer than the cap; `load` and `read_pieces` take a higher one as `cap=`",
    "line.depth": "nested deeper than any reader can be expected to follow",
    "line.bigint": "an integer that JavaScript cannot hold exactly",
    "line.duplicate-key": "a key stands twice in one object; the last one counts",
    "line.not-object": "JSON, but not an object",
    "line.not-json": "not JSON",
    "sidecar.not-json": "a small file beside the session that is not JSON",
    "sidecar.not-object": "a small file beside the session that is JSON of another shape",
    "sidecar.shape": "a field of a small file is not of the type it should be",
}
"""One sentence per damage id: what it means for the reader."""


class Span(msgspec.Struct, frozen=True):
    """A stretch of bytes in one file."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset of the first byte behind the span."""
        return self.offset + self.length


class Damage(msgspec.Struct, frozen=True):
    """A note about bytes that are not as they should be. Reading goes on behind it."""

    id: str
    span: Span
    message: str = ""

    @property
    def hint(self) -> str:
        """What this kind of damage means, in one sentence."""
        return DAMAGE_HINTS.get(self.id, "")


CHUNK_SIZE: Final = 1 << 20


class Source(Protocol):
    """A sized stretch of bytes. `steno.store.file_source` makes one from a file."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        ...

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on, in order."""
        ...


class OpenSource(Source, Protocol):
    """A source that holds a file open, to be closed or used in a `with`."""

    def close(self) -> None:
        """Give the file back; harmless when repeated."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class BytesSource:
    """A source over bytes that are already in memory, which begin at the offset `start` of their file."""

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._start = start

    @property
    def size(self) -> int:
        """The offset at which they end."""
        return self._start + len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        offset -= self._start
        return self._data[offset : offset + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on at once."""
        if start < self.size:
            yield self._data[start - self._start :]
