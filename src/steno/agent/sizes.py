"""A conversation as plain text, and about how many tokens it takes before the API has counted."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from steno.model.wire import Block, Message

__all__ = ["CHARACTERS_PER_TOKEN", "estimate", "text_of", "tokens_of", "told"]

CHARACTERS_PER_TOKEN: Final = 4
_SHOWN_OUTPUT: Final = 2_000
_IMAGE: Final = 1_600
"""What the API counts for an image of the largest size that it does not shrink."""
_PER_DOCUMENT_BYTE: Final = 1 / 20
_FRAME: Final = 8
"""What a block takes beside what it says."""


def estimate(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take."""
    return sum(tokens_of(message["content"]) for message in messages)


def tokens_of(blocks: list[Block]) -> int:
    """Return about how many tokens blocks take: rather a few too many than too few."""
    return sum(_FRAME + _tokens(block) for block in blocks)


def told(messages: Sequence[Message]) -> Iterator[str]:
    """Yield a conversation as plain text; of what tools printed only the beginning."""
    for message in messages:
        for block in message["content"]:
            match block.get("type"):
                case "text":
                    yield f"{message['role']}: {block['text']}"
                case "tool_use":
                    yield f"call of {block.get('name')}: {block.get('input')}"
                case "tool_result":
                    yield f"result: {_result_text(block.get('content'))[:_SHOWN_OUTPUT]}"
                case _:
                    pass


def text_of(content: str | list[Block]) -> str:
    """Return the words of a message."""
    if isinstance(content, str):
        return content
    return "\n".join(str(each.get("text", "")) for each in content if each.get("type") == "text")


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return text_of(cast("list[Block]", content)) if isinstance(content, list) else ""


def _tokens(block: Block) -> int:
    match block.get("type"):
        case "image":
            return _IMAGE
        case "document":
            return round(len(str(block.get("source"))) * _PER_DOCUMENT_BYTE)
        case "text":
            return _of_text(str(block.get("text", "")))
        case "tool_result":
            content: Any = block.get("content")
            if isinstance(content, list):
                return tokens_of(cast("list[Block]", content))
            return _of_text(str(content or ""))
        case _:
            return _of_text(str(block))


def _of_text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size // CHARACTERS_PER_TOKEN
