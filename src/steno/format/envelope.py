"""The fields of a record that readers decode, declared once, and structs over some of them.

A struct over few fields decodes several times as fast as one over all, so a reader of many files
declares a `projection` of the fields it needs.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

EMPTY_RAW: Final = msgspec.Raw()


class ForkOrigin(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Where a copied record comes from (`forkedFrom`)."""

    session_id: str | None = None


class Envelope(msgspec.Struct, rename="camel", gc=False):
    """The fields around a record's body. Every field may be missing."""

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
    """The type depends on the reader: a struct, or `Raw`."""
    request_id: str | None = None
    tool_use_result: msgspec.Raw = EMPTY_RAW
    data: msgspec.Raw = EMPTY_RAW
    is_meta: bool | None = None
    uuid: str | None = None
    timestamp: str | int | float | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(name="sourceToolAssistantUUID", default=None)
    entrypoint: str | None = None
    attachment: msgspec.Raw = EMPTY_RAW
    operation: str | None = None
    leaf_uuid: str | None = None
    explicit: bool | None = None
    logical_parent_uuid: str | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    content: msgspec.Raw = EMPTY_RAW
    origin: msgspec.Raw = EMPTY_RAW
    # Rare, and worth knowing of at once: to look for them in every line takes longer.
    lineage: msgspec.Raw = msgspec.field(name="session_id", default=EMPTY_RAW)
    forked_from: Any = None
    """`ForkOrigin` or `Raw`."""
    relocated_cwd: msgspec.Raw = EMPTY_RAW
    is_aborted_mid_stream: msgspec.Raw = EMPTY_RAW
    tool_denial_kind: msgspec.Raw = EMPTY_RAW
    permission_decision: msgspec.Raw = EMPTY_RAW


class RecordFields(Envelope, rename="camel", gc=False):
    """The envelope, and fields of single record types that are decoded without the rest of the body."""

    duration_ms: float | None = None
    repeats_compact_summary: bool | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    pr_url: str | None = None
    prompt_source: str | None = None
    parent_tool_use_id: str | None = msgspec.field(name="parentToolUseID", default=None)


_FieldsT = TypeVar("_FieldsT", bound=RecordFields)


def projection(names: str) -> Callable[[type[_FieldsT]], type[_FieldsT]]:
    """Reduce a subclass of `RecordFields` to the fields named here, and those that it declares itself.

    The result is no subclass at run time: a decoder takes longer for each field of its struct.
    """

    def reduce_fields(declared: type[_FieldsT]) -> type[_FieldsT]:
        wanted = {*names.split(), *declared.__annotations__}
        fields = {field.name: field for field in msgspec.structs.fields(declared) if field.name in wanted}
        if unknown := wanted - fields.keys():
            raise TypeError(f"unknown fields: {sorted(unknown)}")
        reduced: Any = msgspec.defstruct(
            declared.__name__,
            [
                (name, field.type, msgspec.field(name=field.encode_name, default=field.default))
                for name, field in fields.items()
            ],
            namespace={"__doc__": declared.__doc__},
            module=declared.__module__,
            gc=False,
        )
        return reduced

    return reduce_fields
