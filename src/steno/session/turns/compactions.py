"""Compactions of a conversation, the chain across them, and messages repeated after them.

A compaction boundary has no parent, so a walk by parents ends there. Here the walk continues at the logical parent or,
if that is missing, at the record before the boundary in the file.

A published description has compactions that Claude Code does not write: a `summary` record, a boundary, and a record
without a parent. They are linked only by file order.

steno's agent repeats the last turn below the summary, under new IDs. These records are sent, but they do not start a
turn or run a tool: a prompt is marked by `repeatsCompactSummary`, an answer by an ID derived from its parent, and a
result by the call that it answers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.lenient_json import valid_duration
from steno.format.records import Record
from steno.session.resume.clients import STENO
from steno.session.resume.record_chain import LoadedRecords, preserved_messages, walk
from steno.session.transcript import Node, Transcript

_MAX_DISTANCE: Final = 4
"""Maximum distance of a summary from its boundary, in records."""


class TitleCompactions:
    """Summaries and successors of the boundaries of a file, computed once."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    @cached_property
    def boundaries(self) -> dict[int, Node]:
        """The boundary before a record without a parent, by the index of the record.

        Such a boundary has no children, and no message between boundary and record continues the earlier conversation.
        Several records may follow one boundary if the first prompt was edited.
        """
        boundaries: dict[int, Node] = {}
        nodes, by_uuid = self._transcript.nodes, self._transcript.by_uuid
        parents = {node.parent for node in nodes}
        boundary: Node | None = None
        for node in nodes:
            if not node.converses:
                continue
            if node.is_boundary:
                # A boundary without an ID cannot be a parent.
                is_last = node.uuid is None or by_uuid.get(node.uuid) is node
                is_alone = is_last and (node.uuid is None or node.uuid not in parents)
                boundary = node if is_alone else None
            elif boundary is None:
                continue
            elif node.parent is None:
                boundaries[node.index] = boundary
            elif node.is_message and self._is_before(node.parent, boundary):
                boundary = None
        return boundaries

    def _is_before(self, uuid: str, boundary: Node) -> bool:
        node = self._transcript.by_uuid.get(uuid)
        return node is not None and node.index < boundary.index

    def summary_of(self, boundary: Node) -> Node | None:
        """Return the `summary` record that was written with a boundary.

        It is directly before or after the boundary, without messages or other boundaries between them, or names the
        same record as the boundary. Summaries of other sessions are ignored.
        """
        nodes, at = self._transcript.nodes, boundary.index
        before = reversed(nodes[max(0, at - _MAX_DISTANCE) : at])
        for side in (before, nodes[at + 1 : at + 1 + _MAX_DISTANCE]):
            for node in _near_titles(side):
                leaf = self._leaf(node)
                if not leaf or leaf in self._transcript.by_uuid:
                    return node
        return None if boundary.logical_parent is None else self._by_leaf.get(boundary.logical_parent)

    @cached_property
    def _by_leaf(self) -> dict[str, Node]:
        titles: dict[str, Node] = {}
        for node in self._transcript.of_type("summary"):
            if leaf := self._leaf(node):
                titles.setdefault(leaf, node)
        return titles

    def _leaf(self, title: Node) -> str:
        return self._transcript.record(title).envelope.leaf_uuid or ""


def _near_titles(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.is_message or node.is_boundary:
            return
        if node.type == "summary":
            yield node


CompactionKind: TypeAlias = Literal["full", "micro"]
_MAX_COUNT: Final = 1 << 53
_DIALECT_TYPES: Final = frozenset(("compact_system", "compact_prelude"))
_MICRO_SUBTYPE: Final = "microcompact_boundary"
_CONVERTED_SUBTYPE: Final = "conversation_compacted"
"""A compaction of a published dialect that kept all earlier messages."""
_LOOK_AHEAD: Final = 4
"""Maximum distance of a summary after its boundary, in records."""
_ANSWER_LOOK_AHEAD: Final = 200
"""Maximum distance of an answer after a boundary, in records."""


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction of the conversation."""

    kind: CompactionKind = "full"
    boundary: Node
    summary: Node | None = None
    trigger: str = ""
    pre_tokens: int | None = None
    """Context size before the compaction, in tokens."""
    post_tokens: int | None = None
    """Claude Code's estimate of the remaining conversation in tokens, without the fixed prompt."""
    context: int | None = None
    """Context size at the next answer in tokens; None without one."""
    duration: float | None = None
    """Duration in seconds."""
    kept: tuple[Node, ...] = ()
    """Earlier records that are preserved unchanged."""
    logical_parent: Node | None = None
    """The last record before the compaction."""
    messages_before: int | None = None
    """Number of messages before the compaction, and how many of them were kept, if recorded."""
    messages_kept: int | None = None
    ratio: float | None = None
    """Remaining fraction of the size, as recorded by a dialect."""


class _CompactionNumbers(msgspec.Struct, rename="camel"):
    """Numbers recorded at a boundary; dialects have additional fields."""

    trigger: str = ""
    pre_tokens: float | None = None
    post_tokens: float | None = None
    tokens_saved: float | None = None
    duration_ms: float | None = None
    messages_before: float | None = None
    messages_kept: float | None = None
    compression_ratio: float | None = None


def full_chain(transcript: Transcript, loaded: LoadedRecords, leaf: Node) -> list[Node]:
    """Return the records from the first to `leaf`, across all compactions."""
    chain = walk(loaded, leaf, STENO)
    parts = [chain]
    seen = {node.uuid for node in chain}
    titles = TitleCompactions(transcript)
    while chain:
        boundary = chain[0] if chain[0].is_boundary else _boundary_before_root(transcript, chain[0], titles)
        if boundary is None:
            break
        # A boundary without an ID is not part of the graph.
        if boundary is not chain[0] and boundary.uuid is not None:
            parts.append([boundary])
            seen.add(boundary.uuid)
        before = _record_before(transcript, loaded, boundary, seen)
        if before is None:
            break
        chain = [node for node in walk(loaded, before, STENO) if node.uuid not in seen]
        seen.update(node.uuid for node in chain)
        parts.append(chain)
    return [node for part in reversed(parts) for node in part]


def _boundary_before_root(transcript: Transcript, first: Node, titles: TitleCompactions) -> Node | None:
    """Return the boundary before a record without a parent, if that boundary has no children.

    In one published description, a new chain starts after a compaction.
    """
    earlier = transcript.nodes[: first.index]
    if first.parent is not None or not any(node.is_boundary for node in earlier):
        return None
    return titles.boundaries.get(first.index)


def _record_before(transcript: Transcript, loaded: LoadedRecords, boundary: Node, seen: set[str | None]) -> Node | None:
    logical = loaded.nodes.get(boundary.logical_parent) if boundary.logical_parent else None
    if logical is not None and logical.uuid not in seen:
        return logical
    for index in range(boundary.index - 1, -1, -1):
        node = transcript.nodes[index]
        if node.converses and node.uuid not in seen and loaded.nodes.get(node.uuid) is node:
            return node
    return None


def is_compaction(node: Node) -> bool:
    """Return whether the conversation may have been compacted at this record, in any dialect."""
    return node.is_boundary or node.type in _DIALECT_TYPES or node.subtype == _CONVERTED_SUBTYPE


def keeps_all(node: Node) -> bool:
    """Return whether a compaction kept all earlier messages in the conversation."""
    return node.type == "system" and node.subtype == _CONVERTED_SUBTYPE


def compactions_of(transcript: Transcript, loaded: LoadedRecords, nodes: list[Node]) -> dict[int, Compaction]:
    """Return the compactions among records in order, by the index of their boundary."""
    compactions: dict[int, Compaction] = {}
    titles = TitleCompactions(transcript)
    for index, node in enumerate(nodes):
        if not node.subtype and node.type not in _DIALECT_TYPES:
            continue
        if node.is_boundary:
            compactions[node.index] = _full_compaction(transcript, loaded, nodes, index, titles)
        elif node.subtype == _MICRO_SUBTYPE:
            compactions[node.index] = _compaction_from_fields(transcript.record(node), node, "microcompactMetadata")
        elif is_compaction(node) and (compaction := compaction_at(transcript.record(node), node)) is not None:
            if node.type == "compact_prelude":
                summary = _next_record(nodes, index, lambda other: other.type == "compact_recap")
                compaction = msgspec.structs.replace(compaction, summary=summary)
            compactions[node.index] = compaction
    return compactions


def compaction_at(record: Record, node: Node) -> Compaction | None:
    """Return the compaction described by a single record, if any."""
    if node.is_boundary or node.type == "compact_prelude" or node.subtype == _CONVERTED_SUBTYPE:
        return _compaction_from_fields(record, node, "compactMetadata")
    if node.type == "compact_system" and record.text == "conversation_compacted":
        return _compaction_from_fields(record, node, "metadata")
    return None


def summary_text(transcript: Transcript, compaction: Compaction) -> str:
    """Return the summary of a compaction, or an empty string."""
    if compaction.summary is None:
        return ""
    record = transcript.record(compaction.summary)
    if compaction.summary.type != "summary":
        return record.text
    summary: Any = record.fields.get("summary")
    return summary if isinstance(summary, str) else ""


def context_sizes(compaction: Compaction) -> tuple[int | None, int | None, int | None]:
    """Return the context size before the compaction, after it, and as estimated by Claude Code."""
    micro = compaction.kind == "micro"
    return (compaction.pre_tokens, compaction.post_tokens if micro else compaction.context, compaction.post_tokens)


def _full_compaction(
    transcript: Transcript, loaded: LoadedRecords, nodes: list[Node], index: int, titles: TitleCompactions
) -> Compaction:
    boundary = nodes[index]
    logical = loaded.nodes.get(boundary.logical_parent) if boundary.logical_parent else None
    return msgspec.structs.replace(
        _compaction_from_fields(transcript.record(boundary), boundary, "compactMetadata"),
        summary=_next_record(nodes, index, lambda other: _is_summary(transcript, other)) or titles.summary_of(boundary),
        kept=tuple(preserved_messages(transcript, loaded, boundary)),
        context=_context_after(transcript, nodes, index),
        logical_parent=logical or (nodes[index - 1] if index else None),
    )


def _compaction_from_fields(record: Record, node: Node, field: str) -> Compaction:
    value: Any = record.fields.get(field)
    numbers = _read_numbers(cast("dict[str, Any]", value) if isinstance(value, dict) else {})
    after = _count_or_none(numbers.post_tokens)
    before = _count_or_none(numbers.pre_tokens)
    saved = _count_or_none(numbers.tokens_saved)
    if after is None and before is not None and saved is not None:
        after = max(0, before - saved)
    milliseconds = valid_duration(numbers.duration_ms)
    return Compaction(
        kind="micro" if node.subtype == _MICRO_SUBTYPE else "full",
        boundary=node,
        trigger=numbers.trigger,
        pre_tokens=before,
        post_tokens=after,
        duration=None if milliseconds is None else milliseconds / 1000,
        messages_before=_count_or_none(numbers.messages_before),
        messages_kept=_count_or_none(numbers.messages_kept),
        ratio=numbers.compression_ratio,
    )


def _read_numbers(fields: dict[str, Any]) -> _CompactionNumbers:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(_CompactionNumbers):
        try:
            values[field.name] = msgspec.convert(fields[field.encode_name], field.type)
        except (KeyError, msgspec.MsgspecError):
            continue
    return _CompactionNumbers(**values)


def _count_or_none(value: float | None) -> int | None:
    """Return an integer count, or None for implausible values such as `1e400`."""
    return int(value) if value is not None and abs(value) < _MAX_COUNT else None


def _context_after(transcript: Transcript, nodes: list[Node], index: int) -> int | None:
    """Return the context size of the first answer after an index."""
    for node in nodes[index + 1 : index + 1 + _ANSWER_LOOK_AHEAD]:
        if node.is_boundary:
            break
        if node.type == "assistant" and node.model and not node.synthetic_error:
            usage = transcript.record(node).usage
            if usage is not None and usage.context:
                return usage.context
    return None


def _is_summary(transcript: Transcript, node: Node) -> bool:
    return node.type == "user" and bool(transcript.record(node).envelope.is_compact_summary)


def _next_record(nodes: list[Node], index: int, matches: Callable[[Node], bool]) -> Node | None:
    return next(filter(matches, _records_after(nodes, index)), None)


def _records_after(nodes: list[Node], index: int) -> Iterable[Node]:
    """Yield the next few records, without attachments."""
    remaining = _LOOK_AHEAD
    for node in nodes[index + 1 : index + 1 + 4 * _LOOK_AHEAD]:
        if node.type == "attachment":
            continue
        yield node
        remaining -= 1
        if not remaining:
            return


def repeated_id(parent: str | None) -> str:
    """Return the `message.id` of an answer that is repeated below a record."""
    return f"msg_{parent}"


class RepeatTracker:
    """Recognizes repeated messages, in conversation order."""

    def __init__(self, message_id: str = "", calls: Sequence[str] = ()) -> None:
        self.message_id = message_id
        """ID of the last repeated answer."""
        self.calls = set(calls)
        """Calls of repeated answers that have no result yet."""

    def is_repeated_answer(self, parent: str | None, message_id: str | None, calls: Sequence[str]) -> bool:
        """Return whether a record of an answer with these calls is a repetition."""
        if not message_id or message_id not in (self.message_id, repeated_id(parent)):
            return False
        self.message_id = message_id
        self.calls.update(calls)
        return True

    def are_repeated_results(self, calls: Sequence[str]) -> bool:
        """Return whether results are repetitions: whether they answer repeated calls."""
        if not calls or not self.calls.issuperset(calls):
            return False
        self.calls.difference_update(calls)
        return True
