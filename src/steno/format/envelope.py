"""The fields that say what a record is and where it belongs; other bodies stay undecoded `Raw`."""

from typing import Any, Final, cast

import msgspec

from steno.format.loose import REFUSED, fill, loose
from steno.format.message import KnownMessage

__all__ = ["Envelope", "decode_envelope", "read_envelope"]

_NOTHING: Final = msgspec.Raw()


class Envelope(msgspec.Struct, rename="camel", gc=False):
    """What stands around a record's body. Every field may be missing."""

    # In the order that clients write them: the decoder looks for the next one first.
    parent_uuid: str | None = None
    is_sidechain: bool | None = None
    user_type: str | None = None
    cwd: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    slug: str | None = None
    agent_id: str | None = None
    type: str | None = None
    subtype: str | None = None
    message: Any = msgspec.UNSET
    """Read at once where all in it is known; else its bytes, for `decode_message`."""
    request_id: str | None = None
    tool_use_result: msgspec.Raw = _NOTHING
    data: msgspec.Raw = _NOTHING
    is_meta: bool | None = None
    uuid: str | None = None
    timestamp: str | int | float | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(
        name="sourceToolAssistantUUID", default=None
    )
    entrypoint: str | None = None
    attachment: msgspec.Raw = _NOTHING
    operation: str | None = None
    leaf_uuid: str | None = None
    explicit: bool | None = None
    logical_parent_uuid: str | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    content: msgspec.Raw = _NOTHING
    origin: msgspec.Raw = _NOTHING
    # Rare, and worth knowing of at once: to look for them in every line takes longer.
    lineage: msgspec.Raw = msgspec.field(name="session_id", default=_NOTHING)
    forked_from: msgspec.Raw = _NOTHING
    relocated_cwd: msgspec.Raw = _NOTHING
    is_aborted_mid_stream: msgspec.Raw = _NOTHING
    tool_denial_kind: msgspec.Raw = _NOTHING
    permission_decision: msgspec.Raw = _NOTHING


class _Known(Envelope, rename="camel", gc=False):
    message: KnownMessage | msgspec.UnsetType = msgspec.UNSET


class _Odd(Envelope, rename="camel", gc=False):
    message: msgspec.Raw = _NOTHING


_KNOWN: Final = msgspec.json.Decoder(_Known)


def decode_envelope(line: bytes) -> Envelope:
    """Return the envelope of a line; the fast path.

    Raises on what is not strict JSON or has a field of an unexpected type.
    """
    try:
        return _KNOWN.decode(line)
    except REFUSED:
        return msgspec.json.decode(line, type=_Odd)


def read_envelope(line: bytes) -> Envelope | None:
    """Return the envelope of any line that holds a JSON object, however odd its fields."""
    try:
        return decode_envelope(line)
    except REFUSED:
        value = loose(line)
    return fill(_Odd, cast("dict[str, Any]", value)) if isinstance(value, dict) else None
