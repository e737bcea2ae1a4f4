"""What a message is made of, as the API writes it, and the answers to tool calls."""

import base64
import struct
import zlib
from typing import Any, Final, TypeAlias

import msgspec

__all__ = [
    "UNSET",
    "Answer",
    "Json",
    "answer",
    "document",
    "image",
    "pdf",
    "png",
    "raw",
    "redacted_thinking",
    "server_tool",
    "text",
    "thinking",
    "tool",
    "tool_reference",
]

Json: TypeAlias = dict[str, Any]
UNSET: Final = msgspec.UNSET


class Answer(msgspec.Struct, frozen=True):
    """What a tool gave back; `of` counts the calls of one response from 0."""

    content: str | list[Json] | None = None
    of: int | None = None
    error: bool = False
    detail: Any = UNSET
    ms: int | None = None


def answer(content: str | list[Json] | None = None, *, of: int | None = None) -> Answer:
    """Return a result to be written among the blocks of a response that is still streaming."""
    return Answer(content=content, of=of)


def text(words: str) -> Json:
    """Return a text block."""
    return {"type": "text", "text": words}


def thinking(words: str, signature: str = "") -> Json:
    """Return a thinking block; the builder signs it when no signature is given."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def redacted_thinking(data: str = "EmwKAhgBEgy3va3pzix/LafPsn4=") -> Json:
    """Return a thinking block that only the API can read."""
    return {"type": "redacted_thinking", "data": data}


def tool(name: str, /, *, tool_id: str = "", **arguments: object) -> Json:
    """Return a tool call; the builder names it when no id is given."""
    return {"type": "tool_use", "id": tool_id, "name": name, "input": dict(arguments)}


def server_tool(name: str, /, *, tool_id: str = "", **arguments: object) -> Json:
    """Return a call that the API itself carries out."""
    return {"type": "server_tool_use", "id": tool_id, "name": name, "input": dict(arguments)}


def tool_reference(name: str) -> Json:
    """Return a block of a tool search's result."""
    return {"type": "tool_reference", "tool_name": name}


def image(data: bytes, media_type: str = "image/png") -> Json:
    """Return an image block."""
    return {"type": "image", "source": _source(data, media_type)}


def document(data: bytes, media_type: str = "application/pdf") -> Json:
    """Return a document block."""
    return {"type": "document", "source": _source(data, media_type)}


def raw(kind: str, /, **fields: object) -> Json:
    """Return a block of any kind, known or not."""
    return {"type": kind, **fields}


def png(rows: list[list[tuple[int, int, int]]]) -> bytes:
    """Return a valid PNG of these rows of red, green and blue.

    The pixels are stored, not packed: how well they pack depends on the zlib at hand.
    """
    width, height = len(rows[0]), len(rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + b"".join(bytes(pixel) for pixel in row) for row in rows)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in chunks)


def pdf(words: str) -> bytes:
    """Return a small PDF of one page with one line on it."""
    stream = f"BT /F1 12 Tf 20 60 Td ({words}) Tj ET".encode("latin-1", "replace")
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources 5 0 R>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>",
    )
    body = b"%PDF-1.4\n"
    offsets: list[int] = []
    for number, item in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj%b\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        body
        + b"xref\n0 %d\n0000000000 65535 f \n%btrailer<</Size %d/Root 1 0 R>>\n" % (size, table, size)
        + b"startxref\n%d\n%%%%EOF\n" % len(body)
    )


def _source(data: bytes, media_type: str) -> Json:
    encoded = base64.b64encode(data).decode("ascii")
    return {"type": "base64", "media_type": media_type, "data": encoded}


def _chunk(name: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(name + body)
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", checksum)
