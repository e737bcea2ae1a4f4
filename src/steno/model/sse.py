r"""Server-sent events: the bytes of a stream → events, however the bytes were cut up on the way.

>>> reader = Reader()
>>> reader.feed(b"event: ping\r\nda"), reader.feed(b"ta: {}\r"), reader.feed(b"\n\r\n")
([], [], [Sse(event='ping', data='{}')])
"""

import re
from typing import Final

import msgspec

__all__ = ["MOST", "Reader", "Sse"]

MOST: Final = 32 << 20
"""The most bytes one event may have; results of the API's own tools come whole in one."""

_END: Final = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"
_LINE_FEED: Final = 0x0A


class Sse(msgspec.Struct, frozen=True):
    """One event: its name (`message` where it has none) and its data."""

    event: str
    data: str


class Reader:
    """Reads a stream of events piece by piece.

    An event that the stream ends in the middle of is never given. When one is larger than `most`
    bytes, `overflowed` is set and nothing more is read.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_event", "_held", "_most", "_size", "overflowed")

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._held = bytearray()  # the beginning of a line
        self._after_cr = False
        self._begun = False
        self._event = b""
        self._data: list[bytes] = []
        self._size = 0
        self.overflowed = False

    def feed(self, chunk: bytes) -> list[Sse]:
        """Read some more bytes and return the events that are whole now."""
        events: list[Sse] = []
        if not chunk or self.overflowed:
            return events
        start = 1 if self._after_cr and chunk[0] == _LINE_FEED else 0
        self._after_cr = chunk.endswith(b"\r")
        for end in _END.finditer(chunk, start):
            self._held += chunk[start : end.start()]
            start = end.end()
            if self._overflows():
                return events
            line = bytes(self._held)
            self._held.clear()
            self._take(line, events)
        self._held += chunk[start:]
        self._overflows()
        return events

    def _overflows(self) -> bool:
        if self._size + len(self._held) > self._most:
            self.overflowed = True
            self._held.clear()
            self._data.clear()
        return self.overflowed

    def _take(self, line: bytes, events: list[Sse]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            self._give(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(line)
        elif field == b"event":
            self._event = value
        # What is left is comments, and fields for those who connect again by themselves.

    def _give(self, events: list[Sse]) -> None:
        if self._data:
            name = self._event.decode("utf-8", "replace") or "message"
            events.append(Sse(name, b"\n".join(self._data).decode("utf-8", "replace")))
        self._event = b""
        self._data = []
        self._size = 0
