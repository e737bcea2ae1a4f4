"""A record: its raw bytes, where they lie, and lazy typed views on them.

The bytes are the truth. Everything else (envelope, message, blocks, text, usage, fields, view) is
worked out when asked for, and never raises: what cannot be read is None or empty, and said in
`damage`.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from steno.format.blocks import Block, Text, Thinking, ToolResult, ToolUse
from steno.format.dialects.names import Dialect
from steno.format.dialects.single import adapted_blocks, adapted_role, dialect_of
from steno.format.envelope import Envelope
from steno.format.loose import loose
from steno.format.message import Message, Usage, decode_message
from steno.format.spans import Damage, Span

if TYPE_CHECKING:
    from steno.format.views import View

__all__ = ["Gap", "Piece", "Record", "read_time", "time_text"]

_NONE: Final[tuple[Damage, ...]] = ()
_UNREAD: Final = Message()
_ROLES: Final = frozenset(("user", "assistant"))
_MILLIS: Final = 1e11
# What is nearer to the ends of the calendar cannot be told in every zone, nor counted on from.
_EDGE: Final = timedelta(days=2)
_FIRST: Final = datetime.min.replace(tzinfo=UTC) + _EDGE
_LAST: Final = datetime.max.replace(tzinfo=UTC) - _EDGE


class Gap:
    """Bytes that are no record: a torn line, zero bytes, an oversize line, a blank one."""

    __slots__ = ("damage", "head", "length", "offset")

    def __init__(
        self, offset: int, length: int, head: bytes, damage: tuple[Damage, ...] = _NONE
    ) -> None:
        self.offset = offset
        self.length = length
        self.head = head
        self.damage = damage

    @property
    def span(self) -> Span:
        """Where the gap lies."""
        return Span(self.offset, self.length)


class Record(msgspec.Struct, eq=False, gc=False):
    """One line of a session file."""

    line: bytes
    offset: int
    ending: bytes
    envelope: Envelope
    notes: tuple[Damage, ...] = _NONE
    _message: Message | None = _UNREAD
    _blocks: tuple[Block, ...] | None = None
    _kept: Any = _UNREAD
    _time: Any = _UNREAD

    def __repr__(self) -> str:
        return f"<Record {self.kind} at {self.offset}>"

    # Bytes and place

    @property
    def raw(self) -> bytes:
        """The exact bytes of the span, line ending included."""
        return self.line + self.ending

    @property
    def length(self) -> int:
        """How many bytes the record takes, line ending included."""
        return len(self.line) + len(self.ending)

    @property
    def span(self) -> Span:
        """Where the record lies."""
        return Span(self.offset, self.length)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Everything odd about these bytes: found on the way here, and inside the line."""
        from steno.format.flaws import flaws

        return (*self.notes, *flaws(self.line, self.offset))

    @property
    def whole(self) -> bool:
        """Whether the line is this record and nothing else, as a reader by lines would see it."""
        return not self.notes or not any(note.id in _NOT_WHOLE for note in self.notes)

    # What it is

    @property
    def type(self) -> str:
        """The record's `type`, or nothing."""
        return self.envelope.type or ""

    @property
    def subtype(self) -> str:
        """The `subtype` of a system record, or nothing."""
        return self.envelope.subtype or ""

    @property
    def kind(self) -> str:
        """The name the catalogue knows it by: `user/prompt`, `system/turn_duration`, `mode`, …."""
        from steno.format.kinds import kind_of

        return kind_of(self)

    @property
    def dialect(self) -> Dialect:
        """Which family of writers this line belongs to."""
        return dialect_of(self.envelope)

    @property
    def uuid(self) -> str | None:
        """The record's own id; unique only within its file."""
        return self.envelope.uuid

    @property
    def parent_uuid(self) -> str | None:
        """The id of the record it follows."""
        return self.envelope.parent_uuid

    @property
    def session_id(self) -> str | None:
        """The session it says it belongs to."""
        return self.envelope.session_id

    @property
    def timestamp(self) -> str | int | float | None:
        """The time as it is written: an ISO string, in one dialect a number of milliseconds."""
        return self.envelope.timestamp

    @property
    def time(self) -> datetime | None:
        """The time as a value, always with a zone; None when it is missing or unreadable."""
        if self._time is _UNREAD:
            self._time = read_time(self.envelope.timestamp)
        return self._time

    @property
    def is_sidechain(self) -> bool:
        """Whether it belongs to a sub-agent."""
        return bool(self.envelope.is_sidechain)

    # What it says

    @property
    def role(self) -> str:
        """`user`, `assistant`, or nothing for records that are no message."""
        kind = self.envelope.type
        return kind if kind in _ROLES else adapted_role(self.envelope)

    @property
    def message(self) -> Message | None:
        """The API message; None where there is none, or it is no object."""
        if self._message is _UNREAD:
            said = self.envelope.message
            self._message = decode_message(said) if isinstance(said, msgspec.Raw) else said or None
        return self._message

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content of the message, block by block."""
        if self._blocks is None:
            message = self.message
            if message is not None:
                self._blocks = message.blocks
            else:
                self._blocks = adapted_blocks(self.envelope, self.line)
        return self._blocks

    @property
    def text(self) -> str:
        """The words of the message: text blocks only, a blank line between them."""
        message = self.message
        if message is not None and isinstance(message.content, str):
            return message.content
        words = [block.text for block in self.blocks if isinstance(block, Text)]
        return words[0] if len(words) == 1 else "\n\n".join(words)

    @property
    def thinking(self) -> str:
        """The reasoning, where the client kept it."""
        return "\n\n".join(b.thinking for b in self.blocks if isinstance(b, Thinking))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls in it."""
        return tuple([block for block in self.blocks if isinstance(block, ToolUse)])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results in it."""
        return tuple([block for block in self.blocks if isinstance(block, ToolResult)])

    @property
    def usage(self) -> Usage | None:
        """The token figures. The same figures stand on every line of a response."""
        return self.message.usage if self.message else None

    @property
    def tool_use_result(self) -> Any:
        """What the client itself kept of a tool's result: an object, a string, a list or None."""
        if self._kept is _UNREAD:
            raw = self.envelope.tool_use_result
            self._kept = loose(raw) if raw else None
        return self._kept

    @property
    def fields(self) -> dict[str, Any]:
        """Every field, decoded; known or not."""
        value = loose(self.line)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    @property
    def view(self) -> "View":
        """The fields that are particular to this kind, typed by the catalogue."""
        from steno.format.views import view_of

        return view_of(self.kind, self.line)


_NOT_WHOLE: Final = frozenset(
    ("line.glued", "line.spliced", "line.nul-run", "line.torn", "line.control", "line.number")
)
Piece: TypeAlias = Record | Gap


def read_time(value: str | float | None) -> datetime | None:
    """Return the moment a timestamp names: ISO text, or seconds or milliseconds as a number.

    Always in UTC, and None at the very ends of the calendar, so that every zone can tell it.

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
            time = datetime.fromtimestamp(value / 1000 if abs(value) > _MILLIS else value, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return time if _FIRST < time < _LAST else None


def time_text(time: datetime) -> str:
    """Return a moment as the client writes it.

    >>> time_text(datetime(2026, 11, 15, 5, 0, 1, tzinfo=UTC))
    '2026-11-15T05:00:01.000Z'
    """
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
