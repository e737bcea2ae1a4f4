"""The rules of the Messages API: breaches in a conversation, their fixes, and image headers.

An image header gives kind, width and height from the first bytes of its base64.
"""

import binascii
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, Literal

import msgspec

from steno.format.lenient_json import as_list, as_object, decode_lenient, describe_value
from steno.format.message import THINKING_TYPES

MEDIA_TYPES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
"""The kinds of image the API takes."""
MAX_BYTES: Final = 5 << 20
"""The most bytes of one image."""
MAX_SIDE: Final = 8_000
"""The most pixels of a side."""
MANY_IMAGES: Final = 20
"""Beyond so many images in one request the sides may only be `MAX_SIDE_AMONG_MANY` long."""
MAX_SIDE_AMONG_MANY: Final = 2_000

_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_MAX_PADDING: Final = 2
_FIRST_WINDOW: Final = 4_096  # a multiple of four, so that it can be decoded alone
_GROWTH: Final = 16
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER: Final = 24
_GIF_HEADER: Final = 10
_WEBP_HEADER: Final = 30
_MARKER_PREFIX: Final = 0xFF
_START_OF_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MARKERS_WITHOUT_LENGTH: Final = frozenset((0x01, *range(0xD0, 0xD9)))  # JPEG markers that no length follows


def max_image_side(image_count: int) -> int:
    """Return the most pixels of a side in a request with so many images."""
    return MAX_SIDE_AMONG_MANY if image_count > MANY_IMAGES else MAX_SIDE


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
    padding = len(data) - len(data.rstrip("="))
    if padding > _MAX_PADDING or not _is_base64(data, len(data) - padding):
        return None
    return len(data) // 4 * 3 - padding


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
        is_complete = window >= len(data)
        if header is None or header.width or is_complete:
            return header
        window *= _GROWTH


# Not imagesize: it needs a file or all bytes, where this reads the first bytes of base64 text, and it
# accepts formats that the API refuses.
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
    """Go from marker to marker up to the frame; what lies before it may be long."""
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
"""What a tool result may hold."""
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
"""Every kind of block the API knows, wherever it may stand."""
BLOCK_ROLES: Final = {kind: role for role, kinds in _BLOCKS_BY_ROLE.items() for kind in kinds if kind != "text"}
"""The role of every kind of block; text may be in a message of any."""
_SERVER_CALLS: Final = frozenset(("server_tool_use", "mcp_tool_use"))
"""Calls that the server makes itself: their results are in the same message."""
NO_CONTENT: Final = "(no content)"
"""What stands in a message of which nothing else is left."""
_CALL_FLAW: Final = "id, name or input"
IMAGE_NOTE: Final = "[image left out: {}]"
_DOCUMENT_NOTE: Final = "[document left out: {}]"
_DOCUMENT_SOURCES: Final = {"text": "data", "content": "content", "url": "url", "file": "file_id"}
"""The kinds of source a document has beside base64, and where each keeps it."""

_Block = dict[str, Any]
_Message = dict[str, Any]


class Breach(msgspec.Struct, frozen=True):
    """A rule that a message breaks."""

    rule: str
    message: int
    block: int | None
    detail: str


def find_breaches(messages: list[_Message]) -> list[Breach]:
    """Return every breach of the API's rules, in order; an empty list means it can be sent."""
    problems: list[Breach] = []
    *pairings, end = pair_calls(map(blocks_of, messages))
    for index, (message, pairing) in enumerate(zip(messages, pairings, strict=True)):
        problems.extend(_block_breaches(index, message.get("role"), blocks_of(message)))
        problems.extend(_pairing_breaches(index, pairing))
    if end.unanswered:
        problems.append(Breach("tool_use.answered", len(messages) - 1, None, ", ".join(end.unanswered)))
    if messages and messages[0].get("role") != "user":
        problems.insert(0, Breach("role.first", 0, None, "the first message must be the user's"))
    return problems


class ToolResultPlace(msgspec.Struct, frozen=True):
    """A tool result in a message, and how it fits the calls of the message before."""

    call_id: str
    index: int
    """Which block of the message it is."""
    number: int
    """Which result of the message it is."""
    is_called: bool
    """Whether the message before has the call."""
    is_repeated: bool
    """Whether an earlier result of the message has the same call."""


class CallPairing(msgspec.Struct, frozen=True):
    """How the results of a message fit the calls of the message before, and which ids its own calls repeat."""

    unanswered: list[str]
    results: list[ToolResultPlace]
    repeated_calls: list[str]


def pair_calls(contents: Iterable[list[_Block]]) -> Iterator[CallPairing]:
    """Yield the pairing of every message, given by its blocks, and that of the end behind the last."""
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
    """Return the type of a block; nothing where it is no text."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def is_blank(block: Any) -> bool:
    """Whether a block is text that says nothing."""
    fields = as_object(block) or {}
    text = fields.get("text")
    return fields.get("type") == "text" and not (isinstance(text, str) and text.strip())


def block_flaw(block: _Block, role: str) -> str:
    """Return why the API would refuse a block in a message of that role, or nothing."""
    if _kind(block) in _BLOCKS_BY_ROLE.get(role, ()):
        return _known_block_flaw(block)
    return f"a block of type {block.get('type')!r}"


def _known_block_flaw(block: _Block) -> str:
    match block.get("type"):
        case "text":
            return "text is empty" if is_blank(block) else ""
        case "thinking":
            # Whether a signature fits its thinking, only the API can tell.
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
    """Yield what is wrong with a tool result: the type of the block inside it, and the flaw."""
    if not _is_non_empty_text(result.get("tool_use_id")):
        yield "tool_result", "no id of a call"
    if not isinstance(result.get("is_error"), bool | None):
        yield "tool_result", "is_error is no truth value"
    content = result.get("content")
    if content is None or isinstance(content, str):
        return
    items = as_list(content)
    if items is None:
        yield "tool_result", "content is neither text nor blocks"
    for item in items or ():
        block = as_object(item) or {}
        kind = _kind(block)
        flaw = _known_block_flaw(block) if kind in _RESULT_BLOCKS else f"holds {block.get('type')!r}"
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
    """Return the indexes of calls of the server's own tools without a result in their message, and the reverse."""
    calls = {str(block.get("id")) for block in blocks if _kind(block) in _SERVER_CALLS}
    results = {str(block.get("tool_use_id")) for block in blocks if _kind(block).endswith("_tool_result")}
    return [
        index
        for index, block in enumerate(blocks)
        if (_kind(block) in _SERVER_CALLS and str(block.get("id")) not in results)
        or (_kind(block).endswith("_tool_result") and str(block.get("tool_use_id")) not in calls)
    ]


def is_prompt(message: _Message) -> bool:
    """Whether a message is the user's own: it begins a turn and has no tool results."""
    return message["role"] == "user" and all(block.get("type") != "tool_result" for block in blocks_of(message))


def answer_without_thinking(messages: list[_Message]) -> int | None:
    """Return the index of the first answer of the current turn if the turn has calls and it starts without thinking.

    With thinking on a budget the API refuses such a turn, unless thinking was off when the answer was given.
    """
    start = max((index + 1 for index, message in enumerate(messages) if is_prompt(message)), default=0)
    answers = [index for index in range(start, len(messages)) if messages[index]["role"] == "assistant"]
    has_calls = any(block.get("type") == "tool_use" for index in answers for block in blocks_of(messages[index]))
    return answers[0] if has_calls and blocks_of(messages[answers[0]])[0].get("type") not in THINKING_TYPES else None


def fix_block(block: _Block, role: str) -> _Block | None:
    """Return a block that can be sent in place of `block`, None to leave it out."""
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
    """Return an id that is one; what was the same before is the same again."""
    if _is_non_empty_text(value):
        return str(value)
    return f"toolu_{''.join(character for character in repr(value) if character.isascii() and character.isalnum())}"


def _input_object(value: Any) -> _Block:
    """Return the input of a call as an object: as it was meant, or under a key of its own."""
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
    """Return what is wrong with the content of a result that is an error: it must be text."""
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
        else {"type": "text", "text": f"[{block.get('type')} left out of an error]"}
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
    # A block that may only stand inside a result is sent as it is.
    return fix_block(block, "user") if _kind(block) in _BLOCKS_BY_ROLE["user"] else block


def blocks_of(message: _Message) -> list[_Block]:
    """Return the blocks of a message; words alone are one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_object(item) or {} for item in as_list(content) or ()]
