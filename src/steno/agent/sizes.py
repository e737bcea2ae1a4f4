"""About how many tokens something takes, before the API has counted it."""

from typing import Any, Final, cast

from steno.model.wire import Block

__all__ = ["tokens_of"]

_BYTES_PER_TOKEN: Final = 4
_IMAGE: Final = 1_600
"""What the API counts for an image of the largest size that it does not shrink."""
_PER_DOCUMENT_BYTE: Final = 1 / 20
_FRAME: Final = 8
"""What a block takes beside what it says."""


def tokens_of(blocks: list[Block]) -> int:
    """Return about how many tokens blocks take: rather a few too many than too few."""
    return sum(_FRAME + _tokens(block) for block in blocks)


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
    return size // _BYTES_PER_TOKEN
