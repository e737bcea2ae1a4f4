"""Context usage: estimated tokens in the context window by source.

Claude Code records only the total tokens of each request. The records before a request are weighted by their length,
and the weights are scaled to that total. The remainder of the first request is attributed to the system prompt and
tools.
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
"""system   system prompt, tools, and context that Claude Code adds
memory   memory files such as CLAUDE.md
summary  summary of a compaction
prompts  user prompts
files    file content read
output   other tool results
answers  text, thinking and tool calls of the model
"""
CONTEXT_SOURCES: Final[tuple[ContextSource, ...]] = get_args(ContextSource)
_CHARACTERS_PER_TOKEN: Final = 4.0
"""Estimated characters per token."""
_IMAGE_TOKENS: Final = 1_500.0
"""Estimated tokens of an image."""
_DEFAULT_WINDOW: Final = 200_000
_LARGE_WINDOW: Final = 1_000_000
_FILE_ATTACHMENTS: Final = frozenset(
    ("file", "edited_text_file", "directory", "pdf_reference", "compact_file_reference", "selected")
)
_Weights: TypeAlias = dict[ContextSource, float]


class ContextPoint(msgspec.Struct, frozen=True):
    """Context at the last request of a turn; tokens in the order of `CONTEXT_SOURCES`."""

    turn: int
    parts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Total tokens."""
        return sum(self.parts)


class ContextUsage(msgspec.Struct, frozen=True):
    """Context size by turn and source."""

    points: tuple[ContextPoint, ...] = ()
    """One point for each turn with a request."""
    cuts: tuple[int, ...] = ()
    """Numbers of the turns that start with a compaction."""
    limit: int = _DEFAULT_WINDOW
    """Estimated context window in tokens."""

    @property
    def latest(self) -> ContextPoint | None:
        """Context at the last request."""
        return self.points[-1] if self.points else None


class _AttachmentType(msgspec.Struct):
    type: str = ""


def context_usage(transcript: Transcript, turns: Iterable[Turn]) -> ContextUsage:
    """Return the context usage of a conversation by turn."""
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
    """Return the smallest context window that fits the largest context of a session."""
    return _DEFAULT_WINDOW if largest_context <= _DEFAULT_WINDOW else _LARGE_WINDOW


class _ContextEstimator:
    """Weights records by length and scales the weights to each recorded total."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._weights: _Weights = dict.fromkeys(CONTEXT_SOURCES, 0.0)
        self._request_weights: _Weights = dict(self._weights)
        self._response_id = ""
        self._calls: dict[str, str] = {}
        self._base_tokens: float | None = None
        self.request_parts: tuple[int, ...] | None = None
        """Tokens of the last request by source."""

    def compact(self, kept_nodes: Iterable[Node]) -> None:
        """Drop the weights of compacted records."""
        self._weights = dict.fromkeys(CONTEXT_SOURCES, 0.0)
        for node in kept_nodes:
            self._add_weights(self._transcript.record(node), node)

    def add_node(self, node: Node) -> None:
        """Add the next record of the conversation."""
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
        # Rounding must not change the sum of the parts.
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
