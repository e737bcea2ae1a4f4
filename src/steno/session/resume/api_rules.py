"""Rules of the Messages API: breaches in a conversation, their fixes, and image headers.

An image header provides the media type, width and height from the first bytes of the base64 data.
"""

import binascii
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, Literal

import msgspec

from steno.format.lenient_json import as_list, as_object, decode_lenient, describe_value
from steno.format.message import THINKING_TYPES

MEDIA_TYPES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""Image media types that the API accepts."""
MAX_BYTES: Final = 5 << 20
"""Maximum size of an image in bytes."""
MAX_SIDE: Final = 8_000
"""Maximum width and height of an image in pixels."""
MANY_IMAGES: Final = 20
"""Number of images in one request above which the limit is `MAX_SIDE_AMONG_MANY`."""
MAX_SIDE_AMONG_MANY: Final = 2_000

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MAX_PADDING: Final = 2
_FIRST_WINDOW: Final = 4_096  # a multiple of four, so that it can be decoded separately
_GROWTH: Final = 16
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER: Final = 24
_GIF_HEADER: Final = 10
_WEBP_HEADER: Final = 30
_MARKER_PREFIX: Final = 0xFF
_START_OF_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MARKERS_WITHOUT_LENGTH: Final = frozenset((0x01, *range(0xD0, 0xD9)))  # JPEG markers without a length field


def max_image_side(image_count: int) -> int:
    """Return the maximum width and height in pixels for a request with this many images."""
    return MAX_SIDE_AMONG_MANY if image_count > MANY_IMAGES else MAX_SIDE


class ImageHeader(msgspec.Struct, frozen=True):
    """Media type and dimensions from an image header; a dimension is 0 if unknown."""

    media_type: str
    width: int = 0
    height: int = 0

    @property
    def side(self) -> int:
        """The larger of width and height."""
        return max(self.width, self.height)


def image_flaw(source: Any) -> tuple[str, int]:
    """Return why the API would reject an image, or an empty string, and its larger side if known.

    `source` is the value of that key in an image block.
    """
    fields = as_object(source)
    if fields is None:
        return "no source", 0
    if fields.get("type") in ("url", "file"):
        address = fields.get("url") or fields.get("file_id")
        return ("" if isinstance(address, str) else "no address"), 0
    declared, data = fields.get("media_type"), fields.get("data")
    if not isinstance(declared, str) or declared not in MEDIA_TYPES:
        return f"media type {describe_value(declared)}", 0
    if not isinstance(data, str) or not data:
        return "no data", 0
    size = decoded_size(data)
    if size is None:
        return "not base64", 0
    if size > MAX_BYTES:
        return f"{size:,} bytes; the limit is {MAX_BYTES:,}", 0
    header = read_header(data)
    if header is None:
        return "not an image", 0
    if header.media_type != declared:
        return f"declared as {declared}, but the data is {header.media_type}", header.side
    if header.side > MAX_SIDE:
        return f"{header.width:,} x {header.height:,} pixels; the limit is {MAX_SIDE:,} a side", 0
    return "", header.side


def decoded_size(data: str) -> int | None:
    """Return the decoded length of a base64 text in bytes, or None if it is not base64.

    >>> decoded_size("aGk="), decoded_size("a?"), decoded_size("aGk")
    (2, None, None)
    """
    if len(data) % 4 or not data.isascii():
        return None
    padding = len(data) - len(data.rstrip("="))
    if padding > _MAX_PADDING or not _is_base64(data, len(data) - padding):
        return None
    return len(data) // 4 * 3 - padding


def _is_base64(data: str, length: int) -> bool:
    """Return whether the first `length` characters are base64 digits, and the others padding."""
    find = _finder()
    if find is None:
        return len(data.encode("ascii").translate(None, _BASE64)) == len(data) - length
    stray = find(data, _BASE64)
    return stray in (-1, length)


@cache
def _finder() -> Callable[[str, bytes], int] | None:
    """Return a function that finds the first byte outside a set, much faster than `bytes.translate`."""
    try:
        import stringzilla
    except ImportError:
        return None
    library: Any = stringzilla
    return library.find_first_not_of


def read_header(data: str) -> ImageHeader | None:
    """Return the header of a base64 image, decoding no more than needed, or None if it is not an image."""
    window = _FIRST_WINDOW
    while True:
        try:
            head = binascii.a2b_base64(data[:window])
        except (binascii.Error, ValueError):
            return None
        header = _header(head)
        is_complete = window >= len(data)
        if header is None or header.width or is_complete:
            return header
        window *= _GROWTH


# imagesize needs a file or all bytes, and accepts formats that the API rejects; this reads only the first bytes of
# base64 text.
def _header(head: bytes) -> ImageHeader | None:
    if head.startswith(_PNG):
        if len(head) < _PNG_HEADER or head[12:16] != b"IHDR":
            return ImageHeader("image/png")
        return ImageHeader("image/png", _big_endian(head, 16, 4), _big_endian(head, 20, 4))
    if head.startswith((b"GIF87a", b"GIF89a")):
        if len(head) < _GIF_HEADER:
            return ImageHeader("image/gif")
        return ImageHeader("image/gif", _little_endian(head, 6, 2), _little_endian(head, 8, 2))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    return _jpeg(head) if head.startswith(b"\xff\xd8\xff") else None


def _webp(head: bytes) -> ImageHeader:
    if len(head) < _WEBP_HEADER:
        return ImageHeader("image/webp")
    match head[12:16]:
        case b"VP8 ":
            width, height = (_little_endian(head, 26, 2) & 0x3FFF, _little_endian(head, 28, 2) & 0x3FFF)
        case b"VP8L":
            bits = _little_endian(head, 21, 4)
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, height = _little_endian(head, 24, 3) + 1, _little_endian(head, 27, 3) + 1
        case _:
            width = height = 0
    return ImageHeader("image/webp", width, height)


def _jpeg(head: bytes) -> ImageHeader:
    """Skip from marker to marker up to the frame header; metadata before it may be long."""
    at = 2
    while at + 9 <= len(head) and head[at] == _MARKER_PREFIX:
        marker = head[at + 1]
        if marker in _START_OF_FRAME:
            return ImageHeader("image/jpeg", _big_endian(head, at + 7, 2), _big_endian(head, at + 5, 2))
        if marker == _MARKER_PREFIX:
            at += 1
        elif marker in _MARKERS_WITHOUT_LENGTH:
            at += 2
        else:
            at += 2 + _big_endian(head, at + 2, 2)
    return ImageHeader("image/jpeg")


def _big_endian(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def _little_endian(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "little")


_RESULT_BLOCKS: Final = frozenset(("text", "image", "document", "search_result", "tool_reference"))
"""Block types allowed in a tool result."""
_BLOCKS_BY_ROLE: Final = {
    "user": frozenset(("text", "image", "document", "tool_result", "search_result", "container_upload")),
    "assistant": frozenset(
        (
            "text",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "server_tool_use",
            "web_search_tool_result",
            "web_fetch_tool_result",
            "code_execution_tool_result",
            "bash_code_execution_tool_result",
            "text_editor_code_execution_tool_result",
            "tool_search_tool_result",
            "mcp_tool_use",
            "mcp_tool_result",
        )
    ),
    "system": frozenset(("text",)),
}
KNOWN_BLOCKS: Final = _RESULT_BLOCKS.union(*_BLOCKS_BY_ROLE.values())
"""All block types known to the API."""
BLOCK_ROLES: Final = {kind: role for role, kinds in _BLOCKS_BY_ROLE.items() for kind in kinds if kind != "text"}
"""Role of every block type; text is allowed in any role."""
_SERVER_CALLS: Final = frozenset(("server_tool_use", "mcp_tool_use"))
"""Calls of server tools, whose results are in the same message."""
NO_CONTENT: Final = "(no content)"
"""Replaces the content of a message without any other content."""
_CALL_FLAW: Final = "id, name or input"
IMAGE_NOTE: Final = "[Image omitted: {}]"
_DOCUMENT_NOTE: Final = "[Document omitted: {}]"
_DOCUMENT_SOURCES: Final = {"text": "data", "content": "content", "url": "url", "file": "file_id"}
"""Source types of a document other than base64, with the field that contains the data."""

_Block = dict[str, Any]
_Message = dict[str, Any]


class Breach(msgspec.Struct, frozen=True):
    """A breach of an API rule by a message."""

    rule: str
    message: int
    block: int | None
    detail: str


def find_breaches(messages: list[_Message]) -> list[Breach]:
    """Return all breaches of the API rules in order; with an empty list, the messages can be sent."""
    problems: list[Breach] = []
    *pairings, end = pair_calls(map(blocks_of, messages))
    for index, (message, pairing) in enumerate(zip(messages, pairings, strict=True)):
        problems.extend(_block_breaches(index, message.get("role"), blocks_of(message)))
        problems.extend(_pairing_breaches(index, pairing))
    if end.unanswered:
        problems.append(Breach("tool_use.answered", len(messages) - 1, None, ", ".join(end.unanswered)))
    if messages and messages[0].get("role") != "user":
        problems.insert(0, Breach("role.first", 0, None, "the first message must have the role user"))
    return problems


class ToolResultPlace(msgspec.Struct, frozen=True):
    """A tool result in a message, and how it matches the calls of the previous message."""

    call_id: str
    index: int
    """Index of the block in the message."""
    number: int
    """Index among the results of the message."""
    is_called: bool
    """Whether the previous message contains the call."""
    is_repeated: bool
    """Whether an earlier result of the message answers the same call."""


class CallPairing(msgspec.Struct, frozen=True):
    """How the results of a message match the calls of the previous message, and IDs that its own calls repeat."""

    unanswered: list[str]
    results: list[ToolResultPlace]
    repeated_calls: list[str]


def pair_calls(contents: Iterable[list[_Block]]) -> Iterator[CallPairing]:
    """Yield the pairing of every message, given by its blocks, and a last one for the end."""
    calls: list[str] = []
    seen: set[str] = set()
    for blocks in contents:
        called = frozenset(calls)
        results: list[ToolResultPlace] = []
        answered: set[str] = set()
        for index, block in enumerate(blocks):
            if block.get("type") == "tool_result":
                call = str(block.get("tool_use_id"))
                results.append(ToolResultPlace(call, index, len(results), call in called, call in answered))
                answered.add(call)
        unanswered = [call for call in calls if call not in answered]
        calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        repeated: list[str] = []
        for call in calls:
            if call in seen:
                repeated.append(call)
            seen.add(call)
        yield CallPairing(unanswered, results, repeated)
    yield CallPairing(calls, [], [])


def _block_breaches(message_index: int, role: Any, blocks: list[_Block]) -> Iterator[Breach]:
    allowed = _BLOCKS_BY_ROLE.get(role) if isinstance(role, str) else None
    if allowed is None:
        yield Breach("role.known", message_index, None, repr(role))
        return
    if not blocks:
        yield Breach("content.empty", message_index, None, "no blocks")
    for index, block in enumerate(blocks):
        kind = _kind(block)
        if kind not in allowed:
            yield Breach("block.known", message_index, index, kind or repr(block.get("type")))
        elif flaw := _known_block_flaw(block):
            yield Breach(f"block.{kind}", message_index, index, flaw)


def _kind(block: _Block) -> str:
    """Return the type of a block, or an empty string if it is not text."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def is_blank(block: Any) -> bool:
    """Return whether a block is an empty or blank text."""
    fields = as_object(block) or {}
    text = fields.get("text")
    return fields.get("type") == "text" and not (isinstance(text, str) and text.strip())


def block_flaw(block: _Block, role: str) -> str:
    """Return why the API would reject a block in a message with this role, or an empty string."""
    if _kind(block) in _BLOCKS_BY_ROLE.get(role, ()):
        return _known_block_flaw(block)
    return f"a block of type {block.get('type')!r}"


def _known_block_flaw(block: _Block) -> str:
    match block.get("type"):
        case "text":
            return "text is empty" if is_blank(block) else ""
        case "thinking":
            # Only the API can check whether a signature matches its thinking.
            is_signed = _is_non_empty_text(block.get("signature")) and isinstance(block.get("thinking"), str)
            return "" if is_signed else "no signature"
        case "redacted_thinking":
            return "" if _is_non_empty_text(block.get("data")) else "no data"
        case "image":
            return image_flaw(block.get("source"))[0]
        case "tool_use" | "server_tool_use":
            has_names = _is_non_empty_text(block.get("id")) and _is_non_empty_text(block.get("name"))
            return "" if has_names and as_object(block.get("input")) is not None else _CALL_FLAW
        case "document":
            return _document_flaw(block.get("source"))
        case "tool_result":
            return next(result_flaws(block), ("", ""))[1]
        case _:
            return ""


def _is_non_empty_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _document_flaw(source: Any) -> str:
    fields = as_object(source)
    if fields is None:
        return "no source"
    kind = fields.get("type")
    if kind == "base64":
        data = fields.get("data")
        is_valid = _is_non_empty_text(data) and decoded_size(str(data)) is not None
        return "" if is_valid else "not base64"
    field = _DOCUMENT_SOURCES.get(kind) if isinstance(kind, str) else None
    return "" if field is not None and fields.get(field) else f"a source of type {kind!r}"


def result_flaws(result: _Block) -> Iterator[tuple[str, str]]:
    """Yield the flaws of a tool result: the type of the inner block and a description."""
    if not _is_non_empty_text(result.get("tool_use_id")):
        yield "tool_result", "no tool call ID"
    if not isinstance(result.get("is_error"), bool | None):
        yield "tool_result", "is_error is not a boolean"
    content = result.get("content")
    if content is None or isinstance(content, str):
        return
    items = as_list(content)
    if items is None:
        yield "tool_result", "content is neither text nor blocks"
    for item in items or ():
        block = as_object(item) or {}
        kind = _kind(block)
        flaw = _known_block_flaw(block) if kind in _RESULT_BLOCKS else f"contains {block.get('type')!r}"
        if flaw:
            yield kind, flaw


def _pairing_breaches(index: int, pairing: CallPairing) -> Iterator[Breach]:
    for call in pairing.unanswered:
        yield Breach("tool_use.answered", index - 1, None, call)
    for result in pairing.results:
        if not result.is_called:
            yield Breach("tool_result.called", index, result.number, result.call_id)
        elif result.is_repeated:
            yield Breach("tool_result.once", index, result.number, result.call_id)
    if any(result.index != result.number for result in pairing.results):
        yield Breach("tool_result.first", index, None, "results must come before other blocks")
    for call in pairing.repeated_calls:
        yield Breach("tool_use.unique", index, None, call)


def unpaired_server_blocks(blocks: list[_Block]) -> list[int]:
    """Return the indexes of server tool calls without a result in their message, and of results without a call."""
    calls = {str(block.get("id")) for block in blocks if _kind(block) in _SERVER_CALLS}
    results = {str(block.get("tool_use_id")) for block in blocks if _kind(block).endswith("_tool_result")}
    return [
        index
        for index, block in enumerate(blocks)
        if (_kind(block) in _SERVER_CALLS and str(block.get("id")) not in results)
        or (_kind(block).endswith("_tool_result") and str(block.get("tool_use_id")) not in calls)
    ]


def is_prompt(message: _Message) -> bool:
    """Return whether a message is a prompt: it starts a turn and has no tool results."""
    return message["role"] == "user" and all(block.get("type") != "tool_result" for block in blocks_of(message))


def answer_without_thinking(messages: list[_Message]) -> int | None:
    """Return the index of the current turn's first answer, if it has no thinking and the turn has tool calls.

    With a thinking budget, the API rejects such a turn unless thinking was off for that answer.
    """
    start = max((index + 1 for index, message in enumerate(messages) if is_prompt(message)), default=0)
    answers = [index for index in range(start, len(messages)) if messages[index]["role"] == "assistant"]
    has_calls = any(block.get("type") == "tool_use" for index in answers for block in blocks_of(messages[index]))
    return answers[0] if has_calls and blocks_of(messages[answers[0]])[0].get("type") not in THINKING_TYPES else None


def fix_block(block: _Block, role: str) -> _Block | None:
    """Return a valid replacement for `block`, or None to omit it."""
    kind = _kind(block)
    if kind not in _BLOCKS_BY_ROLE.get(role, ()):
        return None
    flaw = _known_block_flaw(block)
    if not flaw and not (kind == "tool_result" and error_result_flaw(block)):
        return block
    match kind:
        case "image":
            return {"type": "text", "text": IMAGE_NOTE.format(flaw)}
        case "document":
            return {"type": "text", "text": _DOCUMENT_NOTE.format(flaw)}
        case "tool_use":
            name = block.get("name")
            fixed = {"id": _call_id(block.get("id")), "name": name if _is_non_empty_text(name) else "unknown"}
            return {**block, **fixed, "input": _input_object(block.get("input"))}
        case "tool_result":
            return _fix_result(block)
        case _:
            return None


def _call_id(value: Any) -> str:
    """Return a valid call ID; equal invalid values map to equal IDs."""
    if _is_non_empty_text(value):
        return str(value)
    return f"toolu_{''.join(character for character in repr(value) if character.isascii() and character.isalnum())}"


def _input_object(value: Any) -> _Block:
    """Return the input of a call as an object: parsed from text, or wrapped under a key."""
    parsed = decode_lenient(value.encode("utf-8", "replace")) if isinstance(value, str) else value
    fields = as_object(parsed)
    if fields is not None:
        return fields
    return {} if value is None else {"value": value}


def _fix_result(block: _Block) -> _Block:
    fixed = {**block, "tool_use_id": _call_id(block.get("tool_use_id"))}
    if not isinstance(fixed.get("is_error"), bool | None):
        del fixed["is_error"]
    if any(result_flaws(fixed)):
        fixed["content"] = _fix_content(block.get("content"))
    if error_result_flaw(fixed):
        fixed["content"] = _as_text_blocks(as_list(fixed.get("content")) or [])
    return fixed


def error_result_flaw(result: _Block) -> Literal["", "empty", "not text"]:
    """Return the flaw of the content of an error result, which must be text."""
    content = result.get("content")
    if result.get("is_error") is not True or (isinstance(content, str) and content):
        return ""
    inner = [as_object(item) or {} for item in as_list(content) or ()]
    if not inner:
        return "empty"
    return "not text" if any(item.get("type") != "text" for item in inner) else ""


def _as_text_blocks(content: list[Any]) -> list[_Block]:
    blocks = [as_object(item) or {} for item in content]
    text_blocks = [
        block
        if block.get("type") == "text"
        else {"type": "text", "text": f"[{block.get('type')} omitted from an error result]"}
        for block in blocks
    ]
    return text_blocks or [{"type": "text", "text": NO_CONTENT}]


def _fix_content(content: Any) -> list[_Block]:
    items = as_list(content) or ()
    blocks = [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
    inner = [block for item in blocks if (block := as_object(item)) and _kind(block) in _RESULT_BLOCKS]
    fixed = [block for item in inner if (block := _fix_inner_block(item)) is not None]
    return fixed or [{"type": "text", "text": NO_CONTENT}]


def _fix_inner_block(block: _Block) -> _Block | None:
    # Block types allowed only inside a result are sent unchanged.
    return fix_block(block, "user") if _kind(block) in _BLOCKS_BY_ROLE["user"] else block


def blocks_of(message: _Message) -> list[_Block]:
    """Return the blocks of a message; plain text becomes one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_object(item) or {} for item in as_list(content) or ()]
