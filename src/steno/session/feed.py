"""Bytes of a growing file, in whatever portions they are read → pieces, each as soon as it is whole.

A line that is still being written waits. Where the pieces lie does not depend on how the bytes were
cut.
"""

from collections.abc import Iterator
from typing import Final

from steno.format.lines import LINE_CAP, Stretch, make_record, read_pieces
from steno.format.records import Gap, Piece
from steno.format.spans import Damage, Span

__all__ = ["Feed"]

_HEAD: Final = 4096


class Feed:
    """Takes bytes in and gives pieces out."""

    def __init__(self, start: int = 0, *, cap: int = LINE_CAP) -> None:
        self.offset = start
        """Where the line begins that is not whole yet."""
        self.held = 0
        """How many bytes of it are there."""
        # In the middle of a file nobody knows where a line begins.
        self._inside = start > 0
        self._cap = cap
        self._parts: list[bytes] = []

    def take(self, data: bytes) -> Iterator[Piece]:
        """Take in the next bytes of the file and yield what has become whole."""
        end = data.rfind(b"\n") + 1
        if end:
            yield from self._lines(data[:end])
        self._hold(data[end:])
        yield from self._whole_at_the_end()

    def _lines(self, data: bytes) -> Iterator[Piece]:
        if self._inside:
            begin = data.find(b"\n") + 1
            self.offset += self.held + begin
            data, self._inside = data[begin:], False
        elif self.held > self._cap:
            end = data.find(b"\n") + 1
            yield self._oversize(self.held + end)
            self.offset += self.held + end
            data = data[end:]
        else:
            data = b"".join((*self._parts, data))
        self._parts, self.held = [], 0
        start, self.offset = self.offset, self.offset + len(data)
        yield from read_pieces(_Stretch(data, start), start, cap=self._cap)

    def _hold(self, rest: bytes) -> None:
        if not rest:
            return
        self.held += len(rest)
        if self._inside:
            return
        if self.held <= self._cap:
            self._parts.append(rest)
        elif len(self._parts) != 1 or len(self._parts[0]) > _HEAD:
            self._parts = [b"".join((*self._parts, rest))[:_HEAD]]

    def _whole_at_the_end(self) -> Iterator[Piece]:
        """Yield a last line that wants nothing but its newline: no part of a record is one."""
        if not self._parts or self.held > self._cap or not self._parts[-1].endswith(b"}"):
            return
        record = make_record(Stretch(b"".join(self._parts), self.offset, ended=False))
        if record is not None:
            self.offset += self.held
            self._parts, self.held = [], 0
            yield record

    def _oversize(self, length: int) -> Gap:
        note = Damage("line.oversize", Span(self.offset, length), f"{length:,} bytes")
        return Gap(self.offset, length, self._parts[0][:_HEAD] if self._parts else b"", (note,))


class _Stretch:
    """Some bytes of a file, at their place in it."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start

    @property
    def size(self) -> int:
        """Where they end."""
        return self._start + len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        """Return some of them."""
        return self._data[offset - self._start : offset - self._start + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """Yield them from `start` on."""
        yield self._data[start - self._start :]
