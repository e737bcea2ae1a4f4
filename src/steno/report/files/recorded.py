"""The touches that stand in one transcript, without an index."""

from steno.format.blocks import ToolResult, ToolUse
from steno.format.records import Record
from steno.format.tool_catalogue import FILE_TOOLS, facts_of
from steno.format.values import as_object
from steno.index.moments import millis
from steno.report.files.values import Touch
from steno.session.story.outcomes import outcome_of
from steno.session.transcript import Transcript

__all__ = ["path_in", "touch_from", "touches_in"]


def touches_in(transcript: Transcript) -> dict[str, list[Touch]]:
    """Return the calls that worked, by the file they are about, in the order of the transcript."""
    waiting: dict[str, tuple[ToolUse, Record]] = {}
    found: dict[str, list[Touch]] = {}
    for node in transcript.nodes:
        if not node.uses and not node.results:
            continue
        record = transcript.record(node)
        for use in record.tool_uses:
            if use.name in FILE_TOOLS:
                waiting[use.id] = (use, record)
        for block in record.tool_results:
            use, asking = waiting.pop(block.tool_use_id, (None, record))
            path = path_in(use) if use is not None else ""
            touch = touch_from(use, block, record) if use is not None and path else None
            if touch is not None:
                kept = found.setdefault(path, [])
                kept.append(_placed(touch, asking, record))
    return found


def _placed(touch: Touch, asking: Record, answering: Record) -> Touch:
    return Touch(
        tool=touch.tool,
        asked=touch.asked,
        result=touch.result,
        words=touch.words,
        session=asking.session_id or "",
        agent=(asking.envelope.agent_id or "") if asking.is_sidechain else "",
        offset=asking.offset,
        order=answering.offset,
        time=millis(answering.timestamp),
    )


def path_in(use: ToolUse) -> str:
    """Return the file that a call is about."""
    path = use.input.get(facts_of(use.name).path_field)
    return path if isinstance(path, str) else ""


def touch_from(use: ToolUse, block: ToolResult, record: Record) -> Touch | None:
    """Return what a call and its result say; None if it failed or was denied."""
    if outcome_of(use.name, block, record).state != "ok":
        return None
    # One record may answer several calls; what the client kept is then of no certain call.
    alone = len(record.tool_results) == 1
    kept = as_object(record.tool_use_result) if alone else None
    return Touch(tool=use.name, asked=use.input, result=kept or {}, words=block.text)
