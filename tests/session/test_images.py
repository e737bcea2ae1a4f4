"""Images are told by their first bytes, however little of them is decoded."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Json, image, png

from steno.session.resume.api_rules import MAX_BYTES, ImageHeader, decoded_size, image_flaw, read_header


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def png_of(width: int, height: int, size: int = 0) -> bytes:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return head + bytes(max(0, size - len(head)))


def jpeg_of(width: int, height: int, before: int = 16) -> bytes:
    filler = b"".join(
        b"\xff\xe1" + struct.pack(">H", 2 + len(part)) + part
        for part in (bytes(min(60_000, before - at)) for at in range(0, before, 60_000))
    )
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + filler + b"\xff\xff\xc4\x00\x04\0\0" + frame


def gif_of(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(8)


def webp_of(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 30) + b"WEBP" + kind + struct.pack("<I", 10) + body


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (png_of(640, 480), ImageHeader("image/png", 640, 480)),
        (png([[(0, 0, 0)] * 3] * 2), ImageHeader("image/png", 3, 2)),
        (gif_of(320, 200), ImageHeader("image/gif", 320, 200)),
        (jpeg_of(1024, 768), ImageHeader("image/jpeg", 1024, 768)),
        (jpeg_of(1024, 768, before=500_000), ImageHeader("image/jpeg", 1024, 768)),
        (
            webp_of(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", 90, 60) + bytes(8)),
            ImageHeader("image/webp", 90, 60),
        ),
        (webp_of(b"VP8L", b"\x2f" + struct.pack("<I", 89 | 59 << 14) + bytes(8)), ImageHeader("image/webp", 90, 60)),
        (webp_of(b"VP8X", bytes(4) + b"\x59\0\0" + b"\x3b\0\0" + bytes(8)), ImageHeader("image/webp", 90, 60)),
        (b"\x89PNG\r\n\x1a\n", ImageHeader("image/png")),
        (b"\xff\xd8\xff\xe0", ImageHeader("image/jpeg")),
        (b"GIF89a", ImageHeader("image/gif")),
        (b"RIFF\0\0\0\0WEBP", ImageHeader("image/webp")),
        (b"%PDF-1.4", None),
        (b"", None),
    ],
)
def test_kind_and_size_stand_in_the_header(data: bytes, header: ImageHeader | None) -> None:
    assert read_header(encoded(data)) == header


def test_a_jpeg_whose_segments_have_no_length_ends() -> None:
    assert read_header(encoded(b"\xff\xd8\xff\xe0\0\0" + b"\xff\xe0\0\0" * 50)) is not None


@pytest.mark.parametrize("length", range(8))
def test_the_decoded_size_is_known_without_decoding(length: int) -> None:
    assert decoded_size(encoded(bytes(length))) == length


@pytest.mark.parametrize("data", ["a", "ab==c", "====", "ab?=", "äbcd", "ab\ncd", "ab=c"])
def test_what_is_not_base64_has_no_size(data: str) -> None:
    assert decoded_size(data) is None


def source(data: bytes, media_type: str = "image/png") -> Json:
    return image(data, media_type)["source"]


@pytest.mark.parametrize(
    ("given", "flaw"),
    [
        (source(png_of(8000, 8000)), ""),
        (source(png_of(8001, 10)), "8,001 x 10 pixels; the limit is 8,000 a side"),
        (source(png_of(10, 8001)), "10 x 8,001 pixels; the limit is 8,000 a side"),
        (source(png_of(1, 1, MAX_BYTES)), ""),
        (source(png_of(1, 1, MAX_BYTES + 1)), "5,242,881 bytes; the limit is 5,242,880"),
        (source(gif_of(1, 1)), "declared as image/png, but the data is image/gif"),
        (source(gif_of(1, 1), "image/gif"), ""),
        (source(png_of(1, 1), "image/svg+xml"), "media type 'image/svg+xml'"),
        (source(b"nothing"), "not an image"),
        ({"type": "base64", "media_type": "image/png", "data": "?"}, "not base64"),
        ({"type": "base64", "media_type": "image/png", "data": ""}, "no data"),
        ({"type": "base64", "media_type": ["image/png"], "data": ""}, "media type arr"),
        ({"type": "url", "url": "https://example.com/a.png"}, ""),
        ({"type": "url"}, "no address"),
        ({"type": "file", "file_id": "file_1"}, ""),
        (None, "no source"),
    ],
)
def test_an_image_that_the_api_refuses_is_said_why(given: Json | None, flaw: str) -> None:
    assert image_flaw(given)[0] == flaw


def test_the_longer_side_comes_with_it() -> None:
    assert image_flaw(source(png_of(300, 2500))) == ("", 2500)


BASE64 = st.text(st.sampled_from("Az09+/==?\n\0é"), max_size=12)


@given(BASE64, st.integers(0, 70))
def test_base64_is_told_the_same_without_the_library_that_is_fast(odd: str, before: int) -> None:
    data = "A" * before + odd
    fast = decoded_size(data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("steno.session.resume.api_rules._finder", lambda: None)
        assert decoded_size(data) == fast


@given(st.binary(max_size=200))
def test_the_size_of_what_was_encoded_is_known(data: bytes) -> None:
    assert decoded_size(encoded(data)) == len(data)
