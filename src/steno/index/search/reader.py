"""A hit → the words of its record, read again from the file, or from the archive.

Nothing of a text is kept in the index, so what is shown is what is there now. A record that is gone,
or is not what it was, is said to be so.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, Literal, Self

import msgspec

from steno.errors import Unreadable
from steno.format.records import Record
from steno.format.source import BytesSource, OpenSource
from steno.index.harvest import lines_of
from steno.index.lines import line_of
from steno.index.sources import open_file
from steno.index.state import SHIFT
from steno.index.words import Part, parts_of
from steno.store.read import FileSource

__all__ = ["Lost", "Reader", "Text", "offset_of"]

Lost = Literal["", "gone", "changed"]
_HELD: Final = 8
_OFFSET: Final = (1 << SHIFT) - 1


class Text(msgspec.Struct):
    """What a message says, and where it lies."""

    message: int
    length: int
    turn: int
    time: int | None
    uuid: str = ""
    parts: list[Part] = []
    lost: Lost = ""
    """Why there are no words: the file is gone and not archived, or holds other bytes there."""
    archived: bool = False
    """Whether it was read from the archive."""


def offset_of(message: int) -> int:
    """Return where in its file a message begins."""
    return message & _OFFSET


class Reader:
    """Reads messages again. Close it, or use it in a `with`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sources: dict[int, OpenSource | None] = {}
        self._archived: set[int] = set()
        self._tools: dict[int, dict[tuple[int, str], str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in list(self._sources):
            self._let_go(file)

    def texts(self, messages: Iterable[int]) -> Iterator[Text]:
        """Yield what some messages say; those that are no longer in the index are left out."""
        for message in messages:
            row = self._connection.execute(
                "SELECT length, turn, time FROM messages WHERE id = ?", (message,)
            ).fetchone()
            if row is not None:
                yield self._text(Text(message, *row))

    def _text(self, text: Text) -> Text:
        file = text.message >> SHIFT
        source = self._source(file)
        if source is None:
            text.lost = "gone"
            return text
        text.archived = file in self._archived
        text.lost = "changed"
        with suppress(Unreadable):
            self._fill(text, source.read(offset_of(text.message), text.length))
        return text

    def _fill(self, text: Text, raw: bytes) -> None:
        if len(raw) != text.length:
            return
        for piece in lines_of(BytesSource(raw)):
            if isinstance(piece, tuple):
                line, data = piece[0], piece[1]
            elif isinstance(piece, Record):
                line, data = line_of(piece), piece.line
            else:
                return
            text.uuid = line.uuid or ""
            text.parts = self._with_tools(text.message, parts_of(line, data))
            text.lost = ""
            return

    def _with_tools(self, message: int, parts: list[Part]) -> list[Part]:
        """Give each result the name of the tool it comes from."""
        if any(part.call and not part.tool for part in parts):
            names = self._names(message >> SHIFT)
            for part in parts:
                part.tool = part.tool or names.get((message, part.call), "")
        return parts

    def _names(self, file: int) -> dict[tuple[int, str], str]:
        """Return which tools the results in a file come from."""
        if file not in self._tools:
            if len(self._tools) >= _HELD:
                self._tools.pop(next(iter(self._tools)))
            rows = self._connection.execute(
                "SELECT result, call, name FROM tool_calls WHERE message >= ? AND message < ?",
                (file << SHIFT, (file + 1) << SHIFT),
            )
            self._tools[file] = {(result, call): name for result, call, name in rows}
        return self._tools[file]

    def _source(self, file: int) -> OpenSource | None:
        if file not in self._sources:
            if len(self._sources) >= _HELD:
                self._let_go(next(iter(self._sources)))
            self._sources[file] = self._opened(file)
        return self._sources[file]

    def _opened(self, file: int) -> OpenSource | None:
        try:
            source = open_file(self._connection, file)
        except Unreadable:
            return None
        if source is None:
            return None
        if not isinstance(getattr(source, "original", source), FileSource):
            self._archived.add(file)
        return source

    def _let_go(self, file: int) -> None:
        source = self._sources.pop(file)
        if source is not None:
            source.close()
