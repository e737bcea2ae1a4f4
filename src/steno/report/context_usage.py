"""Context usage: what filled the model's context, by source.

Clients do not record this. They do record the tokens of each request, so the records before a
request are weighted by their length, and the weights are scaled to the recorded total. The part of
the first request that its records do not explain is the system prompt and the tools.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from steno.format.lenient_json import DECODE_ERRORS
from steno.format.message import SYNTHETIC, Block, Document, Image, ServerToolUse, Text, Thinking, ToolResult, ToolUse
from steno.format.records import Record
from steno.format.tool_catalogue import tool_facts
from steno.session.transcript import Node, Transcript
from steno.session.turns.prompts import origin_of
from steno.session.turns.turn_builder import Turn

ContextSource: TypeAlias = Literal["system", "memory", "summary", "prompts", "files", "output", "answers"]
"""system   the system prompt, the tools, and what the client adds by itself
memory   notes such as CLAUDE.md
summary  what a compaction left
prompts  what people said
files    what was read of files
output   what other tools gave back
answers  what the model said, thought and called
"""
CONTEXT_SOURCES: Final[tuple[ContextSource, ...]] = get_args(ContextSource)
_CHARACTERS_PER_TOKEN: Final = 4.0
"""How many letters make a token, about."""
_IMAGE_TOKENS: Final = 1_500.0
"""Tokens of a picture, about; its letters say nothing."""
_DEFAULT_WINDOW: Final = 200_000
_LARGE_WINDOW: Final = 1_000_000
_FILE_ATTACHMENTS: Final = frozenset(
    ("file", "edited_text_file", "directory", "pdf_reference", "compact_file_reference", "selected")
)
_Weights: TypeAlias = dict[ContextSource, float]


class ContextPoint(msgspec.Struct, frozen=True):
    """What the model had before it at the end of a turn; tokens in the order of `KINDS`."""

    turn: int
    parts: tuple[int, ...]

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.parts)


class ContextUsage(msgspec.Struct, frozen=True):
    """How the context grew."""

    points: tuple[ContextPoint, ...] = ()
    """One for each turn in which the model was asked."""
    cuts: tuple[int, ...] = ()
    """The turns before which it was compacted."""
    limit: int = _DEFAULT_WINDOW
    """How much the model can hold, as far as that shows."""

    @property
    def latest(self) -> ContextPoint | None:
        """How it stands."""
        return self.points[-1] if self.points else None


class _AttachmentType(msgspec.Struct):
    type: str = ""


def context_usage(transcript: Transcript, turns: Iterable[Turn]) -> ContextUsage:
    """Return where the context of a conversation went, turn by turn."""
    estimator = _ContextEstimator(transcript)
    points: list[ContextPoint] = []
    cuts: list[int] = []
    for turn in turns:
        if turn.compaction is not None and turn.compaction.kind == "full":
            cuts.append(turn.number)
            estimator.compact(turn.compaction.kept)
        estimator.request_parts = None
        for node in turn.nodes:
            estimator.add_node(node)
        if estimator.request_parts is not None:
            points.append(ContextPoint(turn.number, estimator.request_parts))
    largest = max((point.total for point in points), default=0)
    return ContextUsage(tuple(points), tuple(cuts), context_window(largest))


def context_window(largest_context: int) -> int:
    """Return how much a model can hold that held so much."""
    return _DEFAULT_WINDOW if largest_context <= _DEFAULT_WINDOW else _LARGE_WINDOW


class _ContextEstimator:
    """Weighs records, and stretches the weights whenever the true figure is known."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._weights: _Weights = dict.fromkeys(CONTEXT_SOURCES, 0.0)
        self._request_weights: _Weights = dict(self._weights)
        self._response_id = ""
        self._calls: dict[str, str] = {}
        self._base_tokens: float | None = None
        self.request_parts: tuple[int, ...] | None = None
        """What the last request held."""

    def compact(self, kept_nodes: Iterable[Node]) -> None:
        """Forget what a compaction dropped."""
        self._weights = dict.fromkeys(CONTEXT_SOURCES, 0.0)
        for node in kept_nodes:
            self._add_weights(self._transcript.record(node), node)

    def add_node(self, node: Node) -> None:
        """Take in the next record of the conversation."""
        if node.type == "progress":
            return
        record = self._transcript.record(node)
        if node.type == "assistant" and node.model != SYNTHETIC:
            self._add_request(record, node)
        self._add_weights(record, node)

    def _add_request(self, record: Record, node: Node) -> None:
        response_id = node.message_id or node.uuid or f"@{node.offset}"
        if response_id != self._response_id:
            self._response_id = response_id
            self._request_weights = dict(self._weights)
        usage = record.usage
        if usage is not None and usage.context > 0:
            self.request_parts = self._scaled_parts(usage.context)

    def _scaled_parts(self, context: int) -> tuple[int, ...]:
        weight = sum(self._request_weights.values())
        if self._base_tokens is None:
            self._base_tokens = max(0.0, context - weight)
        base = min(self._base_tokens, float(context))
        scaled_tokens = context - base
        factor = scaled_tokens / weight if weight else 0.0
        parts = {kind: round(self._request_weights[kind] * factor) for kind in CONTEXT_SOURCES}
        # The parts add up to what was recorded, whatever rounding does.
        parts["system"] += max(0, context - sum(parts.values()))
        return tuple(parts[kind] for kind in CONTEXT_SOURCES)

    def _add_weights(self, record: Record, node: Node) -> None:
        for kind, weight in _weights_of_record(record, node, self._calls):
            self._weights[kind] += weight


def _weights_of_record(record: Record, node: Node, calls: dict[str, str]) -> Iterator[tuple[ContextSource, float]]:
    role = record.role
    if role == "assistant":
        yield "answers", sum(_assistant_weight(block, calls) for block in record.blocks)
    elif role == "user" and node.results:
        for block in record.blocks:
            if isinstance(block, ToolResult):
                is_file = tool_facts(calls.get(block.tool_use_id, "")).returns_file
                yield ("files" if is_file else "output"), sum(map(_token_weight, block.blocks))
            else:
                yield "prompts", _token_weight(block)
    elif role == "user":
        yield _ORIGINS.get(origin_of(record), "prompts"), sum(map(_token_weight, record.blocks))
    elif record.type == "attachment":
        yield (_source_of_attachment(record), len(record.envelope.attachment or b"") / _CHARACTERS_PER_TOKEN)


def _assistant_weight(block: Block, calls: dict[str, str]) -> float:
    if isinstance(block, ToolUse | ServerToolUse):
        calls[block.id] = block.name
        return len(bytes(block.raw_input)) / _CHARACTERS_PER_TOKEN
    return _token_weight(block)


def _token_weight(block: Block) -> float:
    if isinstance(block, Text):
        return len(block.text) / _CHARACTERS_PER_TOKEN
    if isinstance(block, Thinking):
        return len(block.thinking) / _CHARACTERS_PER_TOKEN
    return _IMAGE_TOKENS if isinstance(block, Image | Document) else 0.0


def _source_of_attachment(record: Record) -> ContextSource:
    try:
        attachment_type = msgspec.json.decode(record.envelope.attachment, type=_AttachmentType).type
    except DECODE_ERRORS:
        return "system"
    if "memory" in attachment_type or "memories" in attachment_type:
        return "memory"
    if attachment_type == "queued_command":
        return "prompts"
    return "files" if attachment_type in _FILE_ATTACHMENTS else "system"


_ORIGINS: Final[Mapping[str, ContextSource]] = {
    "summary": "summary",
    "meta": "system",
    "hook": "system",
    "output": "output",
    "notification": "output",
}
