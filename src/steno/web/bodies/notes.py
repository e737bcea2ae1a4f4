"""What is no tool call: reasoning, words, prompts that waited, what the client noted."""

from typing import Any, Final

from steno.format.blocks import (
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UnknownBlock,
    read_blocks,
)
from steno.format.loose import loose
from steno.format.records import Record, read_time
from steno.safe.html import Html, trusted
from steno.session.nodes import Node
from steno.session.story.prompts import inside
from steno.session.story.steps import Step, one_line
from steno.web.bodies.about import About
from steno.web.bodies.parts import (
    Fact,
    box,
    clipped,
    door_row,
    facts,
    joined,
    note,
    printed,
    prose,
    raw_doors,
    time_of_day,
)
from steno.web.bodies.pictures import gallery
from steno.web.bodies.plain import described
from steno.web.bodies.tidy import tidy
from steno.web.bodies.values import as_fields, as_text
from steno.web.paint import part

__all__ = [
    "ENVELOPE",
    "blocks_view",
    "queued",
    "said",
    "system",
    "thought",
    "unknown",
    "user_note",
    "words_of_record",
]

_THOUGHTS: Final = (Thinking, RedactedThinking)
_PRINTED: Final = (
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
    "bash-stderr",
)
_COMMAND: Final = ("command-name", "command-message", "command-args")
ENVELOPE: Final = frozenset(
    (
        "agentId",
        "cwd",
        "entrypoint",
        "forkedFrom",
        "gitBranch",
        "isMeta",
        "isSidechain",
        "level",
        "parentUuid",
        "requestId",
        "sessionId",
        "sessionKind",
        "session_id",
        "slug",
        "subtype",
        "timestamp",
        "type",
        "userType",
        "uuid",
        "version",
    )
)
"""Fields that say where a record belongs, not what it says."""


def words_of_record(record: Record) -> str:
    """Return the words of a message, of an attachment's prompt, or of an entry of the queue."""
    if record.text:
        return record.text
    envelope = record.envelope
    attached = as_fields(loose(envelope.attachment)) if envelope.attachment else {}
    value: Any = attached.get("prompt")
    if value is None and envelope.content:
        value = loose(envelope.content)
    return "\n\n".join(block.text for block in read_blocks(value) if isinstance(block, Text))


# The model


def thought(step: Step, about: About) -> Html:
    """Return reasoning; or that only a signature, or something unreadable, was kept of it."""
    if step.call is None:
        return Html("")
    record = about.transcript.record(step.call)
    blocks = [each for each in record.blocks if isinstance(each, _THOUGHTS)]
    several = len(blocks) > 1
    same = [each for each in blocks if _first_line(each) == step.subject] if several else blocks
    made: list[Html] = []
    for block in (same or blocks)[: 1 if same else None]:
        if isinstance(block, RedactedThinking):
            size = f"{len(block.data):,}"
            words = f"Only the model's maker can read this thought: {size} letters, encrypted."
            made.append(note(words, icon="think"))
        elif block.thinking.strip():
            made.append(prose(block.thinking, about, kind="think", offset=record.offset))
        else:
            signed = f"A signature of {len(block.signature):,} letters" if block.signature else ""
            words = f"The client kept no words of this thought. {signed}".strip()
            made.append(note(f"{words} stands for it." if signed else words, icon="think"))
    return joined(*made, _door(about, record))


def _first_line(block: Thinking | RedactedThinking) -> str:
    return one_line(block.thinking) if isinstance(block, Thinking) else ""


def said(step: Step, about: About) -> Html:
    """Return what the model said between two calls."""
    if step.call is None:
        return Html("")
    record = about.transcript.record(step.call)
    texts = [block.text for block in record.blocks if isinstance(block, Text)]
    several = len(texts) > 1
    same = [text for text in texts if one_line(text) == step.subject] if several else texts
    text = same[0] if same else "\n\n".join(texts)
    return Html(prose(text, about, offset=record.offset) + _door(about, record))


def _door(about: About, record: Record) -> Html:
    return door_row(*raw_doors(about, record.offset)) if about.links.live else Html("")


# People


def queued(step: Step, about: About) -> Html:
    """Return a prompt that waited, when it came and when it was taken up."""
    if step.call is None:
        return Html("")
    record = about.transcript.record(step.call)
    envelope = record.envelope
    attached = as_fields(loose(envelope.attachment)) if envelope.attachment else {}
    text = words_of_record(record)
    came = read_time(as_text(attached.get("timestamp"))) or record.time
    queue = attached or envelope.operation
    head = f"Queued {time_of_day(came)}".strip() if queue else "Said meanwhile"
    taken = f", taken in {time_of_day(record.time)}" if attached else ""
    mode = as_text(attached.get("commandMode"))
    body = prose(text, about, offset=record.offset)
    tagline = f"{head}{taken}" + (f", as {mode}" if mode and mode != "prompt" else "")
    shown = Html(part("body-queued.html.j2", tagline=clipped(tagline), body=trusted(body)))
    return joined(shown, gallery(record, about), _door(about, record))


# The client


def user_note(record: Record, about: About) -> Html:
    """Return what stands in a user record that nobody typed."""
    text = record.text
    offset = record.offset
    made: list[Html] = []
    if b'"isCompactSummary":true' in record.line:
        made.append(prose(text, about, offset=offset))
    elif any(f"<{tag}>" in text for tag in (*_PRINTED, *_COMMAND)):
        made.append(_command(text, about, offset))
    elif text.strip():
        body, shown, _ = printed(text, about, offset=offset)
        made.append(box(body, doors=raw_doors(about, offset), shown=shown))
    made += [blocks_view(record, about), gallery(record, about)]
    return joined(*made)


def _command(text: str, about: About, offset: int) -> Html:
    name = inside(text, "command-name")
    made = [facts(Fact("command", name), Fact("with", inside(text, "command-args")))]
    doors = raw_doors(about, offset)
    for tag in _PRINTED:
        out = inside(text, tag)
        if out:
            body, shown, _ = printed(out, about, offset=offset)
            plain = "stderr" if tag.endswith("stderr") else ""
            made.append(box(body, plain=plain, doors=doors, shown=shown))
    if not any(made) or not (name or any(inside(text, tag) for tag in _PRINTED)):
        body, shown, _ = printed(text, about, offset=offset)
        made.append(box(body, doors=doors, shown=shown))
    return joined(*made)


def blocks_view(record: Record, about: About) -> Html:
    """Return the blocks of a message that are neither words nor pictures nor calls."""
    made: list[Html] = []
    for block in record.blocks:
        if isinstance(block, UnknownBlock):
            made.append(box(tidy(block.fields, full=about.full), title=block.type or "block"))
        elif block.type == "document" or isinstance(block, ToolUse | ToolResult):
            made.append(facts(Fact(block.type, getattr(block, "media_type", "") or block.type)))
    return joined(*made)


def system(record: Record, about: About, more: Node | None = None) -> Html:
    """Return what a system record says."""
    fields = record.fields
    content = as_text(fields.get("content"))
    made: list[Html] = []
    if any(f"<{tag}>" in content for tag in (*_PRINTED, *_COMMAND)):
        made.append(_command(content, about, record.offset))
    elif content.strip():
        body, shown, _ = printed(content, about, offset=record.offset)
        made.append(box(body, doors=raw_doors(about, record.offset), shown=shown))
    leave = ENVELOPE | {"content"}
    made.append(described(fields, about, offset=record.offset, leave=leave))
    if more is not None:
        made.append(system(about.transcript.record(more), about))
    return joined(*made)


def unknown(step: Step, about: About) -> Html:
    """Return a block, or a record, of a kind that is not known."""
    if step.call is None:
        return Html("")
    record = about.transcript.record(step.call)
    odd = [block for block in record.blocks if isinstance(block, UnknownBlock)]
    same = [block for block in odd if (block.type or "block") == step.verb]
    doors = raw_doors(about, record.offset)
    made = [
        box(tidy(block.fields, full=about.full), title=block.type or "block", doors=doors)
        for block in same
    ]
    return joined(*made)
