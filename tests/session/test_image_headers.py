"""Kind and size of an image, against a second reading of the formats: cut anywhere, of every kind."""

import base64
import struct
from collections.abc import Iterator

import pytest

from steno.session.resume.api_rules import ImageHeader, read_header


def _png(width: int, height: int, chunk: bytes = b"IHDR") -> bytes:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk
    return head + struct.pack(">II", width, height) + bytes(9)


def _gif(width: int, height: int, kind: bytes = b"GIF89a") -> bytes:
    return kind + struct.pack("<HH", width, height) + bytes(6)


def _webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 40) + b"WEBP" + kind + body


def _segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", 2 + len(body)) + body


def _frame(marker: int, width: int, height: int) -> bytes:
    return _segment(marker, struct.pack(">BHHB", 8, height, width, 3) + bytes(9))


_JPEG = b"\xff\xd8"
_FRAMES = [*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)]
_WITHOUT_LENGTH = [0x01, *range(0xD0, 0xD9)]
_SAMPLES = {
    "png": _png(0x01020304, 0x05060708),
    "png of no size": _png(0, 7),
    "png without header": _png(3, 4, b"IDAT"),
    "gif 87": _gif(0x0102, 0x0304, b"GIF87a"),
    "gif 89": _gif(0xFFFF, 1),
    "gif of another time": _gif(3, 4, b"GIF88a"),
    "webp": _webp(b"VP8 ", bytes(10) + struct.pack("<HH", 0xFFFF, 0x4001) + bytes(4)),
    "webp lossless": _webp(b"VP8L", bytes(5) + struct.pack("<I", 0xFFFFFFFF) + bytes(9)),
    "webp lossless small": _webp(b"VP8L", bytes(5) + struct.pack("<I", 2 | 4 << 14) + bytes(9)),
    "webp extended": _webp(b"VP8X", bytes(8) + b"\x01\x02\x03" + b"\x04\x05\x06" + bytes(4)),
    "webp of another kind": _webp(b"VP9 ", bytes(20)),
    "riff that is none": b"RIFF" + bytes(4) + b"WAVE" + bytes(30),
    "jpeg": _JPEG + _segment(0xE0, b"JFIF" + bytes(12)) + _frame(0xC0, 0x0102, 0x0304) + bytes(4),
    "jpeg at once": _JPEG + _frame(0xC2, 300, 200),
    "jpeg with filling": _JPEG + b"\xff\xff\xff" + _frame(0xC1, 300, 200)[1:] + bytes(3),
    "jpeg with garbage": _JPEG + _segment(0xE0, b"x") + b"\x00" + _frame(0xC0, 300, 200),
    "jpeg of no width": _JPEG + _frame(0xC0, 0, 200) + _frame(0xC0, 5, 5),
    "jpeg without a mark": b"\xff\xd8\xfe" + _frame(0xC0, 300, 200),
    "bitmap": b"BM" + bytes(40),
}


def _reference(data: bytes) -> tuple[str, int, int] | None:
    """Return kind, width and height, read as the formats say."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        sized = len(data) >= 24 and data[12:16] == b"IHDR"
        return ("image/png", *(struct.unpack(">II", data[16:24]) if sized else (0, 0)))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        sized = len(data) >= 10
        return ("image/gif", *(struct.unpack("<HH", data[6:10]) if sized else (0, 0)))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ("image/webp", *_of_webp(data))
    if data[:3] == b"\xff\xd8\xff":
        return ("image/jpeg", *_of_jpeg(data))
    return None


def _of_webp(data: bytes) -> tuple[int, int]:
    if len(data) < 30:
        return 0, 0
    if data[12:16] == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width % 16384, height % 16384
    if data[12:16] == b"VP8L":
        (bits,) = struct.unpack("<I", data[21:25])
        return bits % 16384 + 1, bits // 16384 % 16384 + 1
    if data[12:16] == b"VP8X":
        wide, high = data[24:27], data[27:30]
        return int.from_bytes(wide, "little") + 1, int.from_bytes(high, "little") + 1
    return 0, 0


def _of_jpeg(data: bytes) -> tuple[int, int]:
    for place, marker in _markers(data):
        if marker in _FRAMES:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
    return 0, 0


def _markers(data: bytes) -> Iterator[tuple[int, int]]:
    place = 2
    while len(data) - place >= 9 and data[place] == 0xFF:
        marker = data[place + 1]
        yield place, marker
        if marker == 0xFF:
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        else:
            place += 2 + struct.unpack(">H", data[place + 2 : place + 4])[0]


def _read(data: bytes) -> tuple[str, int, int] | None:
    header = read_header(base64.b64encode(data).decode())
    return None if header is None else (header.media_type, header.width, header.height)


@pytest.mark.parametrize("name", sorted(_SAMPLES))
def test_an_image_cut_anywhere_is_what_its_first_bytes_say(name: str) -> None:
    data = _SAMPLES[name]
    for size in range(len(data) + 1):
        assert _read(data[:size]) == _reference(data[:size]), size


@pytest.mark.parametrize("name", ["png", "gif 89", "webp", "webp lossless", "webp extended", "jpeg"])
def test_every_byte_of_a_header_that_counts_counts(name: str) -> None:
    for place in range(len(_SAMPLES[name])):
        data = bytearray(_SAMPLES[name])
        data[place] ^= 0x15
        assert _read(bytes(data)) == _reference(bytes(data)), place


def test_only_some_markers_of_a_jpeg_hold_its_size() -> None:
    for marker in range(256):
        data = _JPEG + _frame(marker, 300, 200) + _frame(0xC0, 30, 20) + bytes(9)
        assert _read(data) == _reference(data), marker


@pytest.mark.parametrize("before", [3_000, 3_070, 3_072, 3_080, 49_000, 49_152, 49_160, 800_000])
def test_a_size_far_behind_the_beginning_is_found(before: int) -> None:
    filling = b""
    while len(filling) < before:
        filling += _segment(0xE1, bytes(min(60_000, before - len(filling))))
    assert _read(_JPEG + filling + _frame(0xC0, 300, 200)) == ("image/jpeg", 300, 200)


def test_what_is_no_base64_is_no_image() -> None:
    assert read_header("a") is None
    assert read_header("äöüß") is None
    assert ImageHeader("x", 3, 4).side == 4
    assert ImageHeader("x", 5, 4).side == 5
    assert ImageHeader("x").side == 0
