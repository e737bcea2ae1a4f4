"""Bytes that can be read again by span: the seam between the pure rooms and the file system."""

from collections.abc import Iterator
from typing import Final, Protocol, Self

__all__ = ["CHUNK", "BytesSource", "OpenSource", "Source"]

CHUNK: Final = 1 << 20


class Source(Protocol):
    """A sized stretch of bytes. `steno.store.read` makes one from a file."""

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
    """A source over bytes that are already in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self._data[offset : offset + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield everything from `start` on at once: it is in memory as it is."""
        if start < len(self._data):
            yield self._data[start:]
