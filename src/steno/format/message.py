"""The typed parts of a record: every field of its envelope, the API message and the content blocks.

Known blocks are typed; any other is an `UnknownBlock` that keeps its fields. Bodies other than the message stay
undecoded `Raw`. Reading never raises.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, decode_lenient, fill_struct

EMPTY_RAW: Final = msgspec.Raw()
_DECODED: Final = "read"
"""Attribute that caches a value decoded on first access."""


class _TaggedBlock(msgspec.Struct, frozen=True, tag_field="type"):
    @property
    def type(self) -> str:
        """The block's type as written in the file."""
        return str(self.__struct_config__.tag)


class Text(_TaggedBlock, frozen=True, tag="text"):
    """Text."""

    text: str = ""


class Thinking(_TaggedBlock, frozen=True, tag="thinking"):
    """Thinking, with the signature that the API requires. Recent versions of Claude Code keep only the signature."""

    thinking: str = ""
    signature: str = ""


class RedactedThinking(_TaggedBlock, frozen=True, tag="redacted_thinking"):
    """Thinking that only the API can read."""

    data: str = ""


class _CallBlock(_TaggedBlock, frozen=True, dict=True):
    id: str = ""
    name: str = ""
    raw_input: msgspec.Raw = msgspec.field(name="input", default=EMPTY_RAW)

    @property
    def input(self) -> dict[str, Any]:
        """The input; empty if missing or not an object."""
        tool_input = vars(self).get(_DECODED)
        if tool_input is None:
            value = decode_lenient(self.raw_input) if self.raw_input else None
            tool_input = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            vars(self)[_DECODED] = tool_input
        return tool_input


class ToolUse(_CallBlock, frozen=True, tag="tool_use"):
    """A tool call."""


class ServerToolUse(_CallBlock, frozen=True, tag="server_tool_use"):
    """A tool call that the API executes."""


class ToolResult(_TaggedBlock, frozen=True, tag="tool_result", dict=True):
    """The result of a tool call: a string, blocks, or an error."""

    tool_use_id: str = ""
    raw_content: msgspec.Raw = msgspec.field(name="content", default=EMPTY_RAW)
    is_error: bool | None = None

    @property
    def blocks(self) -> tuple["Block", ...]:
        """The content as blocks; a plain string is one text block."""
        decoded: tuple[Block, ...] | None = vars(self).get(_DECODED)
        if decoded is None:
            decoded = decode_blocks(self.raw_content) if self.raw_content else ()
            vars(self)[_DECODED] = decoded
        return decoded

    @property
    def text(self) -> str:
        """The text blocks of the content."""
        texts = [block.text for block in self.blocks if type(block) is Text]
        return texts[0] if len(texts) == 1 else "\n".join(texts)


SYNTHETIC: Final = "<synthetic>"
"""Model name in messages that Claude Code itself generates."""
THINKING_TYPES: Final = ("thinking", "redacted_thinking")
CALL_TYPES: Final = frozenset(("tool_use", "server_tool_use"))
"""Types of blocks that call a tool."""


class _SourceBlock(_TaggedBlock, frozen=True):
    raw_source: msgspec.Raw = msgspec.field(name="source", default=EMPTY_RAW)

    @property
    def source(self) -> dict[str, Any]:
        """Location of the bytes: `{"type": "base64", "media_type": …, "data": …}` or a URL."""
        value = decode_lenient(self.raw_source) if self.raw_source else None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    @property
    def media_type(self) -> str:
        """The declared media type, or an empty string."""
        return str(self.source.get("media_type", ""))


class Image(_SourceBlock, frozen=True, tag="image"):
    """An image."""


class Document(_SourceBlock, frozen=True, tag="document"):
    """A PDF or another document."""

    title: str | None = None


class ToolReference(_TaggedBlock, frozen=True, tag="tool_reference"):
    """A tool found by a tool search."""

    tool_name: str = ""


class UnknownBlock(msgspec.Struct, frozen=True):
    """A block of unknown type or structure. All its fields are kept."""

    type: str
    fields: dict[str, Any]


_KnownBlock: TypeAlias = (
    Text | Thinking | RedactedThinking | ToolUse | ServerToolUse | ToolResult | Image | Document | ToolReference
)
Block: TypeAlias = _KnownBlock | UnknownBlock
Content: TypeAlias = str | tuple[Block, ...] | None
"""Type of `content`: a plain string, blocks, or None."""
KnownContent: TypeAlias = str | tuple[_KnownBlock, ...] | None
"""Type of `content` if all blocks have a known type and structure; decoded in one step."""

_CONTENT_DECODER: Final = msgspec.json.Decoder(KnownContent)


def decode_blocks(raw: bytes | msgspec.Raw) -> tuple[Block, ...]:
    """Return the blocks of a `content` value: a string, a list, or anything else."""
    try:
        content = _CONTENT_DECODER.decode(raw)
    except DECODE_ERRORS:
        return read_blocks(decode_lenient(raw))
    if isinstance(content, str):
        return (Text(content),)
    return content or ()


def read_blocks(content: Any) -> tuple[Block, ...]:
    """Return the blocks of an already decoded `content` value."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        return tuple(_read_block(item) for item in cast("list[Any]", content))
    return () if content is None else (_read_block(content),)


def _read_block(item: Any) -> Block:
    if isinstance(item, str):
        return Text(item)
    if not isinstance(item, dict):
        return UnknownBlock("", {"value": item})
    fields = cast("dict[str, Any]", item)
    try:
        return _BLOCK_DECODER.decode(msgspec.json.encode(fields))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return UnknownBlock(str(fields.get("type", "")), fields)


_BLOCK_DECODER: Final = msgspec.json.Decoder(_KnownBlock)


class CacheCreation(msgspec.Struct, frozen=True, gc=False):
    """Tokens written to the two tiers of the prompt cache."""

    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token figures of one API response. Count them once per `message.id`."""

    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation: CacheCreation | None = None
    output_tokens: int = 0
    service_tier: str | None = None

    @property
    def cache_1h(self) -> int:
        """Tokens written to the 1-hour cache."""
        return self.cache_creation.ephemeral_1h_input_tokens if self.cache_creation else 0

    @property
    def cache_5m(self) -> int:
        """Tokens written to the 5-minute cache; old versions of Claude Code do not separate the tiers."""
        if self.cache_creation is None:
            return self.cache_creation_input_tokens
        return self.cache_creation.ephemeral_5m_input_tokens

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Tokens: input, output, 5-minute cache write, 1-hour cache write, cache read; never negative."""
        counts = (self.input_tokens, self.output_tokens, self.cache_5m, self.cache_1h, self.cache_read_input_tokens)
        if min(counts) >= 0:
            return counts
        fresh, output, short, long, read = (max(0, count) for count in counts)
        return fresh, output, short, long, read

    @property
    def context(self) -> int:
        """Context size: all input tokens of this response."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


class Message(msgspec.Struct, frozen=True, gc=False):
    """The API message in a user or assistant record; `content` as written, `blocks` decoded."""

    model: str | None = None
    id: str | None = None
    role: str | None = None
    content: Content = None
    stop_reason: str | None = None
    usage: Usage | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content blocks; a plain string is one text block."""
        content = self.content
        if isinstance(content, str):
            return (Text(content),)
        return content or ()


class KnownMessage(Message, frozen=True, gc=False):
    """A message decoded in one step because all its fields have known types."""

    content: KnownContent = None


_MESSAGE_DECODER: Final = msgspec.json.Decoder(KnownMessage)


def decode_message(raw: msgspec.Raw) -> Message | None:
    """Decode a message; return None if the value is not an object."""
    try:
        return _MESSAGE_DECODER.decode(raw)
    except DECODE_ERRORS:
        value = decode_lenient(raw)
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    content = fields.pop("content", None)
    if not isinstance(content, str | None):
        content = read_blocks(content)
    return msgspec.structs.replace(fill_struct(Message, fields), content=content)


class ForkOrigin(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Origin of a copied record (`forkedFrom`)."""

    session_id: str | None = None


class Envelope(msgspec.Struct, rename="camel", gc=False):
    """The fields around the body of a record. Every field is optional."""

    # In the order in which Claude Code writes them, because the decoder tries the next field first.
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
    # Rare fields that readers need without decoding the line again.
    lineage: msgspec.Raw = msgspec.field(name="session_id", default=EMPTY_RAW)
    forked_from: Any = None
    """`ForkOrigin` or `Raw`."""
    relocated_cwd: msgspec.Raw = EMPTY_RAW
    is_aborted_mid_stream: msgspec.Raw = EMPTY_RAW
    tool_denial_kind: msgspec.Raw = EMPTY_RAW
    permission_decision: msgspec.Raw = EMPTY_RAW


class RecordFields(Envelope, rename="camel", gc=False):
    """The envelope plus fields of single record types, decoded without the rest of the body."""

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
    """Reduce a subclass of `RecordFields` to the named fields and its own declarations.

    The result is not a subclass at run time, because decoding takes longer with every field.
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


class _StrictEnvelope(Envelope, rename="camel", gc=False):
    message: KnownMessage | msgspec.UnsetType = msgspec.UNSET
    forked_from: msgspec.Raw = EMPTY_RAW


class _LenientEnvelope(Envelope, rename="camel", gc=False):
    message: msgspec.Raw = EMPTY_RAW
    """Undecoded, for `decode_message`."""
    forked_from: msgspec.Raw = EMPTY_RAW


_ENVELOPE_DECODER: Final = msgspec.json.Decoder(_StrictEnvelope)


def decode_envelope(line: bytes) -> Envelope:
    """Decode the envelope of a line; the fast path.

    Raises on invalid JSON or a field of an unexpected type.
    """
    try:
        return _ENVELOPE_DECODER.decode(line)
    except DECODE_ERRORS:
        return msgspec.json.decode(line, type=_LenientEnvelope)


def read_envelope(line: bytes) -> Envelope | None:
    """Return the envelope of any line that contains a JSON object, ignoring fields of unexpected types."""
    try:
        return decode_envelope(line)
    except DECODE_ERRORS:
        value = decode_lenient(line)
    return fill_struct(_LenientEnvelope, cast("dict[str, Any]", value)) if isinstance(value, dict) else None
