"""JSON schema checks for blocks, tools and tool choice, with the error messages of the API.

A check takes a value and its path, and yields one message per problem.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from steno.format.lenient_json import as_list, as_object
from steno.session.resume.api_rules import (
    MAX_BYTES,
    MAX_SIDE_AMONG_MANY,
    ImageHeader,
    blocks_of,
    decoded_size,
    error_result_flaw,
    max_image_side,
    read_header,
)

Check: TypeAlias = Callable[[Any, str], Iterator[str]]
_NOT_AN_OBJECT: Final = "Input should be a valid dictionary"
_NOT_A_LIST: Final = "Input should be a valid list"


def any_value(value: Any, path: str) -> Iterator[str]:
    """Accept any value."""
    _ = value, path
    yield from ()


def text_value(pattern: str = "", *, min_length: int = 0) -> Check:
    """Return a check for strings that match a pattern."""
    regex = re.compile(pattern)

    def check(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield f"{path}: Input should be a valid string"
        elif len(value) < min_length:
            characters = "character" if min_length == 1 else "characters"
            yield f"{path}: String should have at least {min_length} {characters}"
        elif pattern and not regex.fullmatch(value):
            yield f"{path}: String should match pattern '^{pattern}$'"

    return check


def integer_value(minimum: int) -> Check:
    """Return a check for integers not below `minimum`."""

    def check(value: Any, path: str) -> Iterator[str]:
        is_whole = isinstance(value, float) and value.is_integer()
        if isinstance(value, bool) or not (isinstance(value, int) or is_whole):
            yield f"{path}: Input should be a valid integer"
        elif value < minimum:
            yield f"{path}: Input should be greater than or equal to {minimum}"

    return check


def number_value(minimum: float, maximum: float) -> Check:
    """Return a check for numbers in a range."""

    def check(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{path}: Input should be a valid number"
        elif not minimum <= value <= maximum:
            yield f"{path}: range: {minimum:g}..{maximum:g}"

    return check


def boolean_value(value: Any, path: str) -> Iterator[str]:
    """Check that a value is a boolean."""
    if not isinstance(value, bool):
        yield f"{path}: Input should be a valid boolean"


def enum_value(*values: str) -> Check:
    """Return a check for one of some strings."""
    quoted = [f"'{value}'" for value in values]
    alternatives = " or ".join((", ".join(quoted[:-1]), quoted[-1]) if quoted[1:] else quoted)

    def check(value: Any, path: str) -> Iterator[str]:
        if value not in values:
            yield f"{path}: Input should be {alternatives}"

    return check


def nullable(check: Check) -> Check:
    """Return a check that also accepts null."""

    def checked(value: Any, path: str) -> Iterator[str]:
        if value is not None:
            yield from check(value, path)

    return checked


def list_of(check: Check) -> Check:
    """Return a check for lists whose items pass a check."""

    def checked(value: Any, path: str) -> Iterator[str]:
        items = as_list(value)
        if items is None:
            yield f"{path}: {_NOT_A_LIST}"
        for place, item in enumerate(items or ()):
            yield from check(item, f"{path}.{place}")

    return checked


def text_or(plain: type[str], check: Check) -> Check:
    """Return a check for values that have a plain type or pass another check."""

    def checked(value: Any, path: str) -> Iterator[str]:
        if not isinstance(value, plain):
            yield from check(value, path)

    return checked


def any_object(value: Any, path: str) -> Iterator[str]:
    """Check that a value is an object; any keys are valid."""
    if as_object(value) is None:
        yield f"{path}: {_NOT_AN_OBJECT}"


def object_with(
    required: Mapping[str, Check], optional: Mapping[str, Check] | None = None, *, allow_extra: bool = False
) -> Check:
    """Return a check for objects with these keys; other keys are refused unless `allow_extra`."""
    checks = {**required, **(optional or {})}

    def check(value: Any, path: str) -> Iterator[str]:
        fields = as_object(value)
        if fields is None:
            yield f"{path}: {_NOT_AN_OBJECT}" if path else _NOT_AN_OBJECT
            return
        prefix = f"{path}." if path else ""
        for key, inner in checks.items():
            if key in fields:
                yield from inner(fields[key], f"{prefix}{key}")
            elif key in required:
                yield f"{prefix}{key}: Field required"
        for key in fields:
            if key not in checks and not allow_extra:
                yield f"{prefix}{key}: Extra inputs are not permitted"

    return check


def tagged_union(shapes: Mapping[str, Check], *, default: str = "") -> Check:
    """Return a check for objects whose `type` selects one of the shapes."""
    expected = ", ".join(f"'{name}'" for name in shapes)

    def check(value: Any, path: str) -> Iterator[str]:
        fields = as_object(value)
        if fields is None:
            yield f"{path}: {_NOT_AN_OBJECT}"
            return
        kind = fields.get("type", default or None)
        shape = shapes.get(kind) if isinstance(kind, str) else None
        if kind is None:
            yield f"{path}.type: Field required"
        elif shape is None:
            message = f"Input tag '{kind}' found using 'type'"
            yield f"{path}: {message} does not match any of the expected tags: {expected}"
        else:
            yield from shape(value, f"{path}.{kind}")

    return check


CACHE_CONTROL: Final = nullable(object_with({"type": enum_value("ephemeral")}, {"ttl": enum_value("5m", "1h")}))
CALL_ID_PATTERN: Final = r"[a-zA-Z0-9_-]+"
_TEXT_NAME: Final = text_value(min_length=1)
_WITH_CACHE_CONTROL: Final[Mapping[str, Check]] = {"cache_control": CACHE_CONTROL}
_TEXT: Final = object_with(
    {"type": any_value, "text": text_value()}, {**_WITH_CACHE_CONTROL, "citations": nullable(list_of(any_object))}
)
SYSTEM_PROMPT: Final = text_or(str, list_of(tagged_union({"text": _TEXT})))
"""Check for a system prompt."""
_URL: Final = object_with({"type": any_value, "url": text_value(min_length=1)})
_FILE: Final = object_with({"type": any_value, "file_id": text_value(min_length=1)})
_PDF: Final = "JVBER"  # base64 of `%PDF`


def _check_image_data(value: Any, path: str) -> Iterator[str]:
    yield from text_value(min_length=1)(value, path)
    size = decoded_size(value) if isinstance(value, str) else 0
    if size is None:
        yield f"{path}: Invalid base64 data"
    elif size > MAX_BYTES:
        block_path = path.removesuffix(".data")
        yield f"{block_path}: image exceeds 5 MB maximum: {size} bytes > {MAX_BYTES} bytes"


def _check_document_data(value: Any, path: str) -> Iterator[str]:
    yield from text_value(min_length=1)(value, path)
    if isinstance(value, str) and decoded_size(value) is None:
        yield f"{path}: Invalid base64 data"
    elif isinstance(value, str) and not value.startswith(_PDF):
        yield f"{path}: The PDF specified was not valid."


_IMAGE_TYPES: Final = enum_value("image/jpeg", "image/png", "image/gif", "image/webp")
_IMAGE: Final = object_with(
    {
        "type": any_value,
        "source": tagged_union(
            {
                "base64": object_with({"type": any_value, "media_type": _IMAGE_TYPES, "data": _check_image_data}),
                "url": _URL,
                "file": _FILE,
            }
        ),
    },
    {**_WITH_CACHE_CONTROL, "transformations": nullable(any_object)},
)
_DOCUMENT: Final = object_with(
    {
        "type": any_value,
        "source": tagged_union(
            {
                "base64": object_with(
                    {"type": any_value, "media_type": enum_value("application/pdf"), "data": _check_document_data}
                ),
                "text": object_with(
                    {"type": any_value, "media_type": enum_value("text/plain"), "data": text_value(min_length=1)}
                ),
                "content": object_with({"type": any_value, "content": any_value}),
                "url": _URL,
                "file": _FILE,
            }
        ),
    },
    {
        **_WITH_CACHE_CONTROL,
        "citations": nullable(any_object),
        "context": nullable(text_value()),
        "title": nullable(text_value()),
    },
)
_SEARCH_RESULT_BLOCK: Final = object_with(
    {
        "type": any_value,
        "source": text_value(min_length=1),
        "title": text_value(),
        "content": list_of(tagged_union({"text": _TEXT})),
    },
    {**_WITH_CACHE_CONTROL, "citations": nullable(any_object)},
)
_RESULT_CONTENT: Final = tagged_union(
    {
        "text": _TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "search_result": _SEARCH_RESULT_BLOCK,
        "tool_reference": object_with({"type": any_value, "tool_name": _TEXT_NAME}, _WITH_CACHE_CONTROL),
        "browser_state": object_with({"type": any_value}, allow_extra=True),
    }
)
_CALL_FIELDS: Final = {**_WITH_CACHE_CONTROL, "caller": any_object, "toolset_name": nullable(text_value())}
_SERVER_RESULT: Final = object_with(
    {"type": any_value, "tool_use_id": _TEXT_NAME, "content": any_value}, allow_extra=True
)
_SEARCH_RESULT: Final = object_with(
    {
        "type": enum_value("web_search_result"),
        "url": text_value(min_length=1),
        "title": text_value(),
        "encrypted_content": text_value(min_length=1),
    },
    {"page_age": nullable(text_value())},
)
_SEARCH_ERROR: Final = object_with(
    {
        "type": enum_value("web_search_tool_result_error"),
        "error_code": enum_value(
            "invalid_tool_input",
            "unavailable",
            "max_uses_exceeded",
            "too_many_requests",
            "query_too_long",
            "request_too_large",
        ),
    }
)


def _check_search_results(value: Any, path: str) -> Iterator[str]:
    check = list_of(_SEARCH_RESULT) if as_list(value) is not None else _SEARCH_ERROR
    yield from check(value, path)


_BLOCKS: Final[dict[str, Check]] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT_BLOCK,
    "thinking": object_with({"type": any_value, "thinking": text_value(), "signature": text_value(min_length=1)}),
    "redacted_thinking": object_with({"type": any_value, "data": text_value(min_length=1)}),
    "tool_use": object_with(
        {"type": any_value, "id": text_value(CALL_ID_PATTERN), "name": _TEXT_NAME, "input": any_object}, _CALL_FIELDS
    ),
    "tool_result": object_with(
        {"type": any_value, "tool_use_id": text_value(CALL_ID_PATTERN)},
        {
            **_WITH_CACHE_CONTROL,
            "content": text_or(str, list_of(_RESULT_CONTENT)),
            "is_error": boolean_value,
            "toolset_name": nullable(text_value()),
        },
    ),
    "server_tool_use": object_with(
        {"type": any_value, "id": text_value(CALL_ID_PATTERN), "name": _TEXT_NAME, "input": any_object}, _CALL_FIELDS
    ),
    "web_search_tool_result": object_with(
        {"type": any_value, "tool_use_id": text_value(r"srvtoolu_\w+"), "content": _check_search_results},
        {**_WITH_CACHE_CONTROL, "caller": any_object},
    ),
    "web_fetch_tool_result": _SERVER_RESULT,
    "code_execution_tool_result": _SERVER_RESULT,
    "bash_code_execution_tool_result": _SERVER_RESULT,
    "text_editor_code_execution_tool_result": _SERVER_RESULT,
    "tool_search_tool_result": _SERVER_RESULT,
    "mcp_tool_use": object_with(
        {"type": any_value, "id": text_value(CALL_ID_PATTERN), "name": _TEXT_NAME, "input": any_object},
        allow_extra=True,
    ),
    "mcp_tool_result": _SERVER_RESULT,
    "container_upload": object_with({"type": any_value, "file_id": text_value(min_length=1)}, _WITH_CACHE_CONTROL),
    "tool_addition": object_with({"type": any_value}, allow_extra=True),
    "tool_removal": object_with({"type": any_value}, allow_extra=True),
}
MESSAGE_CONTENT: Final = text_or(str, list_of(tagged_union(_BLOCKS)))
"""Check for the content of a message."""


def message_blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a message; an empty string has none."""
    return [] if message.get("content") == "" else blocks_of(message)


_ERROR_RESULT_FLAWS: Final = {
    "empty": "content cannot be empty if `is_error` is true",
    "not text": 'all content must be type "text" if `is_error` is true',
}


def check_text(block: dict[str, Any], path: str) -> Iterator[str]:
    """Yield the problems with the text of a valid block."""
    if block.get("type") == "tool_result":
        if flaw := error_result_flaw(block):
            yield f"{path}.tool_result: {_ERROR_RESULT_FLAWS[flaw]}"
        for index, item in enumerate(as_list(block.get("content")) or ()):
            yield from check_text(item, f"{path}.content.{index}")
    elif block.get("type") == "text":
        text = block.get("text") or ""
        if not text and block.get("cache_control"):
            yield f"{path}.text: cache_control cannot be set for empty text blocks"
        elif not text:
            yield "messages: text content blocks must be non-empty"
        elif not text.strip():
            yield "messages: text content blocks must contain non-whitespace text"


def check_images(images: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield the problems with the images of a request, given with their paths."""
    max_side = max_image_side(len(images))
    for path, block in images:
        source = as_object(block.get("source")) or {}
        if source.get("type") != "base64":
            continue
        header = read_header(str(source.get("data")))
        if header is None:
            yield f"{path}.image.source.base64.data: Could not process image"
        else:
            yield from _check_image(header, source, f"{path}.image.source.base64", max_side)


def _check_image(header: ImageHeader, source: dict[str, Any], path: str, max_side: int) -> Iterator[str]:
    declared = source.get("media_type")
    if header.media_type != declared:
        yield (
            f"{path}: The image was specified using the {declared} media type, but the image "
            f"appears to be a {header.media_type} image"
        )
    if header.side > max_side:
        suffix = " for many-image requests" if max_side == MAX_SIDE_AMONG_MANY else ""
        yield (f"{path}.data: At least one of the image dimensions exceed max allowed size{suffix}: {max_side} pixels")


_TOOL_NAME: Final = text_value(r"[a-zA-Z0-9_-]{1,128}")
_SCHEMA: Final = object_with(
    {"type": enum_value("object")},
    {"properties": nullable(any_object), "required": nullable(list_of(text_value()))},
    allow_extra=True,
)
_CUSTOM_TOOL: Final = object_with(
    {"name": _TOOL_NAME, "input_schema": _SCHEMA},
    {
        "type": any_value,
        "description": text_value(),
        "cache_control": CACHE_CONTROL,
        "allowed_callers": list_of(text_value()),
        "defer_loading": boolean_value,
        "eager_input_streaming": nullable(boolean_value),
        "input_examples": list_of(any_object),
        "strict": boolean_value,
    },
)
_SERVER_TOOL_TYPE: Final = re.compile(
    r"(bash|text_editor|computer|web_search|web_fetch|code_execution|memory|advisor"
    r"|tool_search_tool_bm25|tool_search_tool_regex|browser_toolset|computer_toolset)_\d{8}"
    r"|mcp_toolset|tool_search_tool_(bm25|regex)"
)
_WEB_SEARCH_TOOL: Final = object_with(
    {"type": any_value, "name": enum_value("web_search")},
    {
        "max_uses": nullable(integer_value(1)),
        "allowed_domains": nullable(list_of(text_value(min_length=1))),
        "blocked_domains": nullable(list_of(text_value(min_length=1))),
        "user_location": nullable(
            object_with(
                {"type": enum_value("approximate")},
                {key: nullable(text_value()) for key in ("city", "country", "region", "timezone")},
            )
        ),
        "cache_control": CACHE_CONTROL,
        "allowed_callers": list_of(text_value()),
        "defer_loading": boolean_value,
        "strict": boolean_value,
    },
)
_NAMELESS_TOOL_TYPE: Final = re.compile(r"mcp_toolset|(browser|computer)_toolset_\d{8}")
_DOMAINS: Final = ("allowed_domains", "blocked_domains")
_PARALLEL_OPTION: Final = {"disable_parallel_tool_use": boolean_value}
TOOL_CHOICE: Final = tagged_union(
    {
        "auto": object_with({"type": any_value}, _PARALLEL_OPTION),
        "any": object_with({"type": any_value}, _PARALLEL_OPTION),
        "tool": object_with({"type": any_value, "name": text_value(min_length=1)}, _PARALLEL_OPTION),
        "none": object_with({"type": any_value}),
    }
)
"""Check for the tool choice."""
_THINKING_OPTIONS: Final = {
    "display": nullable(enum_value("summarized", "omitted", "updates")),
    "block_binding": nullable(any_object),
}
THINKING_CONFIG: Final = tagged_union(
    {
        "enabled": object_with({"type": any_value, "budget_tokens": integer_value(1024)}, _THINKING_OPTIONS),
        "adaptive": object_with({"type": any_value}, _THINKING_OPTIONS),
        "between_tools": object_with({"type": any_value}),
        "disabled": object_with({"type": any_value}),
    }
)
"""Check for the thinking configuration."""


def check_tool_shapes(value: Any, path: str) -> Iterator[str]:
    """Yield the problems with the shapes of tools."""
    yield from list_of(_check_tool)(value, path)


def _check_tool(value: Any, path: str) -> Iterator[str]:
    fields = as_object(value)
    kind = "custom" if fields is None else fields.get("type") or "custom"
    if kind == "custom":
        yield from _CUSTOM_TOOL(value, f"{path}.custom" if fields is not None else path)
    elif not isinstance(kind, str) or not _SERVER_TOOL_TYPE.fullmatch(kind):
        message = f"Input tag '{kind}' found using 'type'"
        yield f"{path}: {message} does not match any of the expected tags: 'custom', …"
    elif kind.startswith("web_search_"):
        yield from _check_web_search(value, f"{path}.{kind}")
    elif not _NAMELESS_TOOL_TYPE.fullmatch(kind):
        yield from object_with({"name": _TOOL_NAME}, allow_extra=True)(value, f"{path}.{kind}")


def _check_web_search(value: Any, path: str) -> Iterator[str]:
    yield from _WEB_SEARCH_TOOL(value, path)
    fields = as_object(value) or {}
    domains = [str(domain_value) for key in _DOMAINS for domain_value in as_list(fields.get(key)) or ()]
    if all(as_list(fields.get(key)) for key in _DOMAINS):
        yield f"{path}: Only one of `allowed_domains` and `blocked_domains` can be specified"
    for domain in domains:
        # A path is allowed after the host; a scheme is not.
        if not re.fullmatch(r"[a-zA-Z0-9*-]+(\.[a-zA-Z0-9*-]+)+(/\S*)?", domain):
            yield f"{path}: Invalid domain: {domain}"


def check_tools(body: dict[str, Any]) -> Iterator[str]:
    """Yield the conflicts between tools, tool choice and thinking."""
    tool_list = [as_object(tool_value) or {} for tool_value in as_list(body.get("tools")) or ()]
    names = [str(tool["name"]) for tool in tool_list if tool.get("name")]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    if tool_list and all(tool.get("defer_loading") for tool in tool_list):
        yield "At least one tool must have defer_loading=false."
    choice = as_object(body.get("tool_choice"))
    if choice is None:
        return
    if not tool_list and choice.get("type") != "none":
        yield "tool_choice: tool_choice may only be specified while providing tools."
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"tool_choice: Tool '{choice.get('name')}' not found in provided tools"
    has_thinking = (as_object(body.get("thinking")) or {}).get("type") in ("enabled", "adaptive")
    if has_thinking and choice.get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."
