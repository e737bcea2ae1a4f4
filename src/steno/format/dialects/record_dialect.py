"""The published dialects, and the dialect, role and blocks of a single record.

This is what `Record` shows of a line. Where records belong in a conversation and what their flags
mean depends on the whole file: `steno.format.dialects.converted_source`.
"""

from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.lenient_json import decode_lenient
from steno.format.message import Block, Envelope, Text, decode_blocks, decode_message

Dialect: TypeAlias = Literal["claude", "spec-000", "spec-004"]
"""`claude` is what the real client writes; the others are published descriptions."""
MESSAGE_TYPES: Final = frozenset(("human", "tool_result", "compact_prelude", "compact_recap"))
"""Types of messages that the real client does not write."""
DIALECT_TYPES: Final = MESSAGE_TYPES | {"compact_system"}
"""All types that the real client does not write."""
ROLES: Final = frozenset(("user", "assistant"))
"""Types of messages that the real client writes, and the dialects too."""
SYSTEM_SUBTYPES: Final = frozenset(("", "tool_result", "error", "meta"))
"""Subtypes of system records in a dialect."""
COMPACTION_OPERATIONS: Final = frozenset(
    f"conversation_{name}" for name in ("compacting", "compacted", "restoring", "restored")
)
"""What a `compact_system` record may say."""


PUBLISHED_DESCRIPTIONS_PAGE: Final = "docs/reference/published-descriptions.md"
"""The page that compares the descriptions with the clients."""
PUBLISHED_FORMS: Final = {
    "queue-operation/complete": (
        "in the description of 2.1.42 (OpenContext); clients write enqueue, dequeue, remove, popAll"
    ),
    "system/error": "in the description of 2.0.76 (frago); clients write system/api_error",
}
"""Kinds of record, and what clients write instead."""


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
    in_millis = isinstance(envelope.timestamp, int | float) and not _is_null(message)
    if in_millis and not _has_role(message):
        return "spec-004"
    lacks_message = kind == "assistant" and envelope.subtype and _is_null(message)
    return "spec-000" if lacks_message or _is_text(message) else "claude"


def dialect_role(envelope: Envelope) -> str:
    """Return the role a dialect's own type stands for, or nothing."""
    kind = envelope.type or ""
    if kind == "system" and envelope.subtype == "tool_result":
        return "user"
    return "user" if kind in MESSAGE_TYPES else ""


def dialect_blocks(envelope: Envelope, line: bytes) -> tuple[Block, ...]:
    """Return what a dialect's record says, as the blocks the real client would have written.

    A tool result of `spec-000` names no call; the parent of the record is taken for it.
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
    """Return blocks without texts that say nothing."""
    return tuple(block for block in blocks if not isinstance(block, Text) or block.text)


def _is_text(value: Any) -> bool:
    return isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b'"'


def _is_null(message: Any) -> bool:
    return not message or (isinstance(message, msgspec.Raw) and bytes(message) == _NULL)


def _has_role(message: Any) -> bool:
    """Whether a message says whose words it is."""
    if not isinstance(message, msgspec.Raw):
        return message.role is not None
    value = decode_lenient(message)
    return isinstance(value, dict) and "role" in value
