"""What the user says in an editor, as the engine takes it: words, images, files that are named."""

import os
from base64 import b64decode
from binascii import Error as BadBase64
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from steno.errors import BadRequest
from steno.model.wire import Block
from steno.tools.base import ToolFailure
from steno.tools.images import show_image

__all__ = ["Given", "said"]

Given = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)


def said(given: list[Given], cwd: str) -> str | list[Block]:
    """Return a prompt: words alone as one text, so that a command in it is seen as one.

    Raises:
        BadRequest: there is nothing in it, or something that no model takes.
    """
    words: list[str] = []
    context: list[str] = []
    images: list[Block] = []
    for block in given:
        match block:
            case TextContentBlock():
                words.append(block.text)
            case ImageContentBlock():
                images += _image(block.data, block.uri or "an image")
            case ResourceContentBlock():
                words.append(_named(block.uri, cwd))
            case EmbeddedResourceContentBlock():
                resource = block.resource
                words.append(_named(resource.uri, cwd, attached=True))
                if isinstance(resource, BlobResourceContents):
                    images += _picture(resource)
                else:
                    context.append(_quoted(resource.uri, resource.text))
            case AudioContentBlock():
                raise BadRequest("sound cannot be sent to the model", hint="send words")
    return _together("\n\n".join(filter(None, ("".join(words), *context))), images)


def _together(words: str, images: list[Block]) -> str | list[Block]:
    if not words.strip() and not images:
        raise BadRequest("there is nothing in the prompt")
    if not images:
        return words
    return [*([{"type": "text", "text": words}] if words else []), *images]


def _picture(resource: BlobResourceContents) -> list[Block]:
    if not (resource.mime_type or "").startswith("image/"):
        raise BadRequest(f"{resource.uri} is neither text nor an image")
    return _image(resource.blob, resource.uri)


def _image(data: str, name: str) -> list[Block]:
    try:
        outcome = show_image(name, b64decode(data, validate=True))
    except (BadBase64, ValueError):
        raise BadRequest(f"{name} is no base64") from None
    except ToolFailure as error:
        raise BadRequest(str(error)) from None
    content: Any = outcome.content
    return content


def _named(uri: str, cwd: str, *, attached: bool = False) -> str:
    """Return a resource as it is named in the words: a file behind an `@`, which has it read.

    One that came along is named without it: it would be read again, as it is on the disk.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return uri
    path = unquote(parts.path)
    inside = os.path.relpath(path, cwd) if os.path.isabs(path) else path
    shown = path if inside.startswith(os.pardir) else inside
    if attached:
        return shown
    return f'@"{shown}"' if any(letter.isspace() for letter in shown) else f"@{shown}"


def _quoted(uri: str, text: str) -> str:
    return f'<context ref="{uri}">\n{text}\n</context>'
