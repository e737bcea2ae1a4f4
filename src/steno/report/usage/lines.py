"""Every line of a file that has figures, one by one."""

from collections.abc import Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.lines import read_records
from steno.format.records import Record
from steno.format.source import Source
from steno.index.lines import Usage, line_of
from steno.index.moments import millis
from steno.index.state import SHIFT, Row
from steno.index.tally import MOST, figures_of, key_of
from steno.report.usage.scan import brief_of
from steno.session.story.usage import SYNTHETIC
from steno.store.archive.opened import open_anywhere

__all__ = ["Figured", "figures_around", "figures_in"]

_WORD: Final = b'"usage"'
_STEP: Final = 1 << 20
_SPANS: Final = (1 << 18, 1 << 23)
"""How far around a line the others of its response are looked for, before all is read."""


class Figured(msgspec.Struct):
    """A line with figures."""

    key: str
    line: int
    """Counted from one."""
    offset: int
    figures: tuple[int, ...]
    synthetic: bool
    """Whether the client wrote it without asking anybody."""
    cut: bool
    """Whether it has a figure that is not believable, and was cut."""
    row: Row
    """What it says, in the order of the columns of `usage`."""


def figures_in(path: str, file: int) -> Iterator[Figured]:
    """Yield the lines with figures of a file; nothing where its bytes are gone for good."""
    try:
        source = open_anywhere(path)
    except Unreadable:
        return
    with source:
        counting = _Counting(source)
        for record in read_records(source):
            found = _figured(record, file)
            if found is not None:
                found.line = counting.line_at(record.offset)
                yield found


def figures_around(path: str, file: int, keys: dict[str, tuple[int, int]]) -> list[Figured]:
    """Return the lines of some responses of a file, given where one of each is and how many.

    Lines of a response stand close together, so a large file is not read for a few of them.
    """
    try:
        source = open_anywhere(path)
    except Unreadable:
        return []
    with source:
        found: list[Figured] = []
        for key, (offset, number) in keys.items():
            mine: list[Figured] = []
            for span in (*_SPANS, source.size + 1):
                mine = [each for each in _near(source, file, offset, span) if each.key == key]
                if len(mine) >= number:
                    break
            found += mine
        found.sort(key=lambda each: each.offset)
        counting = _Counting(source)
        for each in found:
            each.line = counting.line_at(each.offset)
        return found


def _near(source: Source, file: int, offset: int, span: int) -> Iterator[Figured]:
    """Yield the lines with figures that begin no further than that from an offset."""
    start = max(0, offset - span)
    if start:
        _, newline, rest = source.read(start, offset - start).partition(b"\n")
        if not newline:
            return
        start = offset - len(rest)
    for record in read_records(source, start):
        if record.offset > offset + span:
            return
        found = _figured(record, file)
        if found is not None and not found.synthetic:
            yield found


def _figured(record: Record, file: int) -> Figured | None:
    if _WORD not in record.line:
        return None
    line = brief_of(record.line) or line_of(record)
    body = line.message
    usage = body.usage if body is not None else None
    if line.type != "assistant" or body is None or usage is None:
        return None
    message = (file << SHIFT) + record.offset
    figures = figures_of(usage)
    key, model = key_of(line, message), body.model or ""
    time, branch = millis(line.timestamp), line.git_branch or ""
    agent = (line.agent_id or "") if line.is_sidechain else ""
    return Figured(
        key,
        0,
        record.offset,
        figures,
        model == SYNTHETIC,
        _is_cut(usage, figures),
        (file, key, message, 1, 0, time, model, branch, agent, *figures, 0, 0, 0),
    )


def _is_cut(usage: Usage, figures: tuple[int, ...]) -> bool:
    written, tools = usage.cache_creation, usage.server_tool_use
    told = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens if written is None else 0,
        usage.cache_read_input_tokens,
        written.ephemeral_5m_input_tokens if written is not None else 0,
        written.ephemeral_1h_input_tokens if written is not None else 0,
        tools.web_search_requests if tools is not None else 0,
    )
    # What is too long to be read as a number comes as the largest one.
    return max(figures) >= MOST or any((figure or 0) < 0 for figure in told)


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
