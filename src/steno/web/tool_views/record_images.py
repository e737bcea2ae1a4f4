"""Images inside a record, in document order, identified by their first bytes."""

import binascii
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from steno.format.records import Record
from steno.report import humanize as say
from steno.sanitize.html import SafeHtml
from steno.session.resume.api_rules import MEDIA_TYPES, read_header
from steno.web.templating import render_part
from steno.web.tool_views.view_context import ViewContext, as_fields, as_items

MAX_IMAGE_BYTES: Final = 20 << 20
"""Maximum bytes of a displayed image; for a larger one, only the caption is shown."""
_MAX_DEPTH: Final = 40
_MAX_IMAGES: Final = 200
_MAX_SHOWN: Final = 24
_MAX_WIDTH: Final = 800
_MAX_HEIGHT: Final = 420
_THUMBNAIL_SIZE: Final = (240, 160)
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_SCHEME: Final = "data:image/"
_MARK: Final = ";base64,"
_HINTS: Final = (b'"base64"', b'"image"', b"data:image/")


class RecordImage(msgspec.Struct, frozen=True):
    """An image in a record: its number, base64 data, and the type and size read from its first bytes."""

    number: int
    data: str
    media_type: str = ""
    """Media type from the first bytes; empty if browsers cannot show it."""
    width: int = 0
    height: int = 0
    declared_type: str = ""

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        return len(self.data) * 3 // 4


def images_in(record: Record) -> list[RecordImage]:
    """Return the distinct images of a record."""
    if not any(hint in record.line for hint in _HINTS):
        return []
    # Comparing the few images is faster than hashing them.
    seen_data: list[str] = []
    images: list[RecordImage] = []
    for number, (data, declared) in enumerate(_image_candidates(record.fields, 0)):
        if number >= _MAX_IMAGES:
            break
        if data in seen_data:
            continue
        seen_data.append(data)
        header = read_header(data)
        if header is not None and header.media_type in MEDIA_TYPES:
            images.append(RecordImage(number, data, header.media_type, header.width, header.height, declared))
        elif declared.startswith("image/"):
            images.append(RecordImage(number, data, declared_type=declared))
    return images


def _image_candidates(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the data and declared media type of everything that may be an image."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        if value.startswith(_SCHEME) and _MARK in value[:80]:
            declared, _, data = value.partition(_MARK)
            yield data, declared.removeprefix("data:")
        return
    fields = as_fields(value)
    inline_image = _inline_image(fields)
    if inline_image is not None:
        yield inline_image
        return
    for item in [*fields.values(), *as_items(value)]:
        if isinstance(item, str | dict | list):
            yield from _image_candidates(item, depth + 1)


def _inline_image(fields: dict[str, Any]) -> tuple[str, str] | None:
    """Return the base64 data of an object and its declared media type."""
    kind = fields.get("type")
    for name, fits in (("data", kind in ("base64", "image")), ("base64", True)):
        data = fields.get(name)
        if fits and isinstance(data, str) and data:
            names = (fields.get("media_type"), fields.get("mimeType"), kind)
            declared = next((x for x in names if isinstance(x, str) and "/" in x), "")
            return data, declared
    return None


def image_bytes(image: RecordImage) -> bytes | None:
    """Return the bytes of an image; None if it is not an image or too large."""
    if not image.media_type or image.size > MAX_IMAGE_BYTES:
        return None
    try:
        return binascii.a2b_base64(image.data)
    except ValueError:
        return None


class ImageView(msgspec.Struct, frozen=True):
    """An image on a page, with its display size in pixels."""

    url: str
    """URL; empty if the image cannot be shown."""
    width: int
    height: int
    caption: str


def thumbnails(record: Record, image_url: Callable[[int], str]) -> tuple[ImageView, ...]:
    """Return the thumbnails of a record; `image_url` returns the URL of an image number."""
    return tuple(_image_view(image, image_url, _THUMBNAIL_SIZE) for image in images_in(record)[:_MAX_SHOWN])


def image_gallery(record: Record, context: ViewContext) -> SafeHtml:
    """Return the images of a record as HTML."""
    images = images_in(record)
    image_url = partial(context.image_url, record.offset)
    image_views = [_image_view(picture, image_url, (_MAX_WIDTH, _MAX_HEIGHT)) for picture in images[:_MAX_SHOWN]]
    if not image_views:
        return SafeHtml("")
    hidden_count = len(images) - len(image_views)
    return SafeHtml(render_part("body-pictures.html.j2", pictures=image_views, more=hidden_count))


def _image_view(image: RecordImage, image_url: Callable[[int], str], max_size: tuple[int, int]) -> ImageView:
    is_showable = bool(image.media_type) and image.size <= MAX_IMAGE_BYTES
    url = image_url(image.number) if is_showable else ""
    kind = (image.media_type or image.declared_type).removeprefix("image/")
    sides = f"{image.width:,} {_TIMES} {image.height:,}" if image.width else ""
    reason = "" if is_showable else "not shown: " + ("too large" if image.media_type else "unknown bytes")
    caption = ", ".join(part for part in (kind, sides, say.size(image.size), reason) if part)
    # Reserve the display size so that the page does not shift while the image loads.
    scale = min(1, max_size[0] / max(1, image.width), max_size[1] / max(1, image.height))
    return ImageView(url, round(image.width * scale), round(image.height * scale), caption)
