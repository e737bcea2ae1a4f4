"""The fields that say what a record is and where it belongs; bodies stay undecoded `Raw`."""

from typing import Any, Final, TypeVar, cast

import msgspec

from steno.format.loose import REFUSED, loose

__all__ = ["Envelope", "decode_envelope", "fill", "read_envelope"]

_NOTHING: Final = msgspec.Raw()


class Envelope(msgspec.Struct, rename="camel", gc=False):
    """What stands around a record's body. Every field may be missing."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | int | float | None = None
    agent_id: str | None = None
    request_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
    slug: str | None = None
    user_type: str | None = None
    entrypoint: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(
        name="sourceToolAssistantUUID", default=None
    )
    leaf_uuid: str | None = None
    explicit: bool | None = None
    operation: str | None = None
    message: msgspec.Raw = _NOTHING
    content: msgspec.Raw = _NOTHING
    tool_use_result: msgspec.Raw = _NOTHING
    attachment: msgspec.Raw = _NOTHING
    data: msgspec.Raw = _NOTHING
    origin: msgspec.Raw = _NOTHING
    # Rare, and worth knowing of at once: to look for them in every line takes longer.
    lineage: msgspec.Raw = msgspec.field(name="session_id", default=_NOTHING)
    forked_from: msgspec.Raw = _NOTHING
    relocated_cwd: msgspec.Raw = _NOTHING
    is_aborted_mid_stream: msgspec.Raw = _NOTHING
    tool_denial_kind: msgspec.Raw = _NOTHING
    permission_decision: msgspec.Raw = _NOTHING


_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
decode_envelope: Final = _ENVELOPE.decode
"""The fast path. Raises on what is not strict JSON or has a field of an unexpected type."""


def read_envelope(line: bytes) -> Envelope | None:
    """Return the envelope of any line that holds a JSON object, however odd its fields."""
    try:
        return decode_envelope(line)
    except REFUSED:
        value = loose(line)
    return fill(Envelope, cast("dict[str, Any]", value)) if isinstance(value, dict) else None


_T = TypeVar("_T", bound=msgspec.Struct)


def fill(shape: type[_T], fields: dict[str, Any]) -> _T:
    """Build `shape` field by field from decoded JSON; a field that does not fit is left out."""
    good: dict[str, Any] = {}
    for field in msgspec.structs.fields(shape):
        if field.encode_name not in fields:
            continue
        value = fields[field.encode_name]
        try:
            if field.type is msgspec.Raw:
                good[field.name] = msgspec.Raw(msgspec.json.encode(value))
            else:
                good[field.name] = msgspec.convert(value, field.type)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
            continue
    return shape(**good)
