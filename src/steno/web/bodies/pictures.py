"""The pictures inside a record: found in the order they stand in, known by their first bytes."""

import binascii
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from steno.format.records import Record
from steno.report import words as say
from steno.safe.html import Html
from steno.session.resume.images import MEDIA_TYPES, read_header
from steno.web.bodies.about import About
from steno.web.bodies.values import as_fields, as_items
from steno.web.paint import part

__all__ = [
    "MOST_BYTES",
    "Picture",
    "Shown",
    "bytes_of",
    "gallery",
    "pictures_in",
    "thumbnails",
]

MOST_BYTES: Final = 20 << 20
"""Of one picture; a bigger one is only named."""
_DEEPEST: Final = 40
_MOST: Final = 200
_SHOWN: Final = 24
_WIDE: Final = 800
_HIGH: Final = 420
_THUMBNAIL: Final = (240, 160)
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_SCHEME: Final = "data:image/"
_MARK: Final = ";base64,"
_HINTS: Final = (b'"base64"', b'"image"', b"data:image/")


class Picture(msgspec.Struct, frozen=True):
    """A picture in a record: its number there, its base64, and what its first bytes say."""

    number: int
    data: str
    media_type: str = ""
    """What it is, by its bytes; nothing where it is none that pages show."""
    width: int = 0
    height: int = 0
    declared: str = ""

    @property
    def size(self) -> int:
        """How many bytes it has, nearly."""
        return len(self.data) * 3 // 4


def pictures_in(record: Record) -> list[Picture]:
    """Return the pictures of a record, each once."""
    if not any(hint in record.line for hint in _HINTS):
        return []
    # To hash a picture takes longer than to compare it with the few others.
    seen: list[str] = []
    found: list[Picture] = []
    for number, (data, declared) in enumerate(_walk(record.fields, 0)):
        if number >= _MOST:
            break
        if data in seen:
            continue
        seen.append(data)
        header = read_header(data)
        if header is not None and header.media_type in MEDIA_TYPES:
            found.append(
                Picture(number, data, header.media_type, header.width, header.height, declared)
            )
        elif declared.startswith("image/"):
            found.append(Picture(number, data, declared=declared))
    return found


def _walk(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Yield everything that could be a picture, and what it is said to be."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if value.startswith(_SCHEME) and _MARK in value[:80]:
            declared, _, data = value.partition(_MARK)
            yield data, declared.removeprefix("data:")
        return
    fields = as_fields(value)
    own = _own(fields)
    if own is not None:
        yield own
        return
    for item in [*fields.values(), *as_items(value)]:
        if isinstance(item, str | dict | list):
            yield from _walk(item, depth + 1)


def _own(fields: dict[str, Any]) -> tuple[str, str] | None:
    """Return the base64 that an object holds itself, in any of the shapes there are."""
    kind = fields.get("type")
    for name, fits in (
        ("data", kind in ("base64", "image")),
        ("base64", True),
    ):
        data = fields.get(name)
        if fits and isinstance(data, str) and data:
            names = (fields.get("media_type"), fields.get("mimeType"), kind)
            declared = next((x for x in names if isinstance(x, str) and "/" in x), "")
            return data, declared
    return None


def bytes_of(picture: Picture) -> bytes | None:
    """Return the bytes of a picture; None where it is none, or too big."""
    if not picture.media_type or picture.size > MOST_BYTES:
        return None
    try:
        return binascii.a2b_base64(picture.data)
    except ValueError:
        return None


class Shown(msgspec.Struct, frozen=True):
    """A picture as a page shows it: no bigger than there is room for."""

    address: str
    """Nothing where it cannot be shown."""
    width: int
    height: int
    said: str


def thumbnails(record: Record, address: Callable[[int], str]) -> tuple[Shown, ...]:
    """Return the pictures of a record, small; `address` is where the one of a number is."""
    return tuple(_shown(each, address, _THUMBNAIL) for each in pictures_in(record)[:_SHOWN])


def gallery(record: Record, about: About) -> Html:
    """Return the pictures of a record, or nothing."""
    found = pictures_in(record)
    address = partial(about.picture, record.offset)
    shown = [_shown(picture, address, (_WIDE, _HIGH)) for picture in found[:_SHOWN]]
    if not shown:
        return Html("")
    more = len(found) - len(shown)
    return Html(part("body-pictures.html.j2", pictures=shown, more=more))


def _shown(picture: Picture, address: Callable[[int], str], room: tuple[int, int]) -> Shown:
    fits = bool(picture.media_type) and picture.size <= MOST_BYTES
    where = address(picture.number) if fits else ""
    kind = (picture.media_type or picture.declared).removeprefix("image/")
    sides = f"{picture.width:,} {_TIMES} {picture.height:,}" if picture.width else ""
    why = "" if fits else "not shown: " + ("too big" if picture.media_type else "unknown bytes")
    said = ", ".join(part for part in (kind, sides, say.size(picture.size), why) if part)
    # The page keeps room for it, so that nothing jumps when it comes.
    scale = min(1, room[0] / max(1, picture.width), room[1] / max(1, picture.height))
    return Shown(where, round(picture.width * scale), round(picture.height * scale), said)
