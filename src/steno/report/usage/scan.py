"""Token figures straight from a file: only the lines that have some are decoded.

Lines are found by the word `"usage"`, which cannot stand inside a string of JSON, where its quotes
would be escaped. Whatever is odd about a file (a line that is no record, fields of unexpected
types) has all of it read again by the format room, so that both ways count the same.
"""

from io import FileIO
from typing import Any, Final

import msgspec

from steno.errors import Unreadable
from steno.format.lines import LINE_CAP
from steno.format.loose import REFUSED
from steno.index.lines import Usage
from steno.index.moments import millis
from steno.index.state import SHIFT, Row
from steno.index.tally import Tally
from steno.session.story.usage import SYNTHETIC

__all__ = ["Brief", "Found", "Scanner", "brief_of"]

_WORD: Final = '"usage"'
_NEWLINE: Final = "\n"
_OPEN: Final = ord("{")
_BUFFER: Final = 4 << 20
_HEAD_LINES: Final = 64


class _Body(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class _Fork(msgspec.Struct, rename="camel", gc=False):
    session_id: str | None = None


class Brief(msgspec.Struct, rename="camel", gc=False):
    """A line, as far as its figures and the place they belong to are concerned."""

    type: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | int | float | None = None
    agent_id: str | None = None
    request_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    is_sidechain: bool | None = None
    forked_from: _Fork | None = None
    message: _Body | None = None


class _Head(msgspec.Struct, rename="camel", gc=False):
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | int | float | None = None
    agent_id: str | None = None
    cwd: str | None = None
    is_sidechain: bool | None = None


class Found(msgspec.Struct):
    """What a file says of itself in its first records, and the figures in it."""

    path: str
    session: str = ""
    agent: str = ""
    project: str = ""
    started: int | None = None
    skips: bool = False
    """Whether it has lines with figures that the client made up."""
    rows: dict[str, Row] = {}

    def note(self, line: Any) -> None:
        """Keep what a record says, where none before it did."""
        if line.uuid is None:
            return
        self.project = self.project or line.cwd or ""
        self.session = self.session or line.session_id or ""
        if line.is_sidechain:
            self.agent = self.agent or line.agent_id or ""
        if self.started is None:
            self.started = millis(line.timestamp)

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is to be learned from further records."""
        return bool(self.project and self.session) and self.started is not None


class _Odd(Exception):
    """Something that the quick way does not understand."""


_brief: Final = msgspec.json.Decoder(Brief).decode
_head: Final = msgspec.json.Decoder(_Head).decode


def brief_of(raw: bytes) -> Brief | None:
    """Return a line as far as its figures are concerned; None where that takes more care."""
    try:
        return _brief(raw)
    except REFUSED:
        return None


class Scanner:
    """Reads file after file through one buffer."""

    def __init__(self) -> None:
        self._make(_BUFFER)

    def _make(self, size: int) -> None:
        import stringzilla

        library: Any = stringzilla
        self._view = memoryview(bytearray(size))
        self._text: Any = library.Str(self._view)

    def scan(self, path: str, number: int) -> Found:
        """Return the figures of a file, its rows as those of `usage` with `number` for the file.

        The time of a row is a number, or still the text that the record has.

        Raises:
            Unreadable: it cannot be read.
        """
        found, tally = Found(path), Tally(number)
        try:
            self._read(path, number << SHIFT, found, tally)
        except _Odd:
            return _carefully(path, number)
        except (OSError, ValueError) as error:
            raise Unreadable(f"cannot read {path}: {error}") from error
        found.rows = tally.by_key()
        return found

    def _read(self, path: str, base: int, found: Found, tally: Tally) -> None:
        """Read a file; its messages are numbered from `base`."""
        kept = 0
        known = False
        with FileIO(path) as file:
            while got := file.readinto(self._view[kept:]):
                end = kept + got
                stop = self._text.rfind(_NEWLINE, kept, end) + 1
                if not known and stop:
                    known = self._begin(stop, found)
                if stop:
                    self._lines(stop, base, found, tally)
                    self._view[: end - stop] = self._view[stop:end]
                kept = end - stop
                base += stop
                if kept == len(self._view):
                    self._grow()
        if kept:
            if not known:
                self._begin(kept, found)
            self._lines(kept, base, found, tally)

    def _grow(self) -> None:
        """Make room for a line that is longer than the buffer."""
        size = len(self._view)
        if size > LINE_CAP:
            raise _Odd
        before = self._view
        self._make(4 * size)
        self._view[:size] = before

    def _begin(self, stop: int, found: Found) -> bool:
        """Learn from the first records what the file is about."""
        view, find, start = self._view, self._text.find, 0
        for _ in range(_HEAD_LINES):
            end = find(_NEWLINE, start, stop)
            end = stop if end < 0 else end
            try:
                line = _head(view[start:end])
            except REFUSED:
                raise _Odd from None
            if view[start] != _OPEN:
                raise _Odd
            found.note(line)
            start = end + 1
            if found.is_complete:
                return True
            if start >= stop:
                return False
        raise _Odd

    def _lines(self, stop: int, base: int, found: Found, tally: Tally) -> None:
        """Take the figures of all the lines in the buffer up to `stop`."""
        view, find, rfind, decode = self._view, self._text.find, self._text.rfind, _brief
        start = place = lines = 0
        last: Brief | None = None
        name, output, stamp = "", 0, None
        try:
            while (at := find(_WORD, start, stop)) >= 0:
                start = max(start, rfind(_NEWLINE, start, at) + 1)
                end = find(_NEWLINE, at, stop)
                end = stop if end < 0 else end
                line = decode(view[start:end])
                body = line.message
                if line.type != "assistant" or body is None or body.usage is None:
                    pass
                elif body.model == SYNTHETIC:
                    # It may bear the id of a response, and must not stand for it.
                    found.skips = True
                else:
                    given = body.usage.output_tokens or 0
                    if body.id and body.id == name and given >= output:
                        # The lines of a response mostly follow each other: the last one will do.
                        lines += 1
                    else:
                        if last is not None:
                            _take(last, base + place, stamp, lines, tally)
                        name, stamp, lines = body.id, line.timestamp, 1
                    last, place, output = line, start, given
                start = end
        except REFUSED:
            raise _Odd from None
        if last is not None:
            _take(last, base + place, stamp, lines, tally)


def _take(line: Brief, message: int, stamp: Any, lines: int, tally: Tally) -> None:
    if stamp is not None and stamp.__class__ is not str:
        raise _Odd
    if line.is_sidechain and not line.agent_id:
        # Which sub-agent it is of depends on all the records before it.
        raise _Odd
    agent = (line.agent_id or "") if line.is_sidechain else ""
    tally.take(line, message, 0, stamp, line.git_branch or "", agent, lines)


def _carefully(path: str, number: int) -> Found:
    """Read a file record by record, whatever is wrong with it."""
    from steno.format.lines import read_records
    from steno.index.lines import line_of
    from steno.store.read import FileSource

    found, tally = Found(path), Tally(number)
    with FileSource(path) as source:
        for record in read_records(source):
            line = line_of(record)
            found.note(line)
            if line.type != "assistant":
                continue
            body = line.message
            if body is not None and body.usage is not None and body.model == SYNTHETIC:
                found.skips = True
            agent = (line.agent_id or found.agent) if line.is_sidechain else ""
            branch = line.git_branch or ""
            message = (number << SHIFT) + record.offset
            tally.take(line, message, 0, millis(line.timestamp), branch, agent)
    found.rows = tally.by_key()
    return found
