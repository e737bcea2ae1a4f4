"""Every line of a file that has figures, one by one."""

from collections.abc import Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.lines import read_records
from steno.format.source import Source
from steno.index.lines import Usage, line_of
from steno.index.moments import millis
from steno.index.state import SHIFT, Row
from steno.index.tally import MOST, figures_of, key_of
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
            if _WORD not in record.line:
                continue
            line = brief_of(record.line) or line_of(record)
            body = line.message
            usage = body.usage if body is not None else None
            if line.type != "assistant" or body is None or usage is None:
                continue
            message = (file << SHIFT) + record.offset
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
