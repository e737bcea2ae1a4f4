"""The rules of the Messages API: which breaches a conversation holds, and how to mend them."""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from steno.session.resume.images import image_flaw

__all__ = [
    "BEGINNING",
    "KNOWN_BLOCKS",
    "NO_IMAGE",
    "Breach",
    "block_flaw",
    "breaches",
    "fixed_block",
    "make_valid",
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
BEGINNING: Final = "(the beginning of this conversation is missing)"
_NOTHING: Final = "(no content)"
NO_IMAGE: Final = "[image left out: {}]"

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
        role, blocks = message.get("role"), _blocks(message)
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
        kind = str(block.get("type"))
        if kind not in allowed:
            yield Breach("block.known", place, index, kind)
        elif flaw := _flaw(block):
            yield Breach(f"block.{kind}", place, index, flaw)


def block_flaw(block: _Block, role: str) -> str:
    """Return why the API would refuse a block in a message of that role, or nothing."""
    kind = block.get("type")
    return _flaw(block) if kind in _BLOCKS.get(role, ()) else f"a block of type {kind!r}"


def _flaw(block: _Block) -> str:
    """Return what is wrong with a block of a known type, or nothing."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return "" if isinstance(text, str) and text.strip() else "text is empty"
        case "thinking":
            return "" if block.get("signature") else "no signature"
        case "redacted_thinking":
            return "" if block.get("data") else "no data"
        case "image":
            return image_flaw(block.get("source"))[0]
        case "tool_use" | "server_tool_use":
            named = all(
                isinstance(block.get(key), str) and block.get(key) for key in ("id", "name")
            )
            return "" if named and isinstance(block.get("input"), dict) else "id, name or input"
        case "document":
            return "" if isinstance(block.get("source"), dict) else "no source"
        case "tool_result":
            return _result_flaw(block.get("content"))
        case _:
            return ""


def _result_flaw(content: Any) -> str:
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list):
        return "content is neither text nor blocks"
    for item in cast("list[Any]", content):
        block = cast("_Block", item) if isinstance(item, dict) else {}
        if block.get("type") not in _INSIDE:
            return f"holds {block.get('type')!r}"
        if flaw := _flaw(block):
            return flaw
    return ""


def _pairing(
    place: int, calls: list[str], blocks: list[_Block], results: list[_Block]
) -> Iterator[Breach]:
    """Yield breaches between the calls of one message and the results in the next."""
    answers = [str(block.get("tool_use_id")) for block in results]
    for call in calls:
        if call not in answers:
            yield Breach("tool_use.answered", place - 1, None, call)
    for index, answer in enumerate(answers):
        if answer not in calls:
            yield Breach("tool_result.called", place, index, answer)
        elif answer in answers[:index]:
            yield Breach("tool_result.once", place, index, answer)
    if results and any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        yield Breach("tool_result.first", place, None, "results must come before other blocks")


def make_valid(messages: list[_Message]) -> list[_Message]:
    """Return the messages without what the API would refuse in them; pairing must be right."""
    mended: list[_Message] = []
    seen: set[str] = set()
    renamed: dict[str, str] = {}
    for message in messages:
        role = str(message.get("role"))
        if role == "assistant":
            renamed = _new_names(message, seen)
        blocks = [_renamed(block, renamed) for block in _blocks(message)]
        fixed = [good for block in blocks if (good := fixed_block(block, role)) is not None]
        if not mended and role != "user":
            mended.append({"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
        mended.append({"role": role, "content": fixed or [{"type": "text", "text": _NOTHING}]})
    return mended


def _new_names(message: _Message, seen: set[str]) -> dict[str, str]:
    """Return new ids for calls whose id an earlier message has used; ids must be unique."""
    renamed: dict[str, str] = {}
    for block in _blocks(message):
        if block.get("type") != "tool_use":
            continue
        name = new = str(block.get("id"))
        while new in seen:
            new = f"{new}-again"
        if new != name:
            renamed[name] = new
        seen.add(new)
    return renamed


def _renamed(block: _Block, renamed: dict[str, str]) -> _Block:
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(str(block.get("type")), "")
    new = renamed.get(str(block.get(key))) if key else None
    return {**block, key: new} if new else block


def fixed_block(block: _Block, role: str) -> _Block | None:
    """Return a block that can be sent in place of `block`, None to leave it out."""
    kind = block.get("type")
    if kind not in _BLOCKS.get(role, ()):
        return None
    if kind == "image" and (flaw := image_flaw(block.get("source"))[0]):
        return {"type": "text", "text": NO_IMAGE.format(flaw)}
    if kind == "tool_use":
        name, given = block.get("name"), block.get("input")
        named = name if isinstance(name, str) and name else "unknown"
        return {**block, "name": named, "input": given if isinstance(given, dict) else {}}
    if kind == "tool_result" and _result_flaw(block.get("content")):
        return {**block, "content": _fixed_content(block.get("content"))}
    return None if _flaw(block) else block


def _fixed_content(content: Any) -> list[_Block]:
    items = cast("list[Any]", content) if isinstance(content, list) else []
    blocks = [cast("_Block", item) for item in items if isinstance(item, dict)]
    fixed = [block for item in blocks if (block := fixed_block(item, "user")) is not None]
    return [block for block in fixed if block.get("type") != "tool_result"] or [
        {"type": "text", "text": _NOTHING}
    ]


def _blocks(message: _Message) -> list[_Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("_Block", item) if isinstance(item, dict) else {} for item in items]
