"""What an image is, told from the first bytes of its base64: kind, size, width and height."""

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from steno.format.values import as_object, shown

__all__ = [
    "MANY_IMAGES",
    "MAX_BYTES",
    "MAX_SIDE",
    "MAX_SIDE_OF_MANY",
    "MEDIA_TYPES",
    "ImageHeader",
    "decoded_size",
    "image_flaw",
    "read_header",
]

MEDIA_TYPES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""The kinds of image the API takes."""
MAX_BYTES: Final = 5 << 20
"""The most bytes of one image."""
MAX_SIDE: Final = 8_000
"""The most pixels of a side."""
MANY_IMAGES: Final = 20
"""Beyond so many images in one request the sides may only be `MAX_SIDE_OF_MANY` long."""
MAX_SIDE_OF_MANY: Final = 2_000

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MOST_FILLING: Final = 2
_FIRST_WINDOW: Final = 4_096  # a multiple of four, so that it can be decoded alone
_GROWTH: Final = 16
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER: Final = 24
_GIF_HEADER: Final = 10
_WEBP_HEADER: Final = 30
_MARK: Final = 0xFF
_START_OF_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset((0x01, *range(0xD0, 0xD9)))  # JPEG markers that no length follows


class ImageHeader(msgspec.Struct, frozen=True):
    """What the first bytes of an image say; no width and height where they do not say it."""

    media_type: str
    width: int = 0
    height: int = 0

    @property
    def side(self) -> int:
        """The longer side."""
        return max(self.width, self.height)


def image_flaw(source: Any) -> tuple[str, int]:
    """Return why the API would refuse an image, or nothing, and its longer side if it is known.

    `source` is what stands under that key in an image block.
    """
    fields = as_object(source)
    if fields is None:
        return "no source", 0
    if fields.get("type") in ("url", "file"):
        place = fields.get("url") or fields.get("file_id")
        return ("" if isinstance(place, str) else "no address"), 0
    declared, data = fields.get("media_type"), fields.get("data")
    if not isinstance(declared, str) or declared not in MEDIA_TYPES:
        return f"media type {shown(declared)}", 0
    if not isinstance(data, str) or not data:
        return "no data", 0
    size = decoded_size(data)
    if size is None:
        return "not base64", 0
    if size > MAX_BYTES:
        return f"{size:,} bytes, {MAX_BYTES:,} allowed", 0
    header = read_header(data)
    if header is None:
        return "the bytes are no image", 0
    if header.media_type != declared:
        return f"said to be {declared}, but the bytes are {header.media_type}", header.side
    if header.side > MAX_SIDE:
        return f"{header.width:,} x {header.height:,} pixels, {MAX_SIDE:,} a side allowed", 0
    return "", header.side


def decoded_size(data: str) -> int | None:
    """Return how many bytes a base64 text stands for; None when it is not base64.

    >>> decoded_size("aGk="), decoded_size("a?"), decoded_size("aGk")
    (2, None, None)
    """
    if len(data) % 4 or not data.isascii():
        return None
    filling = len(data) - len(data.rstrip("="))
    if filling > _MOST_FILLING or not _is_base64(data, len(data) - filling):
        return None
    return len(data) // 4 * 3 - filling


def _is_base64(data: str, length: int) -> bool:
    """Whether so many characters from the first on are of base64, with only filling behind them."""
    find = _finder()
    if find is None:
        return len(data.encode("ascii").translate(None, _BASE64)) == len(data) - length
    stray = find(data, _BASE64)
    return stray in (-1, length)


@cache
def _finder() -> Callable[[str, bytes], int] | None:
    """Return what finds the first byte that is none of some: many times faster than a table."""
    try:
        import stringzilla
    except ImportError:
        return None
    library: Any = stringzilla
    return library.find_first_not_of


def read_header(data: str) -> ImageHeader | None:
    """Return the header of a base64 image, decoding no more than it takes; None for no image."""
    window = _FIRST_WINDOW
    while True:
        try:
            head = binascii.a2b_base64(data[:window])
        except (binascii.Error, ValueError):
            return None
        header = _header(head)
        is_all = window >= len(data)
        if header is None or header.width or is_all:
            return header
        window *= _GROWTH


def _header(head: bytes) -> ImageHeader | None:
    if head.startswith(_PNG):
        if len(head) < _PNG_HEADER or head[12:16] != b"IHDR":
            return ImageHeader("image/png")
        return ImageHeader("image/png", _big(head, 16, 4), _big(head, 20, 4))
    if head.startswith((b"GIF87a", b"GIF89a")):
        if len(head) < _GIF_HEADER:
            return ImageHeader("image/gif")
        return ImageHeader("image/gif", _little(head, 6, 2), _little(head, 8, 2))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    return _jpeg(head) if head.startswith(b"\xff\xd8\xff") else None


def _webp(head: bytes) -> ImageHeader:
    if len(head) < _WEBP_HEADER:
        return ImageHeader("image/webp")
    match head[12:16]:
        case b"VP8 ":
            width, height = _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
        case b"VP8L":
            bits = _little(head, 21, 4)
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, height = _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
        case _:
            width = height = 0
    return ImageHeader("image/webp", width, height)


def _jpeg(head: bytes) -> ImageHeader:
    """Go from marker to marker up to the frame; what lies before it may be long."""
    at = 2
    while at + 9 <= len(head) and head[at] == _MARK:
        marker = head[at + 1]
        if marker in _START_OF_FRAME:
            return ImageHeader("image/jpeg", _big(head, at + 7, 2), _big(head, at + 5, 2))
        if marker == _MARK:
            at += 1
        elif marker in _ALONE:
            at += 2
        else:
            at += 2 + _big(head, at + 2, 2)
    return ImageHeader("image/jpeg")


def _big(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def _little(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little")
