"""The rules for the blocks of a message: their shapes, and what may be in them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steno.format.values import as_list, as_object
from steno.model.server.shapes import (
    Check,
    anything,
    each,
    either,
    flag,
    maybe,
    objects,
    one_of,
    shaped,
    string,
    tagged,
)
from steno.session.resume.images import (
    MANY_IMAGES,
    MAX_BYTES,
    MAX_SIDE,
    MAX_SIDE_OF_MANY,
    ImageHeader,
    decoded_size,
    read_header,
)

__all__ = ["CACHE", "CALL_ID", "SYSTEM", "blocks_in", "content", "image_problems", "text_problems"]

CACHE: Final = maybe(shaped({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")}))
CALL_ID: Final = r"[a-zA-Z0-9_-]+"
_NAME: Final = string(shortest=1)
_MARKED: Final[Mapping[str, Check]] = {"cache_control": CACHE}
_TEXT: Final = shaped(
    {"type": anything, "text": string()}, {**_MARKED, "citations": maybe(each(objects))}
)
SYSTEM: Final = either(str, each(tagged({"text": _TEXT})))
"""A system prompt."""
_URL: Final = shaped({"type": anything, "url": string(shortest=1)})
_FILE: Final = shaped({"type": anything, "file_id": string(shortest=1)})
_PDF: Final = "JVBER"  # what `%PDF` is in base64


def _image_data(value: Any, path: str) -> Iterator[str]:
    yield from string(shortest=1)(value, path)
    size = decoded_size(value) if isinstance(value, str) else 0
    if size is None:
        yield f"{path}: Invalid base64 data"
    elif size > MAX_BYTES:
        where = path.removesuffix(".data")
        yield f"{where}: image exceeds 5 MB maximum: {size} bytes > {MAX_BYTES} bytes"


def _document_data(value: Any, path: str) -> Iterator[str]:
    yield from string(shortest=1)(value, path)
    if isinstance(value, str) and decoded_size(value) is None:
        yield f"{path}: Invalid base64 data"
    elif isinstance(value, str) and not value.startswith(_PDF):
        yield f"{path}: The PDF specified was not valid."


_PICTURES: Final = one_of("image/jpeg", "image/png", "image/gif", "image/webp")
_IMAGE: Final = shaped(
    {
        "type": anything,
        "source": tagged(
            {
                "base64": shaped({"type": anything, "media_type": _PICTURES, "data": _image_data}),
                "url": _URL,
                "file": _FILE,
            }
        ),
    },
    {**_MARKED, "transformations": maybe(objects)},
)
_DOCUMENT: Final = shaped(
    {
        "type": anything,
        "source": tagged(
            {
                "base64": shaped(
                    {
                        "type": anything,
                        "media_type": one_of("application/pdf"),
                        "data": _document_data,
                    }
                ),
                "text": shaped(
                    {
                        "type": anything,
                        "media_type": one_of("text/plain"),
                        "data": string(shortest=1),
                    }
                ),
                "content": shaped({"type": anything, "content": anything}),
                "url": _URL,
                "file": _FILE,
            }
        ),
    },
    {
        **_MARKED,
        "citations": maybe(objects),
        "context": maybe(string()),
        "title": maybe(string()),
    },
)
_SEARCH: Final = shaped(
    {
        "type": anything,
        "source": string(shortest=1),
        "title": string(),
        "content": each(tagged({"text": _TEXT})),
    },
    {**_MARKED, "citations": maybe(objects)},
)
_INSIDE: Final = tagged(
    {
        "text": _TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "search_result": _SEARCH,
        "tool_reference": shaped({"type": anything, "tool_name": _NAME}, _MARKED),
        "browser_state": shaped({"type": anything}, loose=True),
    }
)
_CALL: Final = {**_MARKED, "caller": objects, "toolset_name": maybe(string())}
_RESULT_OF: Final = shaped(
    {"type": anything, "tool_use_id": _NAME, "content": anything}, loose=True
)
_FOUND: Final = shaped(
    {
        "type": one_of("web_search_result"),
        "url": string(shortest=1),
        "title": string(),
        "encrypted_content": string(shortest=1),
    },
    {"page_age": maybe(string())},
)
_NOT_FOUND: Final = shaped(
    {
        "type": one_of("web_search_tool_result_error"),
        "error_code": one_of(
            "invalid_tool_input",
            "unavailable",
            "max_uses_exceeded",
            "too_many_requests",
            "query_too_long",
            "request_too_large",
        ),
    }
)


def _search_results(value: Any, path: str) -> Iterator[str]:
    check = each(_FOUND) if as_list(value) is not None else _NOT_FOUND
    yield from check(value, path)


_BLOCKS: Final[dict[str, Check]] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "search_result": _SEARCH,
    "thinking": shaped({"type": anything, "thinking": string(), "signature": string(shortest=1)}),
    "redacted_thinking": shaped({"type": anything, "data": string(shortest=1)}),
    "tool_use": shaped(
        {"type": anything, "id": string(CALL_ID), "name": _NAME, "input": objects}, _CALL
    ),
    "tool_result": shaped(
        {"type": anything, "tool_use_id": string(CALL_ID)},
        {
            **_MARKED,
            "content": either(str, each(_INSIDE)),
            "is_error": flag,
            "toolset_name": maybe(string()),
        },
    ),
    "server_tool_use": shaped(
        {"type": anything, "id": string(CALL_ID), "name": _NAME, "input": objects}, _CALL
    ),
    "web_search_tool_result": shaped(
        {"type": anything, "tool_use_id": string(r"srvtoolu_\w+"), "content": _search_results},
        {**_MARKED, "caller": objects},
    ),
    "web_fetch_tool_result": _RESULT_OF,
    "code_execution_tool_result": _RESULT_OF,
    "bash_code_execution_tool_result": _RESULT_OF,
    "text_editor_code_execution_tool_result": _RESULT_OF,
    "tool_search_tool_result": _RESULT_OF,
    "mcp_tool_use": shaped(
        {"type": anything, "id": string(CALL_ID), "name": _NAME, "input": objects}, loose=True
    ),
    "mcp_tool_result": _RESULT_OF,
    "container_upload": shaped({"type": anything, "file_id": string(shortest=1)}, _MARKED),
    "tool_addition": shaped({"type": anything}, loose=True),
    "tool_removal": shaped({"type": anything}, loose=True),
}
content: Final = either(str, each(tagged(_BLOCKS)))
"""What a message may hold."""


def blocks_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a message; plain text is one block."""
    held = message.get("content")
    if isinstance(held, str):
        return [{"type": "text", "text": held}] if held else []
    return [as_object(item) or {} for item in as_list(held) or ()]


def text_problems(block: dict[str, Any], path: str) -> Iterator[str]:
    """Yield what is wrong with the words of a block whose shape is right."""
    if block.get("type") == "tool_result":
        inner = as_list(block.get("content")) or []
        yield from _failed_result(block, inner, path)
        for place, item in enumerate(inner):
            yield from text_problems(item, f"{path}.content.{place}")
    elif block.get("type") == "text":
        words = block.get("text") or ""
        if not words and block.get("cache_control"):
            yield f"{path}.text: cache_control cannot be set for empty text blocks"
        elif not words:
            yield "messages: text content blocks must be non-empty"
        elif not words.strip():
            yield "messages: text content blocks must contain non-whitespace text"


def _failed_result(block: dict[str, Any], inner: list[Any], path: str) -> Iterator[str]:
    if block.get("is_error") is not True:
        return
    if not block.get("content"):
        yield f"{path}.tool_result: content cannot be empty if `is_error` is true"
    if any(item.get("type") != "text" for item in inner):
        yield f'{path}.tool_result: all content must be type "text" if `is_error` is true'


def image_problems(images: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield what is wrong with the pictures of a request, each given with its path."""
    most = MAX_SIDE_OF_MANY if len(images) > MANY_IMAGES else MAX_SIDE
    for path, block in images:
        source = as_object(block.get("source")) or {}
        if source.get("type") != "base64":
            continue
        header = read_header(str(source.get("data")))
        if header is None:
            yield f"{path}.image.source.base64.data: Could not process image"
        else:
            yield from _picture(header, source, f"{path}.image.source.base64", most)


def _picture(header: ImageHeader, source: dict[str, Any], path: str, most: int) -> Iterator[str]:
    said = source.get("media_type")
    if header.media_type != said:
        yield (
            f"{path}: The image was specified using the {said} media type, but the image "
            f"appears to be a {header.media_type} image"
        )
    if header.side > most:
        many = " for many-image requests" if most == MAX_SIDE_OF_MANY else ""
        yield (
            f"{path}.data: At least one of the image dimensions exceed max allowed size"
            f"{many}: {most} pixels"
        )
