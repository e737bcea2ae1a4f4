"""What a message is made of: text, thinking, tool calls, results, images, and what comes next year.

Known blocks are typed; anything else is an `UnknownBlock` that keeps its fields. Nothing raises.
"""

from typing import Any, Final, TypeAlias, cast

import msgspec

from steno.format.loose import REFUSED, loose

__all__ = [
    "Block",
    "Content",
    "Document",
    "Image",
    "KnownContent",
    "RedactedThinking",
    "ServerToolUse",
    "Text",
    "Thinking",
    "ToolReference",
    "ToolResult",
    "ToolUse",
    "UnknownBlock",
    "decode_blocks",
    "read_blocks",
]

_NOTHING: Final = msgspec.Raw()
_READ: Final = "read"
"""What is decoded once it is asked for, and then kept beside the fields."""


class _Tagged(msgspec.Struct, frozen=True, tag_field="type"):
    """A block told apart by its `type`."""

    @property
    def type(self) -> str:
        """The block's type as it stands in the file."""
        return str(self.__struct_config__.tag)


class Text(_Tagged, frozen=True, tag="text"):
    """Words."""

    text: str = ""


class Thinking(_Tagged, frozen=True, tag="thinking"):
    """Reasoning, with the signature the API wants back. Newer clients keep only the signature."""

    thinking: str = ""
    signature: str = ""


class RedactedThinking(_Tagged, frozen=True, tag="redacted_thinking"):
    """Reasoning that only the API can read."""

    data: str = ""


class _Call(_Tagged, frozen=True, dict=True):
    id: str = ""
    name: str = ""
    raw_input: msgspec.Raw = msgspec.field(name="input", default=_NOTHING)

    @property
    def input(self) -> dict[str, Any]:
        """The arguments; empty when they are missing or not an object."""
        found = vars(self).get(_READ)
        if found is None:
            value = loose(self.raw_input) if self.raw_input else None
            found = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            vars(self)[_READ] = found
        return found


class ToolUse(_Call, frozen=True, tag="tool_use"):
    """A tool call."""


class ServerToolUse(_Call, frozen=True, tag="server_tool_use"):
    """A tool call that the API itself carries out."""


class ToolResult(_Tagged, frozen=True, tag="tool_result", dict=True):
    """What a tool call gave back: a string, blocks, or an error."""

    tool_use_id: str = ""
    raw_content: msgspec.Raw = msgspec.field(name="content", default=_NOTHING)
    is_error: bool | None = None

    @property
    def blocks(self) -> tuple["Block", ...]:
        """The content as blocks; a plain string is one text block."""
        found: tuple[Block, ...] | None = vars(self).get(_READ)
        if found is None:
            found = decode_blocks(self.raw_content) if self.raw_content else ()
            vars(self)[_READ] = found
        return found

    @property
    def text(self) -> str:
        """The words of the content, other blocks left out."""
        texts = [block.text for block in self.blocks if type(block) is Text]
        return texts[0] if len(texts) == 1 else "\n".join(texts)


class _Sourced(_Tagged, frozen=True):
    raw_source: msgspec.Raw = msgspec.field(name="source", default=_NOTHING)

    @property
    def source(self) -> dict[str, Any]:
        """Where the bytes are: `{"type": "base64", "media_type": …, "data": …}` or a URL."""
        value = loose(self.raw_source) if self.raw_source else None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    @property
    def media_type(self) -> str:
        """The declared media type, or nothing."""
        return str(self.source.get("media_type", ""))


class Image(_Sourced, frozen=True, tag="image"):
    """A picture."""


class Document(_Sourced, frozen=True, tag="document"):
    """A PDF or another document."""

    title: str | None = None


class ToolReference(_Tagged, frozen=True, tag="tool_reference"):
    """A tool found by a tool search."""

    tool_name: str = ""


class UnknownBlock(msgspec.Struct, frozen=True):
    """A block of a type, or of a shape, that is not known here. Nothing of it is lost."""

    type: str
    fields: dict[str, Any]


_Known: TypeAlias = (
    Text
    | Thinking
    | RedactedThinking
    | ToolUse
    | ServerToolUse
    | ToolResult
    | Image
    | Document
    | ToolReference
)
Block: TypeAlias = _Known | UnknownBlock
Content: TypeAlias = str | tuple[Block, ...] | None
"""What `content` may be: a plain string, blocks, or nothing."""
KnownContent: TypeAlias = str | tuple[_Known, ...] | None
"""The same where every block is of a known type and shape, as the decoder reads it at once."""

_CONTENT: Final = msgspec.json.Decoder(KnownContent)


def decode_blocks(raw: bytes | msgspec.Raw) -> tuple[Block, ...]:
    """Return the blocks of a `content` value: a string, a list, or anything else."""
    try:
        content = _CONTENT.decode(raw)
    except REFUSED:
        return read_blocks(loose(raw))
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
        return _ONE.decode(msgspec.json.encode(fields))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return UnknownBlock(str(fields.get("type", "")), fields)


_ONE: Final = msgspec.json.Decoder(_Known)
