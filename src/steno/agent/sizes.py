"""A conversation as plain text, and about how many tokens it takes."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from steno.model.wire import Block, Message

__all__ = ["CHARACTERS_PER_TOKEN", "characters", "estimate", "text_of", "told"]

CHARACTERS_PER_TOKEN: Final = 4
_SHOWN_OUTPUT: Final = 2_000


def estimate(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take."""
    return characters(messages) // CHARACTERS_PER_TOKEN


def characters(messages: Sequence[Message]) -> int:
    """Return how many characters messages have, told as plain text."""
    return sum(len(text) for text in told(messages, whole=True))


def told(messages: Sequence[Message], *, whole: bool = False) -> Iterator[str]:
    """Yield a conversation as plain text; of what tools printed the beginning, or the whole."""
    for message in messages:
        for block in message["content"]:
            match block.get("type"):
                case "text":
                    yield f"{message['role']}: {block['text']}"
                case "tool_use":
                    yield f"call of {block.get('name')}: {block.get('input')}"
                case "tool_result":
                    text = _result_text(block.get("content"))
                    yield f"result: {text if whole else text[:_SHOWN_OUTPUT]}"
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
