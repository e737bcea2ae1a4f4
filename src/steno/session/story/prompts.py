"""Who is speaking: which user records are people, and which are the client talking to the model.

Newer clients say it (`origin.kind`, `promptSource`, `isMeta`); for the others it is told by the
tags the client puts around what it says itself.
"""

import re
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.blocks import Block, Document, Image, Text, ToolResult, UnknownBlock
from steno.format.loose import REFUSED
from steno.format.records import Record
from steno.session.nodes import Node

__all__ = [
    "BY_PEOPLE",
    "FAINT",
    "STARTS",
    "Origin",
    "Prompt",
    "inside",
    "origin_of",
    "prompt_of",
    "tagged",
    "typed_command",
    "words_of",
]

Origin: TypeAlias = Literal[
    "human",
    "command",
    "shell",
    "queued",
    "notification",
    "teammate",
    "summary",
    "agent",
    "fork",
    "meta",
    "output",
    "hook",
    "interrupt",
    "result",
    "other",
]
"""Where the words of a user record come from.

human         typed, or given to `-p`
command       a slash command
shell         a shell command typed behind `!`
queued        typed while the agent was busy, taken up inside the running turn
notification  a background task that reports
teammate      another agent of a team
summary       the summary a compaction left
agent         the prompt a sub-agent was given
fork          the prompt a forked agent was given
meta          the client itself
output        what a local command or shell command printed
hook          a hook of an old client
interrupt     the mark an interruption leaves
result        tool results
other         a kind this version does not know
"""

STARTS: Final = frozenset(
    ("human", "command", "shell", "notification", "teammate", "agent", "fork", "other")
)
"""Origins that begin a turn."""
BY_PEOPLE: Final = frozenset(("human", "command", "shell", "queued"))
FAINT: Final = frozenset(("command", "summary", "notification", "fork"))
"""Origins that make a turn only when something comes of them."""

_TAGS: Final[tuple[tuple[str, Origin], ...]] = (
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<bash-input>", "shell"),
    ("<bash-stdout>", "output"),
    ("<bash-stderr>", "output"),
    ("<local-command-stdout>", "output"),
    ("<local-command-stderr>", "output"),
    ("<local-command-caveat>", "meta"),
    ("<task-notification>\n<fork-source>", "fork"),
    ("<task-notification>", "notification"),
    ("<teammate-message", "teammate"),
    ("<session-start-hook>", "hook"),
    ("<user-prompt-submit-hook>", "hook"),
    ("<pre-tool-use-hook>", "hook"),
    ("<post-tool-use-hook>", "hook"),
    ("Stop hook feedback:", "hook"),
    ("[Request interrupted by user", "interrupt"),
    ("This session is being continued from a previous conversation", "summary"),
)
_MARKS: Final = tuple(tag for tag, _ in _TAGS)
_KINDS: Final[dict[str, Origin]] = {
    "human": "human",
    "task-notification": "notification",
    "teammate": "teammate",
    "teammate-message": "teammate",
    "agent": "agent",
    "fork": "fork",
}
_REMINDER: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_SUMMARIES: Final = frozenset(("compact_recap", "compact_prelude"))


class Prompt(msgspec.Struct, frozen=True):
    """What a turn begins with."""

    text: str
    """The words as a person would say them: tags taken off, reminders left out."""
    origin: Origin
    node: Node
    images: int = 0
    time: datetime | None = None
    name: str = ""
    """The command, teammate or task it names."""

    @property
    def by_person(self) -> bool:
        """Whether a person said it."""
        return self.origin in BY_PEOPLE


class _Kind(msgspec.Struct, rename="camel"):
    kind: str | None = None


class _Marks(msgspec.Struct, rename="camel"):
    prompt_source: str | None = None


def origin_of(record: Record, *, agent: bool = False) -> Origin:
    """Return where the words of a user record come from; `agent` when it is a sub-agent's."""
    if any(map(_is_result, record.blocks)):
        return "result"
    envelope = record.envelope
    if envelope.is_compact_summary or record.type in _SUMMARIES:
        return "summary"
    if envelope.is_meta:
        return "meta"
    text = words_of(record)
    by_tag = tagged(text)
    if by_tag is not None:
        return by_tag
    if not text and not _images(record) and record.text:
        return "meta"
    return "agent" if agent else _stated(record)


def _is_result(block: Block) -> bool:
    """Whether a block is a tool's result, also one with a value that no result may have."""
    return isinstance(block, ToolResult) or (
        isinstance(block, UnknownBlock) and block.type == "tool_result"
    )


def tagged(text: str) -> Origin | None:
    """Return the origin that the beginning of a text gives away."""
    start = text.lstrip()[:80]
    if not start.startswith(_MARKS):
        return None
    return next(origin for tag, origin in _TAGS if start.startswith(tag))


def words_of(record: Record) -> str:
    """Return the words of a user record without the reminders the client put in."""
    parts = [block.text for block in record.blocks if isinstance(block, Text)]
    if any("<system-reminder>" in part for part in parts):
        parts = [_without_reminders(part) for part in parts]
    return "\n\n".join(part for part in parts if part)


def _without_reminders(text: str) -> str:
    end = 0
    while (found := _REMINDER.match(text, end)) is not None:
        end = found.end()
    return text[end:]


def _stated(record: Record) -> Origin:
    """Return what the record itself says about its origin; silence means a person."""
    origin = record.envelope.origin
    kind = _decoded(origin, _Kind) if origin else None
    if kind is not None and kind.kind:
        return _KINDS.get(kind.kind, "other")
    marks = _decoded(record.line, _Marks) if b'"promptSource"' in record.line else None
    return "other" if marks is not None and marks.prompt_source == "system" else "human"


def _decoded(raw: bytes | msgspec.Raw, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw, type=shape)
    except REFUSED:
        return None


def _images(record: Record) -> int:
    return sum(isinstance(block, Image | Document) for block in record.blocks)


def prompt_of(record: Record, node: Node, origin: Origin) -> Prompt:
    """Return a user record as the prompt of a turn."""
    name, text = _untagged(words_of(record), origin)
    return Prompt(text, origin, node, _images(record), record.time, name)


def _untagged(text: str, origin: Origin) -> tuple[str, str]:
    match origin:
        case "command":
            name = inside(text, "command-name") or f"/{inside(text, 'command-message')}"
            return name, f"{name} {inside(text, 'command-args')}".strip()
        case "shell":
            return "", inside(text, "bash-input")
        case "notification":
            return inside(text, "task-id"), inside(text, "summary") or text
        case "teammate":
            found = re.search(r'teammate_id="([^"]*)"', text[:400])
            return (found[1] if found else ""), inside(text, "teammate-message") or text
        case _:
            return "", text


def typed_command(text: str) -> str:
    """Return a slash command or a shell command of the user as it was typed; "" for other texts.

    >>> typed_command("<command-name>/tag</command-name><command-args>v1</command-args>")
    '/tag v1'
    """
    if "<command-name>" in text or "<command-message>" in text:
        return _untagged(text, "command")[1]
    return _untagged(text, "shell")[1] if "<bash-input>" in text else ""


def inside(text: str, tag: str) -> str:
    """Return what stands between a tag and its end.

    >>> inside("<task-id>b7</task-id>", "task-id")
    'b7'
    """
    start = text.find(f"<{tag}")
    opened = text.find(">", start)
    if start < 0 or opened < 0:
        return ""
    end = text.find(f"</{tag}>", opened)
    return text[opened + 1 : end if end >= 0 else len(text)].strip()
