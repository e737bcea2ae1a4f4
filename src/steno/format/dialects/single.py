"""One record of a dialect by itself: which dialect it has, its role and its blocks.

This is what `Record` shows of a line. Where records lie in a conversation, and what their flags
mean, only the whole file says: `steno.format.dialects.converted`.
"""

from typing import Any, Final, cast

import msgspec

from steno.format.blocks import Block, Text, decode_blocks
from steno.format.dialects.names import MESSAGE_TYPES, ROLES, SYSTEM_SUBTYPES, Dialect
from steno.format.envelope import Envelope
from steno.format.loose import loose
from steno.format.message import decode_message

__all__ = ["adapted_blocks", "adapted_role", "dialect_of"]

_NULL: Final = b"null"


def dialect_of(envelope: Envelope) -> Dialect:
    """Return which family of writers a record belongs to.

    A message object with a role is the API's own, so its record is the real client's.
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
    in_millis = isinstance(envelope.timestamp, int | float) and not _is_nothing(message)
    if in_millis and not _has_role(message):
        return "spec-004"
    without = kind == "assistant" and envelope.subtype and _is_nothing(message)
    return "spec-000" if without or _is_text(message) else "claude"


def adapted_role(envelope: Envelope) -> str:
    """Return the role a dialect's own type stands for, or nothing."""
    kind = envelope.type or ""
    if kind == "system" and envelope.subtype == "tool_result":
        return "user"
    return "user" if kind in MESSAGE_TYPES else ""


def adapted_blocks(envelope: Envelope, line: bytes) -> tuple[Block, ...]:
    """Return what a dialect's record says, as the blocks the real client would have written.

    A tool result of `spec-000` names no call; the parent of the record is taken for it.
    """
    dialect = dialect_of(envelope)
    if dialect == "claude":
        said = envelope.message if _is_text(envelope.message) else envelope.content
        return _texts(decode_blocks(said)) if _is_text(said) else ()
    from steno.format.dialects.fields import client_fields
    from steno.format.dialects.rows import row_of

    value = loose(line)
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    row = row_of(fields, dialect, 0, len(line))
    if row.kind == "result" and not row.results:
        row.results = (row.parent or "",)
    message: Any = client_fields(fields, row).get("message")
    if message is None:
        said = fields.get("message", fields.get("content"))
        return (Text(said),) if isinstance(said, str) and said else ()
    decoded = decode_message(msgspec.Raw(msgspec.json.encode(message)))
    return _texts(decoded.blocks) if decoded is not None else ()


def _texts(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return blocks without texts that say nothing."""
    return tuple(block for block in blocks if not isinstance(block, Text) or block.text)


def _is_text(value: Any) -> bool:
    return isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b'"'


def _is_nothing(message: Any) -> bool:
    return not message or (isinstance(message, msgspec.Raw) and bytes(message) == _NULL)


def _has_role(message: Any) -> bool:
    """Whether a message says whose words it is."""
    if not isinstance(message, msgspec.Raw):
        return message.role is not None
    value = loose(message)
    return isinstance(value, dict) and "role" in value
