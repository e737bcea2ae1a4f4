"""Images in messages: of many the API takes only small ones."""

from collections.abc import Callable, Iterator
from typing import Any

from steno.format.values import as_list, as_object
from steno.session.resume.images import MANY_IMAGES, MAX_SIDE_OF_MANY, image_flaw
from steno.session.resume.rules import NO_IMAGE

__all__ = ["flaw_among_many", "images_in", "not_too_many", "without_images"]

_Block = dict[str, Any]
_Message = dict[str, Any]


def images_in(blocks: list[_Block]) -> Iterator[_Block]:
    """Yield the images among blocks and inside of results."""
    for block in blocks:
        if block.get("type") == "image":
            yield block
        elif block.get("type") == "tool_result":
            inner = [as_object(item) or {} for item in as_list(block.get("content")) or ()]
            yield from (item for item in inner if item.get("type") == "image")


def without_images(blocks: list[_Block], wanted: Callable[[_Block], str]) -> list[_Block]:
    """Return blocks with words in place of each image for which there is a reason."""

    def told(block: _Block) -> _Block:
        if block.get("type") == "image" and (reason := wanted(block)):
            return {"type": "text", "text": NO_IMAGE.format(reason)}
        content = as_list(block.get("content")) if block.get("type") == "tool_result" else None
        if content is None:
            return block
        return {**block, "content": [told(as_object(item) or {}) for item in content]}

    return [told(block) for block in blocks]


def not_too_many(messages: list[_Message]) -> list[_Message]:
    """Return messages without the large images that the API takes only where there are few."""
    images = [block for each in messages for block in images_in(each["content"])]
    if len(images) <= MANY_IMAGES or not any(map(flaw_among_many, images)):
        return messages
    return [
        {**each, "content": without_images(each["content"], flaw_among_many)} for each in messages
    ]


def flaw_among_many(block: _Block) -> str:
    """Return why the API would refuse an image among many others, or nothing."""
    side = image_flaw(block.get("source"))[1]
    if side <= MAX_SIDE_OF_MANY:
        return ""
    return f"{side:,} pixels a side, {MAX_SIDE_OF_MANY:,} allowed among more than {MANY_IMAGES}"
