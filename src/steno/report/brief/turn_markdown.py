"""Texts, calls, sub-agents, backups, compactions and the queue of a turn, as Markdown.

Every word of a session stands in a code span or in a fenced block.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from steno.report import words
from steno.report.brief.quote import block, span
from steno.report.brief.turn_content import (
    AssistantText,
    ContextCompaction,
    FileBackup,
    QueueOperation,
    SubAgent,
    ToolCall,
)
from steno.report.brief.values import Asked

__all__ = ["STATES", "TextLimits", "content_after", "content_before", "conversation", "quoted"]

STATES: Final = {
    "ok": "ok",
    "failed": "failed",
    "denied": "not allowed",
    "open": "no result",
    "interrupted": "interrupted",
    "unknown": "not known",
}
_INLINE: Final = 200
_NAME: Final = 80
_PATH: Final = 160
_OUTCOME: Final = 160
_IDS: Final = 5
_CHANGES: Final = {
    "in_turn": "",
    "before_turn": "changed before this turn",
    "earlier": "changed before the session began",
}
_OPERATIONS: Final = {
    "enqueue": "added",
    "dequeue": "taken",
    "remove": "removed",
    "popAll": "emptied",
    "complete": "completed",
}


class TextLimits(msgspec.Struct, frozen=True):
    """How long texts of a session may be in Markdown."""

    text: int
    """Characters of a prompt, a text, an answer."""
    value: int
    """Characters of a parameter of a call."""
    blocks: bool = False
    """Whether long parameters become fenced blocks instead of code spans."""


def quoted(text: str, longest: int) -> str:
    """Return a text behind a colon: on the same line where it is short."""
    short = len(text) <= _INLINE and "\n" not in text
    return f" {span(text, _INLINE)}" if short else f"\n\n{block(text, longest)}"


def content_before(turn: Asked, limits: TextLimits) -> Iterator[str]:
    """Yield the compactions before the prompt of a turn."""
    yield from (_compaction(each, limits) for each in turn.compactions if each.order < 0)


def content_after(turn: Asked, limits: TextLimits) -> Iterator[str]:
    """Yield sub-agents, backups and the queue of a turn."""
    for agent in turn.agents:
        yield from _agent(agent, limits)
    if turn.backups:
        yield f"Files backed up by the client: {'; '.join(map(_backup, turn.backups))}."
    if turn.queue:
        yield f"Queue: {'; '.join(_queued(each, limits) for each in turn.queue)}."


def conversation(
    texts: Iterable[AssistantText],
    calls: Iterable[ToolCall],
    limits: TextLimits,
    compactions: Iterable[ContextCompaction] = (),
) -> Iterator[str]:
    """Yield texts, calls and compactions in order; calls behind one another are one list."""
    # What stands before a text or a call has the same position, and comes first.
    rows: list[AssistantText | ToolCall | ContextCompaction] = [*compactions, *texts, *calls]
    listed: list[str] = []
    for row in sorted(rows, key=lambda each: each.order):
        if isinstance(row, ToolCall):
            listed.append(_call(row, limits))
            continue
        if listed:
            yield "\n".join(listed)
            listed = []
        if isinstance(row, ContextCompaction):
            yield _compaction(row, limits)
            continue
        said = "Said by the client" if row.synthetic else "Said"
        yield f"{said}:{quoted(row.text, limits.text)}"
    if listed:
        yield "\n".join(listed)


# Calls


def _call(call: ToolCall, limits: TextLimits) -> str:
    given = [_parameter(call, name, value, limits) for name, value in call.input.items()]
    short = [text for text, is_block in given if not is_block]
    long = [text for text, is_block in given if is_block]
    named = f" ({'; '.join(short)})" if short else ""
    outcome = span(call.outcome, _OUTCOME)
    ended = STATES[call.state] + (f", {outcome}" if outcome else "")
    return "\n".join([f"- {span(call.tool, _NAME) or 'call'}{named} → {ended}", *long])


def _parameter(call: ToolCall, name: str, value: Any, limits: TextLimits) -> tuple[str, bool]:
    """Return a parameter, and whether it is a block of its own."""
    text = value if isinstance(value, str) else _json(value)
    size = call.cut.get(name, len(text))
    label = span(name, _NAME) or "parameter"
    if limits.blocks and (len(text) > _INLINE or "\n" in text):
        lines = block(text, limits.value).split("\n")
        return "\n".join([f"  {label}:", "", *(f"  {line}".rstrip() for line in lines)]), True
    whole = f" [{size:,} characters]" if size > limits.value else ""
    return f"{label} {span(text, limits.value) or '(empty)'}{whole}", False


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# Sub-agents


def _agent(agent: SubAgent, limits: TextLimits) -> Iterator[str]:
    facts = [
        span(agent.status, _NAME),
        "in the background" if agent.background else "",
        words.count(len(agent.texts), "text") if agent.texts else "",
        words.count(len(agent.calls), "call") if agent.calls else "",
        words.count(agent.updates, "progress record") if agent.updates else "",
        f"started by sub-agent {span(agent.parent_id, _NAME)}" if agent.parent_id else "",
        "" if agent.source != "result" else "no records of its own",
    ]
    named = " ".join(part for part in (span(agent.kind, _NAME), span(agent.task, _INLINE)) if part)
    yield f"Sub-agent {named or '(no name)'} ({', '.join(fact for fact in facts if fact)})."
    if agent.prompt:
        yield f"Its prompt:{quoted(agent.prompt, limits.text)}"
    texts = (text for text in agent.texts if not agent.report or text.text.strip() != agent.report)
    yield from conversation(texts, agent.calls, limits)
    if agent.report:
        yield f"Its report:{quoted(agent.report, limits.text)}"


# What the client did


def _compaction(each: ContextCompaction, limits: TextLimits) -> str:
    saved = words.tokens(each.tokens_saved) if each.tokens_saved is not None else ""
    facts = [
        f"{words.tokens(each.pre_tokens)} tokens before" if each.pre_tokens is not None else "",
        f"{saved} tokens saved" if saved else "",
        words.count(each.results_removed, "tool result") + " removed"
        if each.results_removed
        else "",
        words.count(each.attachments_removed, "attachment") + " removed"
        if each.attachments_removed
        else "",
    ]
    ids = [span(name, _NAME) for name in each.compacted_tool_ids]
    shown = ids if limits.blocks else ids[:_IDS]
    more = f" and {len(ids) - len(shown):,} more" if len(ids) > len(shown) else ""
    kind = "Context compacted" if each.kind == "full" else "Old results removed from the context"
    by = f" ({span(each.trigger, _NAME)})" if each.trigger else ""
    told = ", ".join(fact for fact in facts if fact)
    line = f"{kind}{by}{': ' if told else ''}{told}."
    line += f" Results of {', '.join(shown)}{more}." if shown else ""
    return line + (f" Its summary:{quoted(each.summary, limits.text)}" if each.summary else "")


def _backup(each: FileBackup) -> str:
    facts = [
        f"version {each.version}" if each.version is not None else "",
        "" if each.existed else "new file",
        _CHANGES[each.change],
        f"{each.size:,} characters" if each.size is not None else "",
        "" if each.by_call or each.change == "earlier" else "no call changed it",
    ]
    told = ", ".join(fact for fact in facts if fact)
    return span(each.path, _PATH) + (f" ({told})" if told else "")


def _queued(each: QueueOperation, limits: TextLimits) -> str:
    name = _OPERATIONS.get(each.operation) or span(each.operation, _NAME) or "operation"
    content, reason = span(each.content, limits.value), span(each.reason, _NAME)
    size = max(each.size, len(each.content))
    whole = f" [{size:,} characters]" if size > limits.value else ""
    return (
        " ".join(part for part in (name, content) if part)
        + whole
        + (f" ({reason})" if reason else "")
    )
