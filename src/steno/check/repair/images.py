"""Images: among very many the API takes only small ones."""

from typing import Any

from steno.check.repair.edits import Drafts
from steno.check.repair.records import message_of, objects_in
from steno.format.values import as_list, as_object
from steno.session.nodes import Node
from steno.session.resume.images import MANY_IMAGES, MAX_SIDE_OF_MANY, image_flaw
from steno.session.resume.rules import NO_IMAGE

__all__ = ["mend_images"]

_Blocks = list[dict[str, Any]]


def mend_images(drafts: Drafts) -> None:
    """Put notes in place of images that are too large to be among so many."""
    messages = drafts.graph.messages
    holders = [(node, images) for node in messages if (images := _images(drafts, node))]
    if sum(len(images) for _, images in holders) <= MANY_IMAGES:
        return
    for node, images in holders:
        sides = [side for image in images if (side := image_flaw(image.get("source"))[1])]
        if max(sides, default=0) > MAX_SIDE_OF_MANY:
            message = message_of(drafts, node)
            content = _noted(message["content"])
            what = f"put a note in place of an image: {max(sides):,} pixels a side among so many"
            fields = {"message": {**message, "content": content}}
            drafts.change(node, "message.image", what, fields, lost=f"an image in {node.uuid}")


def _images(drafts: Drafts, node: Node) -> _Blocks:
    blocks = objects_in(message_of(drafts, node).get("content"))
    inner = [each for block in blocks for each in objects_in(block.get("content"))]
    return [block for block in (*blocks, *inner) if block.get("type") == "image"]


def _noted(content: Any) -> Any:
    """Return content with notes for images that are too large."""
    blocks = as_list(content)
    if blocks is None:
        return content
    noted: list[Any] = []
    for block in blocks:
        fields = as_object(block) or {}
        side = image_flaw(fields.get("source"))[1] if fields.get("type") == "image" else 0
        if side > MAX_SIDE_OF_MANY:
            noted.append({"type": "text", "text": NO_IMAGE.format(f"{side:,} pixels a side")})
        elif fields.get("type") == "tool_result":
            noted.append({**fields, "content": _noted(fields.get("content"))})
        else:
            noted.append(block)
    return noted
