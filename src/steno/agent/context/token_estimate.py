"""Token estimates: about how many tokens messages take, before the API has counted them."""

from collections.abc import Sequence
from typing import Any, Final, cast

from steno.llm.messages_api import Block, Message

CHARACTERS_PER_TOKEN: Final = 4
_IMAGE_TOKENS: Final = 1_600
"""What the API counts for an image of the largest size that it does not shrink."""
_TOKENS_PER_DOCUMENT_BYTE: Final = 1 / 20
_BLOCK_OVERHEAD: Final = 8
"""What a block takes beside what it says."""


def estimate_messages(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take."""
    return sum(estimate_blocks(message["content"]) for message in messages)


def estimate_blocks(blocks: list[Block]) -> int:
    """Return about how many tokens blocks take: rather a few too many than too few."""
    return sum(_BLOCK_OVERHEAD + _estimate_block(block) for block in blocks)


def _estimate_block(block: Block) -> int:
    match block.get("type"):
        case "image":
            return _IMAGE_TOKENS
        case "document":
            return round(len(str(block.get("source"))) * _TOKENS_PER_DOCUMENT_BYTE)
        case "text":
            return _estimate_text(str(block.get("text", "")))
        case "tool_result":
            content: Any = block.get("content")
            if isinstance(content, list):
                return estimate_blocks(cast("list[Block]", content))
            return _estimate_text(str(content or ""))
        case _:
            return _estimate_text(str(block))


def _estimate_text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size // CHARACTERS_PER_TOKEN
