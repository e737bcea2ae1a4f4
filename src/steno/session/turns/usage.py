"""Token usage, counted once per API response.

A response is written as several records that repeat its usage, so sums over records are wrong. Records are grouped by
`message.id` (else by request, else by record), and the last one, which has the highest counts, is used. Claude Code
2.1.0 to 2.1.52 recorded the count from the start of the stream; such totals are marked `estimated`.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from steno.format.lenient_json import DECODE_ERRORS
from steno.format.message import SYNTHETIC, Envelope, Message, RecordFields, Usage, projection
from steno.format.records import Record
from steno.session.transcript import Node, Transcript

_FIRST_PLACEHOLDER_VERSION: Final = (2, 1, 0)
_LAST_PLACEHOLDER_VERSION: Final = (2, 1, 52)


class Totals(msgspec.Struct, frozen=True):
    """Token counts of a set of responses."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    messages: int = 0
    estimated: bool = False
    """Whether some counts are placeholders; the real count is higher."""

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
        """Tokens written to the 5-minute and 1-hour caches."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def context(self) -> int:
        """Tokens read by the model: input, cache read and cache write."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Sum of context and output tokens."""
        return self.context + self.output


class _MessageUsage(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


@projection("uuid request_id version")
class _UsageLine(RecordFields):
    message: _MessageUsage | None = None


class _ResponseUsage(msgspec.Struct, gc=False):
    usage: Usage
    model: str
    estimated: bool


_LINE_DECODER: Final = msgspec.json.Decoder(_UsageLine)


class UsageCounter:
    """Collects the usage of responses, each counted once across records and files."""

    def __init__(self) -> None:
        self._responses: dict[str, _ResponseUsage] = {}

    def add(self, record: Record) -> None:
        """Add the usage of a record, if any."""
        self._count(record.envelope, record.message, record.offset)

    def add_nodes(self, transcript: Transcript, nodes: Iterable[Node]) -> None:
        """Add the usage of uncached records, without decoding their content."""
        for node in nodes:
            if node.type != "assistant" or node.model == SYNTHETIC:
                continue
            cached = transcript.cached(node)
            if cached is not None:
                self._count(cached.envelope, cached.message, node.offset)
                continue
            try:
                line = _LINE_DECODER.decode(transcript.source.read(node.offset, node.length))
            except DECODE_ERRORS:
                self.add(transcript.record(node))
            else:
                self._count(line, line.message, node.offset)

    def _count(self, line: Envelope, message: Message | _MessageUsage | None, offset: int) -> None:
        usage = message.usage if message is not None else None
        if message is None or usage is None or message.model == SYNTHETIC:
            return
        key = message.id or line.request_id or line.uuid or f"@{offset}"
        before = self._responses.get(key)
        if before is None or usage.output_tokens >= before.usage.output_tokens:
            estimated = message.stop_reason is None and writes_placeholder_usage(line.version or "")
            self._responses[key] = _ResponseUsage(usage, message.model or "", estimated)

    def totals(self) -> Totals:
        """Return the sum over all responses."""
        return _sum_usage(self._responses.values())

    def by_model(self) -> dict[str, Totals]:
        """Return the sums by model, in order of appearance."""
        models: dict[str, list[_ResponseUsage]] = {}
        for figures in self._responses.values():
            models.setdefault(figures.model, []).append(figures)
        return {model: _sum_usage(figures) for model, figures in models.items()}

    def responses(self) -> Iterator[tuple[str, Usage, bool]]:
        """Yield the model and usage of every response, and whether its counts are placeholders."""
        for figures in self._responses.values():
            yield figures.model, figures.usage, figures.estimated

    def output_of(self, message_id: str) -> int | None:
        """Return the output tokens of one response."""
        figures = self._responses.get(message_id)
        return max(0, figures.usage.output_tokens) if figures else None


def totals_of(transcript: Transcript, nodes: Iterable[Node]) -> Totals:
    """Return the token usage of a set of records."""
    counter = UsageCounter()
    counter.add_nodes(transcript, nodes)
    return counter.totals()


@lru_cache(maxsize=256)
def writes_placeholder_usage(version: str) -> bool:
    """Return whether a client version recorded usage from the start of the stream instead of its end.

    >>> writes_placeholder_usage("2.1.42"), writes_placeholder_usage("2.1.200")
    (True, False)
    """
    try:
        numbers = tuple(int(part) for part in version.split("."))
    except ValueError:
        return False
    return _FIRST_PLACEHOLDER_VERSION <= numbers <= _LAST_PLACEHOLDER_VERSION


def _sum_usage(responses: Iterable[_ResponseUsage]) -> Totals:
    fresh = output = read = short = long = messages = 0
    estimated = False
    for response in responses:
        counts = response.usage.counts
        fresh += counts[0]
        output += counts[1]
        short += counts[2]
        long += counts[3]
        read += counts[4]
        messages += 1
        estimated = estimated or response.estimated
    return Totals(fresh, output, read, short, long, messages, estimated)
