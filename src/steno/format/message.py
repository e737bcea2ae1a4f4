"""The API message inside a user or assistant record, and its token figures."""

from typing import Any, Final, cast

import msgspec

from steno.format.blocks import Block, Content, KnownContent, Text, read_blocks
from steno.format.loose import REFUSED, fill, loose

__all__ = ["CacheCreation", "KnownMessage", "Message", "Usage", "decode_message"]


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
        """Tokens written to the one-hour cache."""
        return self.cache_creation.ephemeral_1h_input_tokens if self.cache_creation else 0

    @property
    def cache_5m(self) -> int:
        """Tokens written to the five-minute cache; old clients do not tell the tiers apart."""
        if self.cache_creation is None:
            return self.cache_creation_input_tokens
        return self.cache_creation.ephemeral_5m_input_tokens

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Tokens: fresh, output, written to the short and the long cache, read; never below 0."""
        counts = (
            self.input_tokens,
            self.output_tokens,
            self.cache_5m,
            self.cache_1h,
            self.cache_read_input_tokens,
        )
        if min(counts) >= 0:
            return counts
        fresh, output, short, long, read = (max(0, count) for count in counts)
        return fresh, output, short, long, read

    @property
    def context(self) -> int:
        """Everything the model read for this response."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


class Message(msgspec.Struct, frozen=True, gc=False):
    """The API message inside a user or assistant record; `content` as it is, `blocks` to read."""

    model: str | None = None
    id: str | None = None
    role: str | None = None
    content: Content = None
    stop_reason: str | None = None
    usage: Usage | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content, block by block; a plain string is one text block."""
        content = self.content
        if isinstance(content, str):
            return (Text(content),)
        return content or ()


class KnownMessage(Message, frozen=True, gc=False):
    """A message that the decoder reads at once: nothing in it is of an unknown shape."""

    content: KnownContent = None


_MESSAGE: Final = msgspec.json.Decoder(KnownMessage)


def decode_message(raw: msgspec.Raw) -> Message | None:
    """Return the message, None when the value is no object."""
    try:
        return _MESSAGE.decode(raw)
    except REFUSED:
        value = loose(raw)
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    content = fields.pop("content", None)
    if not isinstance(content, str | None):
        content = read_blocks(content)
    return msgspec.structs.replace(fill(Message, fields), content=content)
