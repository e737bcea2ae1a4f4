"""A record: its raw bytes, their position in the file, and lazy typed views of them.

The bytes are authoritative. Everything else (kind, envelope, message, blocks, text, usage, fields, view) is decoded on
access and never raises: what cannot be read is None or empty and noted in `damage`.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.lenient_json import decode_lenient
from steno.format.message import (
    Block,
    Envelope,
    Message,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    decode_blocks,
    decode_message,
)
from steno.format.source import Damage, Source, Span

if TYPE_CHECKING:
    from steno.format.record_views import View


_NO_DAMAGE: Final[tuple[Damage, ...]] = ()
_NOT_DECODED: Final = Message()
Dialect: TypeAlias = Literal["claude", "spec-000", "spec-004"]
"""`claude` is the format of Claude Code; the others are published descriptions."""
MESSAGE_TYPES: Final = frozenset(("human", "tool_result", "compact_prelude", "compact_recap"))
"""Types of messages that Claude Code does not write."""
DIALECT_TYPES: Final = MESSAGE_TYPES | {"compact_system"}
"""All record types that Claude Code does not write."""
ROLES: Final = frozenset(("user", "assistant"))
"""Types of messages that both Claude Code and the dialects use."""
SYSTEM_SUBTYPES: Final = frozenset(("", "tool_result", "error", "meta"))
"""Subtypes of system records in a dialect."""
COMPACTION_OPERATIONS: Final = frozenset(
    f"conversation_{name}" for name in ("compacting", "compacted", "restoring", "restored")
)
"""Messages of `compact_system` records."""


PUBLISHED_DESCRIPTIONS_PAGE: Final = "docs/reference/published-descriptions.md"
"""Page that compares the published descriptions with Claude Code."""
PUBLISHED_FORMS: Final = {
    "queue-operation/complete": (
        "from the description of 2.1.42 (OpenContext); Claude Code writes enqueue, dequeue, remove, popAll"
    ),
    "system/error": "from the description of 2.0.76 (frago); Claude Code writes system/api_error",
}
"""Kinds of records from published descriptions, and what Claude Code writes instead."""

_MIN_MILLISECONDS: Final = 1e11
# Times too close to the limits of the calendar cannot be converted to every time zone.
_CALENDAR_EDGE: Final = timedelta(days=2)
_FIRST_TIME: Final = datetime.min.replace(tzinfo=UTC) + _CALENDAR_EDGE
_LAST_TIME: Final = datetime.max.replace(tzinfo=UTC) - _CALENDAR_EDGE


class Gap:
    """Bytes that are not a record: an incomplete line, zero bytes, an oversize line, or a blank line."""

    __slots__ = ("damage", "head", "length", "offset")

    def __init__(self, offset: int, length: int, head: bytes, damage: tuple[Damage, ...] = _NO_DAMAGE) -> None:
        self.offset = offset
        self.length = length
        self.head = head
        self.damage = damage

    def ends_line(self, source: Source) -> bool:
        """Return whether its line has ended, so that the gap can never become a record."""
        return source.read(self.offset + self.length - 1, 1) == b"\n"

    @property
    def span(self) -> Span:
        """Position of the gap."""
        return Span(self.offset, self.length)


class Record(msgspec.Struct, eq=False, gc=False):
    """One line of a session file."""

    line: bytes
    offset: int
    ending: bytes
    envelope: Envelope
    notes: tuple[Damage, ...] = _NO_DAMAGE
    _message: Message | None = _NOT_DECODED
    _blocks: tuple[Block, ...] | None = None
    _tool_use_result: Any = _NOT_DECODED
    _time: Any = _NOT_DECODED

    def __repr__(self) -> str:
        return f"<Record {self.kind} at {self.offset}>"

    # Bytes and position

    @property
    def raw(self) -> bytes:
        """The exact bytes of the span, including the line ending."""
        return self.line + self.ending

    @property
    def length(self) -> int:
        """Number of bytes, including the line ending."""
        return len(self.line) + len(self.ending)

    @property
    def span(self) -> Span:
        """Position of the record."""
        return Span(self.offset, self.length)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """All damage of these bytes: found while splitting lines, and inside the line."""
        from steno.format.salvage import find_flaws

        return (*self.notes, *find_flaws(self.line, self.offset))

    @property
    def whole(self) -> bool:
        """Whether the line contains only this record, so that a line-based reader would read it too."""
        return not self.notes or not any(note.id in _SHARED_LINE_DAMAGE for note in self.notes)

    # Identity

    @property
    def type(self) -> str:
        """The record's `type`, or an empty string."""
        return self.envelope.type or ""

    @property
    def subtype(self) -> str:
        """The `subtype` of a system record, or an empty string."""
        return self.envelope.subtype or ""

    @property
    def kind(self) -> str:
        """Name in the catalogue: `user/prompt`, `system/turn_duration`, `mode`, …."""
        return kind_of(self)

    @property
    def dialect(self) -> Dialect:
        """Dialect of the record."""
        return dialect_of(self.envelope)

    @property
    def uuid(self) -> str | None:
        """The record's ID; unique only within its file."""
        return self.envelope.uuid

    @property
    def parent_uuid(self) -> str | None:
        """ID of the previous record."""
        return self.envelope.parent_uuid

    @property
    def session_id(self) -> str | None:
        """The session ID in the record."""
        return self.envelope.session_id

    @property
    def timestamp(self) -> str | int | float | None:
        """The time as written: an ISO string, or in one dialect a number of milliseconds."""
        return self.envelope.timestamp

    @property
    def time(self) -> datetime | None:
        """The time as a value with a time zone; None if missing or unreadable."""
        if self._time is _NOT_DECODED:
            self._time = read_time(self.envelope.timestamp)
        return self._time

    @property
    def is_sidechain(self) -> bool:
        """Whether it belongs to a sub-agent."""
        return bool(self.envelope.is_sidechain)

    # Content

    @property
    def role(self) -> str:
        """`user`, `assistant`, or an empty string for records that are not messages."""
        kind = self.envelope.type
        return kind if kind in ROLES else dialect_role(self.envelope)

    @property
    def message(self) -> Message | None:
        """The API message; None if missing or not an object."""
        if self._message is _NOT_DECODED:
            message = self.envelope.message
            self._message = decode_message(message) if isinstance(message, msgspec.Raw) else message or None
        return self._message

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content blocks of the message."""
        if self._blocks is None:
            message = self.message
            if message is not None:
                self._blocks = message.blocks
            else:
                self._blocks = dialect_blocks(self.envelope, self.line)
        return self._blocks

    @property
    def text(self) -> str:
        """The text blocks of the message, separated by blank lines."""
        message = self.message
        if message is not None and isinstance(message.content, str):
            return message.content
        texts = [block.text for block in self.blocks if isinstance(block, Text)]
        return texts[0] if len(texts) == 1 else "\n\n".join(texts)

    @property
    def thinking(self) -> str:
        """The thinking, if it was recorded."""
        return "\n\n".join(b.thinking for b in self.blocks if isinstance(b, Thinking))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls in the message."""
        return tuple([block for block in self.blocks if isinstance(block, ToolUse)])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results in the message."""
        return tuple([block for block in self.blocks if isinstance(block, ToolResult)])

    @property
    def usage(self) -> Usage | None:
        """Token usage. Every line of a response has the same figures."""
        return self.message.usage if self.message else None

    @property
    def tool_use_result(self) -> Any:
        """Claude Code's structured copy of a tool result: an object, a string, a list or None."""
        if self._tool_use_result is _NOT_DECODED:
            raw = self.envelope.tool_use_result
            self._tool_use_result = decode_lenient(raw) if raw else None
        return self._tool_use_result

    @property
    def fields(self) -> dict[str, Any]:
        """Every field, decoded, known or unknown."""
        value = decode_lenient(self.line)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    @property
    def view(self) -> "View":
        """The fields of this kind of record, typed by the catalogue."""
        from steno.format.record_views import view_of

        return view_of(self.kind, self.line)


_SHARED_LINE_DAMAGE: Final = frozenset(
    ("line.glued", "line.spliced", "line.nul-run", "line.torn", "line.control", "line.number")
)
Piece: TypeAlias = Record | Gap


def read_time(value: str | float | None) -> datetime | None:
    """Convert a timestamp to a datetime: ISO text, or seconds or milliseconds as a number.

    Always in UTC, and None near the limits of the calendar, so that it can be converted to every time zone.

    >>> read_time("2026-11-15T06:00:01.000+01:00").isoformat()
    '2026-11-15T05:00:01+00:00'
    """
    if value is None:
        return None
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            if time.tzinfo is not UTC:
                time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        else:
            time = datetime.fromtimestamp(value / 1000 if abs(value) > _MIN_MILLISECONDS else value, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return time if _FIRST_TIME < time < _LAST_TIME else None


def time_text(time: datetime) -> str:
    """Format a time as Claude Code writes it.

    >>> time_text(datetime(2026, 11, 15, 5, 0, 1, tzinfo=UTC))
    '2026-11-15T05:00:01.000Z'
    """
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def kind_of(record: "Record") -> str:
    """Return the kind of a record as named in the catalogue."""
    envelope = record.envelope
    match record.type:
        case "user":
            return f"user/{_user_kind(record)}"
        case "assistant":
            return f"assistant/{_assistant_kind(record)}"
        case "system" if envelope.subtype:
            return f"system/{envelope.subtype}"
        case "attachment":
            return _inner_kind("attachment", envelope.attachment)
        case "progress":
            return _inner_kind("progress", envelope.data)
        case "queue-operation" if envelope.operation:
            return f"queue-operation/{envelope.operation}"
        case other:
            return other or "untyped"


def _user_kind(record: "Record") -> str:
    envelope = record.envelope
    if any(isinstance(block, ToolResult) for block in record.blocks):
        return "tool_result"
    if envelope.is_compact_summary:
        return "compact_summary"
    return "meta" if envelope.is_meta else "prompt"


def _assistant_kind(record: "Record") -> str:
    if record.envelope.is_api_error_message:
        return "api_error"
    if record.dialect == "spec-000" and record.envelope.subtype:
        return record.envelope.subtype
    blocks = record.blocks
    if any(isinstance(block, ToolUse | ServerToolUse) for block in blocks):
        return "tool_use"
    if blocks and isinstance(blocks[0], Thinking):
        return "thinking"
    if blocks and isinstance(blocks[0], RedactedThinking):
        return "redacted_thinking"
    return "text"


def _inner_kind(outer: str, raw: msgspec.Raw) -> str:
    value = decode_lenient(raw) if raw else None
    name: Any = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    return f"{outer}/{name}" if isinstance(name, str) else outer


# The dialect of a record

_NULL: Final = b"null"


def dialect_of(envelope: Envelope) -> Dialect:
    """Return the dialect of a record.

    A message object with a role is an API message, so its record is Claude Code's.
    """
    kind = envelope.type or ""
    if kind in MESSAGE_TYPES:
        return "spec-004"
    if kind == "compact_system":
        return "spec-000"
    message = envelope.message
    if kind == "system":
        is_note = _is_text(message) and (envelope.subtype or "") in SYSTEM_SUBTYPES
        return "spec-000" if envelope.subtype == "tool_result" or is_note else "claude"
    if kind not in ROLES:
        return "claude"
    in_millis = isinstance(envelope.timestamp, int | float) and not _is_null(message)
    if in_millis and not _has_role(message):
        return "spec-004"
    lacks_message = kind == "assistant" and envelope.subtype and _is_null(message)
    return "spec-000" if lacks_message or _is_text(message) else "claude"


def dialect_role(envelope: Envelope) -> str:
    """Return the role of a record type of a dialect, or an empty string."""
    kind = envelope.type or ""
    if kind == "system" and envelope.subtype == "tool_result":
        return "user"
    return "user" if kind in MESSAGE_TYPES else ""


def dialect_blocks(envelope: Envelope, line: bytes) -> tuple[Block, ...]:
    """Return the content of a dialect's record as blocks in Claude Code's format.

    A tool result of `spec-000` names no call; its parent record is used as the call.
    """
    dialect = dialect_of(envelope)
    if dialect == "claude":
        text = envelope.message if _is_text(envelope.message) else envelope.content
        return _without_empty_text(decode_blocks(text)) if _is_text(text) else ()
    from steno.format.dialects.dialect_record import client_fields, read_dialect_record

    value = decode_lenient(line)
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    row = read_dialect_record(fields, dialect, 0, len(line))
    if row.kind == "result" and not row.results:
        row.results = (row.parent or "",)
    message: Any = client_fields(fields, row).get("message")
    if message is None:
        text = fields.get("message", fields.get("content"))
        return (Text(text),) if isinstance(text, str) and text else ()
    decoded = decode_message(msgspec.Raw(msgspec.json.encode(message)))
    return _without_empty_text(decoded.blocks) if decoded is not None else ()


def _without_empty_text(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if not isinstance(block, Text) or block.text)


def _is_text(value: Any) -> bool:
    return isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b'"'


def _is_null(message: Any) -> bool:
    return not message or (isinstance(message, msgspec.Raw) and bytes(message) == _NULL)


def _has_role(message: Any) -> bool:
    if not isinstance(message, msgspec.Raw):
        return message.role is not None
    value = decode_lenient(message)
    return isinstance(value, dict) and "role" in value
