"""What counts: token figures once per response, the highest of its lines.

Whoever counts tokens asks here, whether the figures go into the index or are summed up straight
from the files: which lines count, what tells responses apart, which of several lines is believed.
"""

from typing import Any, Final, Protocol

from steno.index.lines import Usage
from steno.index.state import Row
from steno.session.story.usage import SYNTHETIC, is_placeholder

__all__ = ["MOST", "Tally", "figures_of", "key_of", "rank"]

MOST: Final = 10**12
"""No response has more tokens than that; a larger figure is taken for this one.

A million of them can still be added up in the 63 bits that SQLite has.
"""
_FAST: Final = "fast"
_EARLIEST: Final = -(1 << 62)


class _Body(Protocol):
    @property
    def id(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def stop_reason(self) -> str | None: ...
    @property
    def usage(self) -> Usage | None: ...


class _Told(Protocol):
    """A line, as far as its figures are concerned."""

    @property
    def uuid(self) -> str | None: ...
    @property
    def request_id(self) -> str | None: ...
    @property
    def version(self) -> str | None: ...
    @property
    def forked_from(self) -> Any: ...
    @property
    def message(self) -> _Body | None: ...


class Tally:
    """Gathers the rows of `usage` for one file."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._rows: dict[str, Row] = {}

    def take(
        self,
        line: _Told,
        message: int,
        turn: int,
        time: Any,
        branch: str,
        agent: str,
        lines: int = 1,
    ) -> None:
        """Take in the figures of a line, if it has any that count.

        It may stand for several `lines` of one response in a row, if none has higher figures.
        """
        body = line.message
        usage = body.usage if body is not None else None
        if body is None or usage is None or body.model == SYNTHETIC:
            return
        key = key_of(line, message)
        figures = figures_of(usage)
        before = self._rows.get(key)
        if before is not None:
            lines += before[3]
            turn, time = before[4:6]
            if figures[1] < before[10]:
                self._rows[key] = (*before[:3], lines, *before[4:])
                return
        self._rows[key] = (
            self._file,
            key,
            message,
            lines,
            turn,
            time,
            body.model or "",
            branch,
            agent,
            *figures,
            1 if usage.speed == _FAST else 0,
            1 if body.stop_reason is None and is_placeholder(line.version or "") else 0,
            0 if line.forked_from is None else 1,
        )

    def rows(self) -> list[Row]:
        """Return the rows, in the order of the columns of `usage` up to `copied`."""
        return list(self._rows.values())

    def by_key(self) -> dict[str, Row]:
        """Return the rows by what tells responses apart; the tally's own, not a copy."""
        return self._rows


def key_of(line: _Told, message: int) -> str:
    """Return what tells one response from another, whatever files its lines are copied to."""
    name = line.message.id if line.message is not None else None
    return name or line.request_id or line.uuid or f"@{message}"


def figures_of(usage: Usage) -> tuple[int, ...]:
    """Return input, output, both cache writes, cache reads and searches, none of them absurd."""
    written = usage.cache_creation
    if written is None:
        short, long = usage.cache_creation_input_tokens or 0, 0
    else:
        short, long = written.ephemeral_5m_input_tokens, written.ephemeral_1h_input_tokens
    tools = usage.server_tool_use
    figures = (
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        short,
        long,
        usage.cache_read_input_tokens or 0,
        tools.web_search_requests or 0 if tools is not None else 0,
    )
    if min(figures) < 0 or max(figures) > MOST:
        return tuple(min(max(figure, 0), MOST) for figure in figures)
    return figures


def rank(
    row: Row, started: int | None, session: str, agent: str, path: str
) -> tuple[int, int, int, str, str, str]:
    """Return what copies of a response in several files are ordered by; the first one counts.

    That is the one with the highest figure; of equal ones the original, else the one of the
    session that began first.
    """
    # As in SQL, an unknown start comes before all others.
    begun = _EARLIEST if started is None else started
    return -row[10], row[17], begun, session, agent, path
