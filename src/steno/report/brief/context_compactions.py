"""How the context was made smaller in each turn: full compactions, and tool results removed."""

from collections.abc import Sequence
from typing import Any, Final

from steno.format.records import Record
from steno.format.values import as_list, as_object
from steno.report.brief.turn_content import ContextCompaction
from steno.report.brief.turn_positions import TurnPositions
from steno.session.session import Session
from steno.session.story.compactions import Compaction, summary_text
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

__all__ = ["compactions_by_turn"]

_BIG: Final = 1 << 53
_APPLIED: Final = b'"applied_edits"'


def compactions_by_turn(
    session: Session, turns: Sequence[Turn], positions: TurnPositions
) -> dict[int, list[ContextCompaction]]:
    """Return the compactions of each turn, by its number, in the order of the conversation."""
    found: dict[int, list[ContextCompaction]] = {}
    for seam in session.compactions:
        number = positions.of_message(seam.boundary.uuid or "", seam.boundary)
        if number is not None:
            found.setdefault(number, []).append(_recorded(session.transcript, seam))
    for turn in turns:
        applied = list(_applied(session.transcript, turn))
        if applied:
            found.setdefault(turn.number, []).extend(applied)
    return found


def _recorded(transcript: Transcript, seam: Compaction) -> ContextCompaction:
    """Return a compaction that a record of its own states."""
    record = transcript.record(seam.boundary)
    micro = seam.kind == "micro"
    numbers = as_object(record.fields.get("microcompactMetadata" if micro else "compactMetadata"))
    numbers = numbers or {}
    ids = as_list(numbers.get("compactedToolIds"))
    attachments = as_list(numbers.get("clearedAttachmentUUIDs"))
    before, after = _whole(seam.pre_tokens), _whole(seam.post_tokens)
    saved = _whole(numbers.get("tokensSaved"))
    if saved is None and before is not None and after is not None:
        saved = max(0, before - after)
    return ContextCompaction(
        kind=seam.kind,
        trigger=seam.trigger,
        pre_tokens=before,
        post_tokens=after,
        tokens_saved=saved,
        compacted_tool_ids=tuple(each for each in ids or () if isinstance(each, str)),
        results_removed=None if ids is None else len(ids),
        attachments_removed=len(attachments) if attachments else None,
        summary="" if micro else summary_text(transcript, seam).strip(),
        time=record.time.timestamp() if record.time is not None else None,
        uuid=seam.boundary.uuid or "",
    )


def _applied(transcript: Transcript, turn: Turn) -> list[ContextCompaction]:
    """Return what the API says it removed from the context itself, once per response."""
    found: dict[str, ContextCompaction] = {}
    for node in turn.nodes:
        if node.type != "assistant":
            continue
        record = transcript.record(node)
        if _APPLIED in record.line:
            name = node.message_id or node.uuid or ""
            for each in _edits(record):
                found.setdefault(f"{name} {each.results_removed} {each.tokens_saved}", each)
    return list(found.values())


def _edits(record: Record) -> list[ContextCompaction]:
    message = as_object(record.fields.get("message")) or {}
    managed = as_object(message.get("context_management")) or {}
    edits = [as_object(each) or {} for each in as_list(managed.get("applied_edits")) or []]
    return [
        ContextCompaction(
            kind="micro",
            trigger="api",
            tokens_saved=_whole(each.get("cleared_input_tokens")),
            results_removed=_whole(each.get("cleared_tool_uses")),
            time=record.time.timestamp() if record.time is not None else None,
            uuid=record.uuid or "",
        )
        for each in edits
        if _whole(each.get("cleared_input_tokens"))
    ]


def _whole(value: Any) -> int | None:
    return int(value) if value.__class__ in (int, float) and 0 <= value < _BIG else None
