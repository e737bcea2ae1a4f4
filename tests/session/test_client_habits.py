"""The habits of the studied clients, as they were found by experiment: a change here is a finding."""

from base64 import b64encode
from typing import Any, Final

import msgspec
import pytest

from steno.errors import BadRequest
from steno.session.resume.api_rules import ImageHeader, decoded_size, image_flaw, read_header
from steno.session.resume.clients import CLIENTS, LATEST, STENO, Client, client_for

NEWEST: Final[dict[str, Any]] = {
    "splits_glued": True,
    "needs_time_as_text": True,
    "links": {"progress"},
    "keeps_unknown": False,
    "refuses": set(),
    "leaf": "file order",
    "obeys_last_prompt": True,
    "refuses_agents_leaf": True,
    "bridge_seconds": 5.0,
    "gathers": True,
    "gathered_first": False,
    "honours_preserved": True,
    "ignores_last_boundary": True,
    "sends_rendered": True,
    "tells_reads_apart": True,
    "system_turns": True,
    "sends_local_commands": True,
    "answers_interrupted": True,
    "answers_prompts": True,
    "asks_to_continue": False,
    "answers_only": "",
    "merges_nameless": False,
    "joins_with_newline": True,
    "calls_last": True,
    "drops_orphans": True,
    "answers_reused_ids": False,
    "default_model": "claude-opus-5-5",
    "gone_models": ("claude-3-7-", "claude-opus-4-1", "claude-opus-4-2", "claude-sonnet-4-2"),
}
MIDDLE: Final = {
    "splits_glued": False,
    "refuses": {"no content", "no model"},
    "leaf": "last record",
    "gathered_first": True,
    "sends_rendered": False,
    "answers_interrupted": False,
    "asks_to_continue": True,
    "default_model": "claude-opus-4-8",
    "gone_models": (*NEWEST["gone_models"], "claude-opus-5"),
}
OLD: Final = {
    **dict.fromkeys(("splits_glued", "needs_time_as_text", "obeys_last_prompt", "gathers"), False),
    **dict.fromkeys(("honours_preserved", "ignores_last_boundary", "sends_rendered"), False),
    **dict.fromkeys(("sends_local_commands", "answers_interrupted", "calls_last"), False),
    **dict.fromkeys(("joins_with_newline", "drops_orphans"), False),
    **dict.fromkeys(("asks_to_continue", "merges_nameless"), True),
    "refuses": {"no content"},
    "leaf": "timestamp",
    "answers_only": "last record or result",
    "bridge_seconds": None,
    "default_model": "",
}
OLDER: Final = {**OLD, "answers_only": "last record"}
OLDEST: Final = {**OLDER, "links": set(), "refuses": {"no content", "no time", "cycle"}}
OURS: Final = {
    **dict.fromkeys(("refuses_agents_leaf", "tells_reads_apart", "system_turns"), False),
    "answers_prompts": False,
    "answers_reused_ids": True,
    "links": set(),
    "keeps_unknown": True,
    "bridge_seconds": float("inf"),
    "default_model": "",
}
HABITS: Final = {
    "1.0.128": OLDEST,
    "2.0.76": OLDEST,
    "2.1.29": OLDER,
    "2.1.42": OLD,
    "2.1.200": MIDDLE,
    "2.1.325": {},
    "steno": OURS,
}


@pytest.mark.parametrize("client", [*CLIENTS, STENO], ids=lambda client: client.version)
def test_a_client_has_the_habits_that_were_found(client: Client) -> None:
    assert msgspec.structs.asdict(client) == {"version": client.version, **NEWEST, **HABITS[client.version]}


def test_every_studied_client_is_in_the_table_oldest_first() -> None:
    assert [client.version for client in (*CLIENTS, STENO)] == list(HABITS)
    assert CLIENTS[-1] is LATEST


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("1.0.128", "1.0.128"),
        ("1.9", "1.0.128"),
        ("2.1.41", "2.1.29"),
        ("2.1.42", "2.1.42"),
        ("2.1.324", "2.1.200"),
        ("2.1.325", "2.1.325"),
        ("9.0.0", "2.1.325"),
    ],
)
def test_a_version_goes_by_the_newest_studied_before_it(asked: str, found: str) -> None:
    assert client_for(asked).version == found


@pytest.mark.parametrize("asked", ["1.0.127", "0", "x", "", "2.1.x"])
def test_a_version_that_is_too_old_or_none_is_refused_with_those_that_were_studied(asked: str) -> None:
    with pytest.raises(BadRequest) as caught:
        client_for(asked)
    assert "1.0.128, 2.0.76" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("last", "model"),
    [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("claude-opus-4-1", "claude-opus-5-5"),
        ("claude-3-7-sonnet", "claude-opus-5-5"),
        ("gpt", "claude-opus-5-5"),
        ("", "claude-opus-5-5"),
    ],
)
def test_a_session_goes_on_with_its_model_or_with_the_default(last: str, model: str) -> None:
    assert LATEST.model_for(last) == model


# Headers of images


def header(data: bytes) -> ImageHeader | None:
    return read_header(b64encode(data).decode())


def jpeg(*segments: bytes) -> bytes:
    frame = b"\xff\xc0\x00\x11\x08\x01\x02\x03\x04" + bytes(12)
    return b"\xff\xd8" + b"".join(segments) + frame


def segment(marker: int, size: int) -> bytes:
    return bytes((0xFF, marker)) + (size + 2).to_bytes(2, "big") + bytes(size)


FOUND = ImageHeader("image/jpeg", 0x0304, 0x0102)


@pytest.mark.parametrize(
    "segments",
    [
        [segment(0xE0, 14)],
        [segment(0xE0, 14), segment(0xDB, 65)],
        [segment(0xE0, 0), b"\xff\xd0", b"\xff\x01", b"\xff\xd8"],
        [segment(0xE0, 5), b"\xff\xff\xff"],
        [segment(0xC4, 9), segment(0xC8, 9), segment(0xCC, 9)],
        [segment(0xE1, 3000), segment(0xE1, 60_000), segment(0xE1, 60_000)],
    ],
)
def test_the_frame_of_a_jpeg_is_found_behind_whatever_stands_before_it(segments: list[bytes]) -> None:
    assert header(jpeg(*segments)) == FOUND


def test_a_jpeg_that_is_cut_off_before_its_frame_has_no_size() -> None:
    assert header(jpeg(segment(0xE0, 14))[:24]) == ImageHeader("image/jpeg")
    assert header(b"\xff\xd8\xff") == ImageHeader("image/jpeg")
    assert header(b"\xff\xd8\xfe") is None


@pytest.mark.parametrize("length", range(4080, 4112))
def test_an_image_may_end_where_the_window_does(length: int) -> None:
    data = jpeg(segment(0xE1, 40_000))[: length * 3 // 4]
    assert header(data) == ImageHeader("image/jpeg")


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + rest


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (webp(b"VP8 ", bytes(10) + b"\x34\xd2\x78\xd6" + bytes(4)), (0x1234, 0x1678)),
        (webp(b"VP8L", bytes(5) + (9 | 19 << 14).to_bytes(4, "little") + bytes(9)), (10, 20)),
        (webp(b"VP8L", bytes(5) + b"\xff\xff\xff\xff" + bytes(9)), (0x4000, 0x4000)),
        (webp(b"VP8X", bytes(8) + b"\x09\0\0\x13\0\0"), (10, 20)),
        (webp(b"ALPH", bytes(14)), (0, 0)),
        (webp(b"VP8X", bytes(8) + b"\x09\0\0\x13\0"), (0, 0)),
    ],
)
def test_every_kind_of_webp_says_its_size(data: bytes, size: tuple[int, int]) -> None:
    assert header(data) == ImageHeader("image/webp", *size)


def test_png_and_gif_say_their_size_where_all_of_the_header_is_there() -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x05\0\0\0\x06"
    assert header(png) == ImageHeader("image/png", 5, 6)
    assert header(png[:-1]) == ImageHeader("image/png")
    assert header(png.replace(b"IHDR", b"IHDX")) == ImageHeader("image/png")
    for kind in (b"GIF87a", b"GIF89a"):
        assert header(kind + b"\x05\0\x06\0") == ImageHeader("image/gif", 5, 6)
        assert header(kind + b"\x05\0\x06") == ImageHeader("image/gif")
    assert header(b"GIF88a\x05\0\x06\0") is None
    assert ImageHeader("x", 5, 6).side == 6
    assert read_header("a") is None


@pytest.mark.parametrize(
    ("data", "size"),
    [("", 0), ("aGk=", 2), ("aA==", 1), ("aGkh", 3), ("a===", None), ("aGk", None), ("aG=h", None),
     ("aG k", None), ("a=k=", None), ("äGkh", None), ("aGkh" * 1000 + "aA==", 3001)],
)  # fmt: skip
def test_the_size_of_base64_is_known_without_decoding(data: str, size: int | None) -> None:
    assert decoded_size(data) == size


def test_why_an_image_would_be_refused() -> None:
    png = b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x05\0\0\x1f\x40").decode()
    large = b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x05\0\0\x1f\x41").decode()

    def flaw(**fields: Any) -> tuple[str, int]:
        return image_flaw({"type": "base64", "media_type": "image/png", **fields})

    assert flaw(data=png) == ("", 8000)
    assert flaw(data=large) == ("5 x 8,001 pixels; the limit is 8,000 a side", 0)
    assert flaw(data="") == ("no data", 0)
    assert flaw(data=5) == ("no data", 0)
    assert flaw(data="a?") == ("not base64", 0)
    assert flaw(data="aGkh") == ("not an image", 0)
    assert flaw(data=png, media_type="image/gif") == ("declared as image/gif, but the data is image/png", 8000)
    assert flaw(data=png, media_type="image/tiff")[0].startswith("media type")
    assert image_flaw({"type": "url", "url": "x"}) == ("", 0)
    assert image_flaw({"type": "file", "file_id": "x"}) == ("", 0)
    assert image_flaw({"type": "url"}) == ("no address", 0)
    assert image_flaw({"type": "file", "file_id": 5}) == ("no address", 0)
    assert image_flaw(None) == ("no source", 0)
