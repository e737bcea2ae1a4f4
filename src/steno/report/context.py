"""Where the context went: what the model had before it, by where that came from.

No client writes this down. What it does write is how many tokens each request had; so the records
before a request are weighed by their length, and the weights are stretched to the figure that was
recorded. What the first request held beyond its records is the system prompt and the tools.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from steno.format.blocks import (
    Block,
    Document,
    Image,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from steno.format.loose import REFUSED
from steno.format.records import Record
from steno.format.tool_catalogue import facts_of
from steno.session.nodes import Node
from steno.session.story.prompts import origin_of
from steno.session.story.turns import Turn
from steno.session.story.usage import SYNTHETIC
from steno.session.transcript import Transcript

__all__ = ["KINDS", "Context", "Kind", "Point", "context_of", "window_of"]

Kind: TypeAlias = Literal["system", "memory", "summary", "prompts", "files", "output", "answers"]
"""system   the system prompt, the tools, and what the client adds by itself
memory   notes such as CLAUDE.md
summary  what a compaction left
prompts  what people said
files    what was read of files
output   what other tools gave back
answers  what the model said, thought and called
"""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_LETTERS: Final = 4.0
"""How many letters make a token, about."""
_PICTURE: Final = 1_500.0
"""Tokens of a picture, about; its letters say nothing."""
_WINDOW: Final = 200_000
_LARGE: Final = 1_000_000
_FILES: Final = frozenset(
    ("file", "edited_text_file", "directory", "pdf_reference", "compact_file_reference", "selected")
)
_Weights: TypeAlias = dict[Kind, float]


class Point(msgspec.Struct, frozen=True):
    """What the model had before it at the end of a turn; tokens in the order of `KINDS`."""

    turn: int
    parts: tuple[int, ...]

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.parts)


class Context(msgspec.Struct, frozen=True):
    """How the context grew."""

    points: tuple[Point, ...] = ()
    """One for each turn in which the model was asked."""
    cuts: tuple[int, ...] = ()
    """The turns before which it was compacted."""
    limit: int = _WINDOW
    """How much the model can hold, as far as that shows."""

    @property
    def last(self) -> Point | None:
        """How it stands."""
        return self.points[-1] if self.points else None


class _Attachment(msgspec.Struct):
    type: str = ""


def context_of(transcript: Transcript, turns: Iterable[Turn]) -> Context:
    """Return where the context of a conversation went, turn by turn."""
    scales = _Scales(transcript)
    points: list[Point] = []
    cuts: list[int] = []
    for turn in turns:
        if turn.compaction is not None and turn.compaction.kind == "full":
            cuts.append(turn.number)
            scales.cut(turn.compaction.kept)
        scales.asked = None
        for node in turn.nodes:
            scales.take(node)
        if scales.asked is not None:
            points.append(Point(turn.number, scales.asked))
    most = max((point.total for point in points), default=0)
    return Context(tuple(points), tuple(cuts), window_of(most))


def window_of(most: int) -> int:
    """Return how much a model can hold that held so much."""
    return _WINDOW if most <= _WINDOW else _LARGE


class _Scales:
    """Weighs records, and stretches the weights whenever the true figure is known."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._weights: _Weights = dict.fromkeys(KINDS, 0.0)
        self._before: _Weights = dict(self._weights)
        self._response = ""
        self._calls: dict[str, str] = {}
        self._base: float | None = None
        self.asked: tuple[int, ...] | None = None
        """What the last request held."""

    def cut(self, kept: Iterable[Node]) -> None:
        """Forget what a compaction dropped."""
        self._weights = dict.fromkeys(KINDS, 0.0)
        for node in kept:
            self._weigh(self._transcript.record(node), node)

    def take(self, node: Node) -> None:
        """Take in the next record of the conversation."""
        if node.type == "progress":
            return
        record = self._transcript.record(node)
        if node.type == "assistant" and node.model != SYNTHETIC:
            self._request(record, node)
        self._weigh(record, node)

    def _request(self, record: Record, node: Node) -> None:
        name = node.message_id or node.uuid or f"@{node.offset}"
        if name != self._response:
            self._response = name
            self._before = dict(self._weights)
        usage = record.usage
        if usage is not None and usage.context > 0:
            self.asked = self._stretched(usage.context)

    def _stretched(self, context: int) -> tuple[int, ...]:
        weight = sum(self._before.values())
        if self._base is None:
            self._base = max(0.0, context - weight)
        base = min(self._base, float(context))
        rest = context - base
        factor = rest / weight if weight else 0.0
        parts = {kind: round(self._before[kind] * factor) for kind in KINDS}
        # The parts add up to what was recorded, whatever rounding does.
        parts["system"] += max(0, context - sum(parts.values()))
        return tuple(parts[kind] for kind in KINDS)

    def _weigh(self, record: Record, node: Node) -> None:
        for kind, weight in _weights(record, node, self._calls):
            self._weights[kind] += weight


def _weights(record: Record, node: Node, calls: dict[str, str]) -> Iterator[tuple[Kind, float]]:
    role = record.role
    if role == "assistant":
        yield "answers", sum(_spoken(block, calls) for block in record.blocks)
    elif role == "user" and node.results:
        for block in record.blocks:
            if isinstance(block, ToolResult):
                reads = facts_of(calls.get(block.tool_use_id, "")).returns_file
                yield ("files" if reads else "output"), sum(map(_length, block.blocks))
            else:
                yield "prompts", _length(block)
    elif role == "user":
        yield _kind_of(record), sum(map(_length, record.blocks))
    elif record.type == "attachment":
        yield _attached(record), len(record.envelope.attachment or b"") / _LETTERS


def _spoken(block: Block, calls: dict[str, str]) -> float:
    if isinstance(block, ToolUse | ServerToolUse):
        calls[block.id] = block.name
        return len(bytes(block.raw_input)) / _LETTERS
    return _length(block)


def _length(block: Block) -> float:
    if isinstance(block, Text):
        return len(block.text) / _LETTERS
    if isinstance(block, Thinking):
        return len(block.thinking) / _LETTERS
    return _PICTURE if isinstance(block, Image | Document) else 0.0


def _kind_of(record: Record) -> Kind:
    return _ORIGINS.get(origin_of(record), "prompts")


def _attached(record: Record) -> Kind:
    try:
        kind = msgspec.json.decode(record.envelope.attachment, type=_Attachment).type
    except REFUSED:
        return "system"
    if "memory" in kind or "memories" in kind:
        return "memory"
    if kind == "queued_command":
        return "prompts"
    return "files" if kind in _FILES else "system"


_ORIGINS: Final[Mapping[str, Kind]] = {
    "summary": "summary",
    "meta": "system",
    "hook": "system",
    "output": "output",
    "notification": "output",
}
