"""Token figures, counted once per API response.

A response is written as several lines that repeat its figures, so sums over lines are wrong. The
lines are grouped by `message.id` (else by request, else by record) and the last, which is the
largest, counts. Clients 2.1.0 to 2.1.52 kept the figure the stream began with: such totals are
marked `estimated`.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from steno.format.envelope import Envelope
from steno.format.loose import REFUSED
from steno.format.message import Message, Usage
from steno.format.records import Record
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["SYNTHETIC", "Counter", "Totals", "is_placeholder", "totals_of"]

SYNTHETIC: Final = "<synthetic>"
_FIRST_WRONG: Final = (2, 1, 0)
_LAST_WRONG: Final = (2, 1, 52)


class Totals(msgspec.Struct, frozen=True):
    """Tokens of some responses."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    messages: int = 0
    estimated: bool = False
    """Some of the figures are placeholders of the client; the truth is higher."""

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.messages + other.messages,
            self.estimated or other.estimated,
        )

    @property
    def cache_write(self) -> int:
        """Tokens written to either cache."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def context(self) -> int:
        """Everything the model read: fresh, cached, and written to the cache."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Everything read and written."""
        return self.context + self.output


class _Brief(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class _Line(msgspec.Struct, rename="camel", gc=False):
    uuid: str | None = None
    request_id: str | None = None
    version: str | None = None
    message: _Brief | None = None


class _Figures(msgspec.Struct, gc=False):
    usage: Usage
    model: str
    estimated: bool


_LINE: Final = msgspec.json.Decoder(_Line)


class Counter:
    """Gathers the figures of responses, each once, whatever file or line they come from."""

    def __init__(self) -> None:
        self._figures: dict[str, _Figures] = {}

    def add(self, record: Record) -> None:
        """Take in the figures of a record, if it has any."""
        self._count(record.envelope, record.message, record.offset)

    def add_nodes(self, transcript: Transcript, nodes: Iterable[Node]) -> None:
        """Take in the figures of records that nobody has read yet; their bodies are passed over."""
        for node in nodes:
            if node.type != "assistant" or node.model == SYNTHETIC:
                continue
            held = transcript.held(node)
            if held is not None:
                self._count(held.envelope, held.message, node.offset)
                continue
            try:
                line = _LINE.decode(transcript.source.read(node.offset, node.length))
            except REFUSED:
                self.add(transcript.record(node))
            else:
                self._count(line, line.message, node.offset)

    def _count(self, line: Envelope | _Line, message: Message | _Brief | None, offset: int) -> None:
        usage = message.usage if message is not None else None
        if message is None or usage is None or message.model == SYNTHETIC:
            return
        key = message.id or line.request_id or line.uuid or f"@{offset}"
        before = self._figures.get(key)
        if before is None or usage.output_tokens >= before.usage.output_tokens:
            estimated = message.stop_reason is None and is_placeholder(line.version or "")
            self._figures[key] = _Figures(usage, message.model or "", estimated)

    def totals(self) -> Totals:
        """Return the sum over all responses."""
        return _sum(self._figures.values())

    def by_model(self) -> dict[str, Totals]:
        """Return the sums by model, in order of appearance."""
        models: dict[str, list[_Figures]] = {}
        for figures in self._figures.values():
            models.setdefault(figures.model, []).append(figures)
        return {model: _sum(figures) for model, figures in models.items()}

    def responses(self) -> Iterator[tuple[str, Usage, bool]]:
        """Yield the model and the figures of every response, and whether they are placeholders."""
        for figures in self._figures.values():
            yield figures.model, figures.usage, figures.estimated

    def output_of(self, message_id: str) -> int | None:
        """Return the output tokens of one response."""
        figures = self._figures.get(message_id)
        return max(0, figures.usage.output_tokens) if figures else None


def totals_of(transcript: Transcript, nodes: Iterable[Node]) -> Totals:
    """Return the tokens of some records."""
    counter = Counter()
    counter.add_nodes(transcript, nodes)
    return counter.totals()


@lru_cache(maxsize=256)
def is_placeholder(version: str) -> bool:
    """Whether that client kept the figure a stream began with instead of the one it ended with.

    >>> is_placeholder("2.1.42"), is_placeholder("2.1.200")
    (True, False)
    """
    try:
        numbers = tuple(int(part) for part in version.split("."))
    except ValueError:
        return False
    return _FIRST_WRONG <= numbers <= _LAST_WRONG


def _sum(figures: Iterable[_Figures]) -> Totals:
    fresh = output = read = short = long = messages = 0
    estimated = False
    for each in figures:
        counts = each.usage.counts
        fresh += counts[0]
        output += counts[1]
        short += counts[2]
        long += counts[3]
        read += counts[4]
        messages += 1
        estimated = estimated or each.estimated
    return Totals(fresh, output, read, short, long, messages, estimated)
