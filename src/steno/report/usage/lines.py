"""Every line of a file that has figures, one by one."""

from collections.abc import Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.lines import read_records
from steno.format.source import Source
from steno.index.lines import line_of
from steno.index.moments import millis
from steno.index.state import Row
from steno.index.tally import figures_of, key_of
from steno.report.usage.scan import brief_of
from steno.session.story.usage import SYNTHETIC
from steno.store.archive.opened import open_anywhere

__all__ = ["Figured", "figures_in"]

_WORD: Final = b'"usage"'
_STEP: Final = 1 << 20


class Figured(msgspec.Struct):
    """A line with figures."""

    key: str
    line: int
    """Counted from one."""
    offset: int
    figures: tuple[int, ...]
    synthetic: bool
    """Whether the client wrote it without asking anybody."""
    row: Row
    """What it says, in the order of the columns of `usage`."""


def figures_in(path: str, file: int, shift: int = 0) -> Iterator[Figured]:
    """Yield the lines with figures of a file; nothing where its bytes are gone for good.

    `shift` is what turns the number of the file into that of its messages.
    """
    try:
        source = open_anywhere(path)
    except Unreadable:
        return
    with source:
        counting = _Counting(source)
        for record in read_records(source):
            if _WORD not in record.line:
                continue
            line = brief_of(record.line) or line_of(record)
            body = line.message
            usage = body.usage if body is not None else None
            if line.type != "assistant" or body is None or usage is None:
                continue
            message = (file << shift) + record.offset if shift else record.offset
            figures = figures_of(usage)
            key, model = key_of(line, message), body.model or ""
            time, branch = millis(line.timestamp), line.git_branch or ""
            agent = (line.agent_id or "") if line.is_sidechain else ""
            yield Figured(
                key,
                counting.line_at(record.offset),
                record.offset,
                figures,
                model == SYNTHETIC,
                (file, key, message, 1, 0, time, model, branch, agent, *figures, 0, 0, 0),
            )


class _Counting:
    """Says which line an offset is in, of offsets that rise."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0
        self._line = 1

    def line_at(self, offset: int) -> int:
        while self._at < offset:
            part = self._source.read(self._at, min(_STEP, offset - self._at))
            if not part:
                break
            self._line += part.count(b"\n")
            self._at += len(part)
        return self._line
