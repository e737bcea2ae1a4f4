"""Fuzz targets: each takes arbitrary bytes and raises if a promise is broken."""

from collections.abc import Callable
from typing import Final

__all__ = ["TARGETS"]


def lines(data: bytes) -> None:
    """Check that the pieces of a file are contiguous, and that reading it as a stream gives the same pieces."""
    from steno.format.lines import read_bytes, read_pieces
    from steno.format.records import Record
    from steno.format.source import BytesSource

    place = 0
    whole: list[tuple[int, int, bool]] = []
    for piece in read_bytes(data):
        assert piece.offset == place, "pieces overlap or omit bytes"
        place += piece.length
        whole.append((piece.offset, piece.length, isinstance(piece, Record)))
    assert place == len(data), "the pieces do not cover the file"
    streamed = [(piece.offset, piece.length, isinstance(piece, Record)) for piece in read_pieces(BytesSource(data))]
    assert streamed == whole, "a stream gives different pieces"


def decode(data: bytes) -> None:
    """Decode a line as a record, access all its parts, and encode it again."""
    from steno.format.encode import encode_line
    from steno.format.lenient_json import decode_lenient
    from steno.format.lines import read_bytes
    from steno.format.records import Record

    for piece in read_bytes(data):
        if not isinstance(piece, Record):
            continue
        _ = (piece.type, piece.uuid, piece.time, piece.message, piece.damage)
        fields = piece.fields
        assert isinstance(fields, dict), "a record has no fields"
        assert decode_lenient(encode_line(fields)) == decode_lenient(
            encode_line(decode_lenient(encode_line(fields)))
        ), "a record changes when it is encoded and decoded"


def shell(data: bytes) -> None:
    """Parse a script; parsing it twice must give the same result."""
    from steno.permissions.shell.parser import parse_script

    script = data.decode("utf-8", "surrogateescape")
    first = parse_script(script)
    assert first == parse_script(script), "two results differ"
    assert all(command is not None for command in first.all_commands()), "a command is missing"


def paths(data: bytes) -> None:
    """Resolve a path; a path reported as inside a directory must be inside it."""
    import os

    from steno.permissions.paths import ResolvedPath, holds_protected, is_inside, why_protected, why_secret

    folder = os.path.realpath(os.path.dirname(__file__))
    place = ResolvedPath.of(data.decode("utf-8", "surrogateescape"), folder)
    why_protected(place)
    why_secret(place)
    holds_protected(place, (folder,))
    if is_inside(place, (folder,)):
        real = os.path.realpath(place.real)
        assert os.path.commonpath([real, folder]) == folder, "the path is outside"


def markdown(data: bytes) -> None:
    """Render Markdown; the page must not run or load anything, or contain a forbidden URL scheme."""
    from html.parser import HTMLParser

    from steno.web.render.markdown import markdown_markup as rendered

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in _ACTIVE, f"<{tag}> is not removed"
            for name, value in attrs:
                assert not name.startswith("on"), f"{name} is not removed"
                if name in ("href", "src", "action", "formaction"):
                    scheme = (value or "").strip().lower().partition(":")[0]
                    assert scheme not in ("javascript", "data", "vbscript"), f"{name}={value!r}"

    checker = Checker()
    checker.feed(str(rendered(data.decode("utf-8", "surrogateescape"))))
    checker.close()


_ACTIVE: Final = frozenset(
    {"script", "iframe", "object", "embed", "form", "base", "meta", "link", "style", "svg", "math"}
)


def sse(data: bytes) -> None:
    """Parse an event stream at once and byte by byte; the events must be the same."""
    from steno.llm.stream_decoder import SseParser

    whole = SseParser().feed(data)
    reader = SseParser()
    assert whole == [event for at in range(len(data)) for event in reader.feed(data[at : at + 1])]
    cut, half = SseParser(), len(data) // 2
    assert whole == [*cut.feed(data[:half]), *cut.feed(data[half:])]


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "lines": lines,
    "decode": decode,
    "shell": shell,
    "paths": paths,
    "markdown": markdown,
    "sse": sse,
}
