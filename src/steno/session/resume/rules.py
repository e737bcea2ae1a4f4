"""The rules of the Messages API: which breaches a conversation holds, and how to mend them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from steno.format.loose import loose
from steno.format.values import as_list, as_object
from steno.session.resume.images import decoded_size, image_flaw

__all__ = [
    "KNOWN_BLOCKS",
    "NOTHING",
    "NO_IMAGE",
    "Breach",
    "block_flaw",
    "blocks_of",
    "breaches",
    "fixed_block",
    "is_blank",
    "result_flaws",
]

_INSIDE: Final = frozenset(("text", "image", "document", "search_result", "tool_reference"))
"""What a tool result may hold."""
_BLOCKS: Final = {
    "user": frozenset(
        ("text", "image", "document", "tool_result", "search_result", "container_upload")
    ),
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
KNOWN_BLOCKS: Final = _INSIDE.union(*_BLOCKS.values())
"""Every kind of block the API knows, wherever it may stand."""
NOTHING: Final = "(no content)"
"""What stands in a message of which nothing else is left."""
_CALL: Final = "id, name or input"
NO_IMAGE: Final = "[image left out: {}]"
_NO_DOCUMENT: Final = "[document left out: {}]"
_DOCUMENTS: Final = {"text": "data", "content": "content", "url": "url", "file": "file_id"}
"""The kinds of source a document has beside base64, and where each keeps it."""

_Block = dict[str, Any]
_Message = dict[str, Any]


class Breach(msgspec.Struct, frozen=True):
    """A rule that a message breaks."""

    rule: str
    message: int
    block: int | None
    detail: str


def breaches(messages: list[_Message]) -> list[Breach]:
    """Return every breach of the API's rules, in order; an empty list means it can be sent."""
    found: list[Breach] = []
    calls_before: list[str] = []
    seen_calls: set[str] = set()
    for place, message in enumerate(messages):
        role, blocks = message.get("role"), blocks_of(message)
        found.extend(_shape(place, role, blocks))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        found.extend(_pairing(place, calls_before, blocks, results))
        calls_before = [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
        for call in calls_before:
            if call in seen_calls:
                found.append(Breach("tool_use.unique", place, None, call))
            seen_calls.add(call)
    if calls_before:
        found.append(Breach("tool_use.answered", len(messages) - 1, None, ", ".join(calls_before)))
    if messages and messages[0].get("role") != "user":
        found.insert(0, Breach("role.first", 0, None, "the first message must be the user's"))
    return found


def _shape(place: int, role: Any, blocks: list[_Block]) -> Iterator[Breach]:
    allowed = _BLOCKS.get(role) if isinstance(role, str) else None
    if allowed is None:
        yield Breach("role.known", place, None, repr(role))
        return
    if not blocks:
        yield Breach("content.empty", place, None, "no blocks")
    for index, block in enumerate(blocks):
        kind = _kind(block)
        if kind not in allowed:
            yield Breach("block.known", place, index, kind or repr(block.get("type")))
        elif flaw := _flaw(block):
            yield Breach(f"block.{kind}", place, index, flaw)


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
    if _kind(block) in _BLOCKS.get(role, ()):
        return _flaw(block)
    return f"a block of type {block.get('type')!r}"


def _flaw(block: _Block) -> str:
    """Return what is wrong with a block of a known type, or nothing."""
    match block.get("type"):
        case "text":
            return "text is empty" if is_blank(block) else ""
        case "thinking":
            # Whether a signature fits its thinking, only the API can tell.
            signed = _is_word(block.get("signature")) and isinstance(block.get("thinking"), str)
            return "" if signed else "no signature"
        case "redacted_thinking":
            return "" if _is_word(block.get("data")) else "no data"
        case "image":
            return image_flaw(block.get("source"))[0]
        case "tool_use" | "server_tool_use":
            named = _is_word(block.get("id")) and _is_word(block.get("name"))
            return "" if named and as_object(block.get("input")) is not None else _CALL
        case "document":
            return _document_flaw(block.get("source"))
        case "tool_result":
            return next(result_flaws(block), ("", ""))[1]
        case _:
            return ""


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _document_flaw(source: Any) -> str:
    fields = as_object(source)
    if fields is None:
        return "no source"
    kind = fields.get("type")
    if kind == "base64":
        data = fields.get("data")
        sound = _is_word(data) and decoded_size(str(data)) is not None
        return "" if sound else "not base64"
    place = _DOCUMENTS.get(kind) if isinstance(kind, str) else None
    return "" if place is not None and fields.get(place) else f"a source of type {kind!r}"


def result_flaws(result: _Block) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a tool result: the type of the block inside it, and the flaw."""
    if not _is_word(result.get("tool_use_id")):
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
        flaw = _flaw(block) if kind in _INSIDE else f"holds {block.get('type')!r}"
        if flaw:
            yield kind, flaw


def _pairing(
    place: int, calls: list[str], blocks: list[_Block], results: list[_Block]
) -> Iterator[Breach]:
    """Yield breaches between the calls of one message and the results in the next."""
    answers = [str(block.get("tool_use_id")) for block in results]
    answered, called = frozenset(answers), frozenset(calls)
    for call in calls:
        if call not in answered:
            yield Breach("tool_use.answered", place - 1, None, call)
    seen: set[str] = set()
    for index, answer in enumerate(answers):
        if answer not in called:
            yield Breach("tool_result.called", place, index, answer)
        elif answer in seen:
            yield Breach("tool_result.once", place, index, answer)
        seen.add(answer)
    if results and any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        yield Breach("tool_result.first", place, None, "results must come before other blocks")


def fixed_block(block: _Block, role: str) -> _Block | None:
    """Return a block that can be sent in place of `block`, None to leave it out."""
    kind = _kind(block)
    if kind not in _BLOCKS.get(role, ()):
        return None
    flaw = _flaw(block)
    if not flaw and not (kind == "tool_result" and _says_error_badly(block)):
        return block
    match kind:
        case "image":
            return {"type": "text", "text": NO_IMAGE.format(flaw)}
        case "document":
            return {"type": "text", "text": _NO_DOCUMENT.format(flaw)}
        case "tool_use":
            name = block.get("name")
            fixed = {"id": _call_id(block.get("id")), "name": name if _is_word(name) else "unknown"}
            return {**block, **fixed, "input": _input(block.get("input"))}
        case "tool_result":
            return _fixed_result(block)
        case _:
            return None


def _call_id(value: Any) -> str:
    """Return an id that is one; what was the same before is the same again."""
    if _is_word(value):
        return str(value)
    return f"toolu_{''.join(each for each in repr(value) if each.isascii() and each.isalnum())}"


def _input(value: Any) -> _Block:
    """Return the input of a call as an object: as it was meant, or under a key of its own."""
    meant = loose(value.encode("utf-8", "replace")) if isinstance(value, str) else value
    given = as_object(meant)
    if given is not None:
        return given
    return {} if value is None else {"value": value}


def _fixed_result(block: _Block) -> _Block:
    fixed = {**block, "tool_use_id": _call_id(block.get("tool_use_id"))}
    if not isinstance(fixed.get("is_error"), bool | None):
        del fixed["is_error"]
    if any(result_flaws(fixed)):
        fixed["content"] = _fixed_content(block.get("content"))
    if _says_error_badly(fixed):
        fixed["content"] = _in_words(as_list(fixed.get("content")) or [])
    return fixed


def _says_error_badly(result: _Block) -> bool:
    """Whether a result is an error that does not say which, or not in words, as errors must."""
    content = result.get("content")
    if result.get("is_error") is not True or (isinstance(content, str) and content):
        return False
    inner = [as_object(item) or {} for item in as_list(content) or ()]
    return not inner or any(item.get("type") != "text" for item in inner)


def _in_words(content: list[Any]) -> list[_Block]:
    blocks = [as_object(item) or {} for item in content]
    said = [
        block
        if block.get("type") == "text"
        else {"type": "text", "text": f"[{block.get('type')} left out of an error]"}
        for block in blocks
    ]
    return said or [{"type": "text", "text": NOTHING}]


def _fixed_content(content: Any) -> list[_Block]:
    items = as_list(content) or ()
    blocks = [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]
    inner = [block for item in blocks if (block := as_object(item)) and _kind(block) in _INSIDE]
    fixed = [block for item in inner if (block := _fixed_inside(item)) is not None]
    return fixed or [{"type": "text", "text": NOTHING}]


def _fixed_inside(block: _Block) -> _Block | None:
    # A block that may only stand inside a result is sent as it is.
    return fixed_block(block, "user") if _kind(block) in _BLOCKS["user"] else block


def blocks_of(message: _Message) -> list[_Block]:
    """Return the blocks of a message; words alone are one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_object(item) or {} for item in as_list(content) or ()]
