"""Compactions: where a conversation was summed up, and the way back across such a seam.

The boundary a compaction writes has no parent, so a walk by parents ends there. For the story the
walk goes on behind it: at the logical parent or, where that is gone, at the record before it in the
file.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.records import Record
from steno.format.values import measured_time
from steno.session.nodes import Node
from steno.session.resume.clients import STENO
from steno.session.resume.segments import preserved
from steno.session.resume.walk import Loaded, walk
from steno.session.story.title_compactions import TitleCompactions
from steno.session.transcript import Transcript

__all__ = [
    "Compaction",
    "compactions_of",
    "is_seam",
    "keeps_all",
    "seam_of",
    "sizes_of",
    "whole_chain",
]

CompactionKind: TypeAlias = Literal["full", "micro"]
_MOST: Final = 1 << 53
_DIALECT: Final = frozenset(("compact_system", "compact_prelude"))
_MICRO: Final = "microcompact_boundary"
_CONVERTED: Final = "conversation_compacted"
"""A compaction of a published dialect that kept every message before it."""
_LOOK_AHEAD: Final = 4
"""How far behind a boundary its summary may stand."""
_ANSWERS: Final = 200
"""How far behind a boundary an answer is looked for."""


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction: a seam in the conversation."""

    kind: CompactionKind = "full"
    boundary: Node
    summary: Node | None = None
    trigger: str = ""
    pre_tokens: int | None = None
    """What the model had before it."""
    post_tokens: int | None = None
    """What the client thinks is left of the talk; what it always says first is not counted."""
    context: int | None = None
    """What the model had before it when it next answered; None as long as it did not."""
    duration: float | None = None
    """Seconds it took."""
    kept: tuple[Node, ...] = ()
    """Older records that stay in view word for word."""
    logical_parent: Node | None = None
    """The record the conversation had come to."""
    messages_before: int | None = None
    """How many messages there were, and how many of them were kept, where the file says so."""
    messages_kept: int | None = None
    ratio: float | None = None
    """How much of the size was left, as a dialect says it."""


class _Numbers(msgspec.Struct, rename="camel"):
    """What a boundary says about itself; dialects have figures of their own."""

    trigger: str = ""
    pre_tokens: float | None = None
    post_tokens: float | None = None
    tokens_saved: float | None = None
    duration_ms: float | None = None
    messages_before: float | None = None
    messages_kept: float | None = None
    compression_ratio: float | None = None


def whole_chain(transcript: Transcript, loaded: Loaded, leaf: Node) -> list[Node]:
    """Return the records from the very first to `leaf`, across every compaction."""
    chain = walk(loaded, leaf, STENO)
    parts = [chain]
    seen = {node.uuid for node in chain}
    titles = TitleCompactions(transcript)
    while chain:
        boundary = chain[0] if chain[0].is_boundary else _detached(transcript, chain[0], titles)
        if boundary is None:
            break
        # Without an id it is none of the records that have a place in the graph.
        if boundary is not chain[0] and boundary.uuid is not None:
            parts.append([boundary])
            seen.add(boundary.uuid)
        before = _before(transcript, loaded, boundary, seen)
        if before is None:
            break
        chain = [node for node in walk(loaded, before, STENO) if node.uuid not in seen]
        seen.update(node.uuid for node in chain)
        parts.append(chain)
    return [node for part in reversed(parts) for node in part]


def _detached(transcript: Transcript, first: Node, titles: TitleCompactions) -> Node | None:
    """Return the boundary that a record without a parent follows, if nothing hangs on it.

    One published description has it so: what follows a compaction begins a chain of its own.
    """
    earlier = transcript.nodes[: first.index]
    if first.parent is not None or not any(node.is_boundary for node in earlier):
        return None
    return titles.boundaries.get(first.index)


def _before(
    transcript: Transcript, loaded: Loaded, boundary: Node, seen: set[str | None]
) -> Node | None:
    """Return what the conversation had come to when it was compacted."""
    logical = loaded.nodes.get(boundary.logical_parent) if boundary.logical_parent else None
    if logical is not None and logical.uuid not in seen:
        return logical
    for place in range(boundary.index - 1, -1, -1):
        node = transcript.nodes[place]
        if node.converses and node.uuid not in seen and loaded.nodes.get(node.uuid) is node:
            return node
    return None


def is_seam(node: Node) -> bool:
    """Whether the conversation may have been compacted at this record, in any dialect."""
    return node.is_boundary or node.type in _DIALECT or node.subtype == _CONVERTED


def keeps_all(node: Node) -> bool:
    """Whether a compaction left everything before it in the conversation."""
    return node.type == "system" and node.subtype == _CONVERTED


def compactions_of(
    transcript: Transcript, loaded: Loaded, nodes: list[Node]
) -> dict[int, Compaction]:
    """Return the compactions among some records in order, by the index of their boundary."""
    found: dict[int, Compaction] = {}
    titles = TitleCompactions(transcript)
    for place, node in enumerate(nodes):
        if not node.subtype and node.type not in _DIALECT:
            continue
        if node.is_boundary:
            found[node.index] = _full(transcript, loaded, nodes, place, titles)
        elif node.subtype == _MICRO:
            found[node.index] = _numbered(transcript.record(node), node, "microcompactMetadata")
        elif is_seam(node) and (seam := seam_of(transcript.record(node), node)) is not None:
            if node.type == "compact_prelude":
                summary = _next(nodes, place, lambda other: other.type == "compact_recap")
                seam = msgspec.structs.replace(seam, summary=summary)
            found[node.index] = seam
    return found


def seam_of(record: Record, node: Node) -> Compaction | None:
    """Return the compaction that a record says there was, as far as it alone tells."""
    if node.is_boundary or node.type == "compact_prelude" or node.subtype == _CONVERTED:
        return _numbered(record, node, "compactMetadata")
    if node.type == "compact_system" and record.text == "conversation_compacted":
        return _numbered(record, node, "metadata")
    return None


def summary_text(transcript: Transcript, seam: Compaction) -> str:
    """Return the summary that a compaction left, or nothing."""
    if seam.summary is None:
        return ""
    record = transcript.record(seam.summary)
    if seam.summary.type != "summary":
        return record.text
    said: Any = record.fields.get("summary")
    return said if isinstance(said, str) else ""


def sizes_of(seam: Compaction) -> tuple[int | None, int | None, int | None]:
    """Return how large the context was, what it was then, and what the client says it would be."""
    micro = seam.kind == "micro"
    return seam.pre_tokens, seam.post_tokens if micro else seam.context, seam.post_tokens


def _full(
    transcript: Transcript,
    loaded: Loaded,
    nodes: list[Node],
    place: int,
    titles: TitleCompactions,
) -> Compaction:
    boundary = nodes[place]
    logical = loaded.nodes.get(boundary.logical_parent) if boundary.logical_parent else None
    return msgspec.structs.replace(
        _numbered(transcript.record(boundary), boundary, "compactMetadata"),
        summary=_next(nodes, place, lambda other: _is_summary(transcript, other))
        or titles.summary_of(boundary),
        kept=tuple(preserved(transcript, loaded, boundary)),
        context=_context(transcript, nodes, place),
        logical_parent=logical or (nodes[place - 1] if place else None),
    )


def _numbered(record: Record, node: Node, field: str) -> Compaction:
    value: Any = record.fields.get(field)
    numbers = _numbers(cast("dict[str, Any]", value) if isinstance(value, dict) else {})
    after = _whole(numbers.post_tokens)
    before = _whole(numbers.pre_tokens)
    saved = _whole(numbers.tokens_saved)
    if after is None and before is not None and saved is not None:
        after = max(0, before - saved)
    took = measured_time(numbers.duration_ms)
    return Compaction(
        kind="micro" if node.subtype == _MICRO else "full",
        boundary=node,
        trigger=numbers.trigger,
        pre_tokens=before,
        post_tokens=after,
        duration=None if took is None else took / 1000,
        messages_before=_whole(numbers.messages_before),
        messages_kept=_whole(numbers.messages_kept),
        ratio=numbers.compression_ratio,
    )


def _numbers(fields: dict[str, Any]) -> _Numbers:
    good: dict[str, Any] = {}
    for field in msgspec.structs.fields(_Numbers):
        try:
            good[field.name] = msgspec.convert(fields[field.encode_name], field.type)
        except (KeyError, msgspec.MsgspecError):
            continue
    return _Numbers(**good)


def _whole(value: float | None) -> int | None:
    """Return a count; None for what no client counts, such as `1e400`."""
    return int(value) if value is not None and abs(value) < _MOST else None


def _context(transcript: Transcript, nodes: list[Node], place: int) -> int | None:
    """Return what the model read when it answered for the first time behind a place."""
    for node in nodes[place + 1 : place + 1 + _ANSWERS]:
        if node.is_boundary:
            break
        if node.type == "assistant" and node.model and not node.synthetic_error:
            usage = transcript.record(node).usage
            if usage is not None and usage.context:
                return usage.context
    return None


def _is_summary(transcript: Transcript, node: Node) -> bool:
    return node.type == "user" and bool(transcript.record(node).envelope.is_compact_summary)


def _next(nodes: list[Node], place: int, wanted: Callable[[Node], bool]) -> Node | None:
    """Return the first record shortly behind a place that is what is wanted."""
    return next(filter(wanted, _behind(nodes, place)), None)


def _behind(nodes: list[Node], place: int) -> Iterable[Node]:
    """Yield the next few records; attachments in between do not count."""
    left = _LOOK_AHEAD
    for node in nodes[place + 1 : place + 1 + 4 * _LOOK_AHEAD]:
        if node.type == "attachment":
            continue
        yield node
        left -= 1
        if not left:
            return
