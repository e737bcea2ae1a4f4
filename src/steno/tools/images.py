"""Image files: which kind they are, and showing them."""

from base64 import b64encode
from typing import Any, Final

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.words import shown, size_words

__all__ = ["media_type_of", "show_image"]

_MOST_IMAGE: Final = 5 << 20


def media_type_of(head: bytes) -> str:
    """Return which kind of image a file is, by its first bytes; nothing for what is none."""
    from steno.session.resume.images import read_header

    header = read_header(b64encode(head).decode("ascii"))
    return header.media_type if header is not None else ""


def show_image(path: str, data: bytes) -> ToolResult:
    """Return an image as one.

    Raises:
        ToolFailure: it is damaged, or more than the API takes.
    """
    from steno.session.resume.images import image_flaw, read_header

    encoded = b64encode(data).decode("ascii")
    header = read_header(encoded)
    media_type = header.media_type if header is not None else ""
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    flaw = image_flaw(source)[0]
    if not flaw and len(encoded) > _MOST_IMAGE:
        flaw = f"{size_words(len(data))}, at most {size_words(_MOST_IMAGE // 4 * 3)} allowed"
    if not flaw and header is not None and not header.width:
        # The API opens what it is sent; one that it cannot open would stop the whole session.
        flaw = "its beginning is damaged"
    if flaw or header is None:
        raise ToolFailure(
            f"{shown(path)} is an image that cannot be shown ({flaw}): make a sound, smaller copy"
        )
    file: dict[str, Any] = {"base64": encoded, "type": media_type, "originalSize": len(data)}
    if header.width:
        file["dimensions"] = {
            "originalWidth": header.width,
            "originalHeight": header.height,
            "displayWidth": header.width,
            "displayHeight": header.height,
        }
    return ToolResult([{"type": "image", "source": source}], {"type": "image", "file": file})
