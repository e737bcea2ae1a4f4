"""What a server's tool gives back, as the model and the session want it."""

import os
import re
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.agent.around_files import cut
from steno.tools.base import ToolResult
from steno.tools.context import ToolContext
from steno.tools.output import folder_for_results, put_file

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

__all__ = ["letters", "number_in", "outcome_of", "record_fields", "take_meta"]

_MOST_TOKENS: Final = 25_000
_LETTERS_A_TOKEN: Final = 4
_IMAGES: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def take_meta(context: ToolContext, call: str) -> dict[str, Any] | None:
    """Return what a call gave besides (`mcpMeta` of the record); None when it gave nothing."""
    return context.mcp_metadata.pop(call, None)


def record_fields(context: ToolContext, call: str) -> dict[str, Any]:
    """Return what the record of a result has besides, by what its call gave besides."""
    meta = take_meta(context, call)
    return {} if meta is None else {"mcpMeta": meta}


def outcome_of(
    result: "CallToolResult", server: str, context: ToolContext, call: str, env: Mapping[str, str]
) -> ToolResult:
    """Return what a call came to, as one of our own tools would."""
    meta: dict[str, Any] = {}
    if result.meta:
        meta["_meta"] = dict(result.meta)
    if result.structured_content is not None:
        meta["structuredContent"] = result.structured_content
    if meta:
        context.mcp_metadata[call] = meta
    most = number_in(env, "MAX_MCP_OUTPUT_TOKENS", _MOST_TOKENS) * _LETTERS_A_TOKEN
    if result.is_error:
        words = cut("\n".join(_text(block) for block in result.content), most)
        return ToolResult(words or "The tool failed.", f"Error: {words}", is_error=True)
    pictured = any(block.type == "image" for block in result.content)
    if result.structured_content is not None and not pictured:
        text = cut(msgspec.json.encode(result.structured_content).decode(), most)
        return ToolResult(text, text)
    blocks: list[dict[str, Any]] = []
    for block in result.content:
        blocks += _blocks(block, server, context)
    for block in blocks:
        if block["type"] == "text":
            block["text"] = cut(block["text"], most)
            most = max(most - len(block["text"]), 0)
    blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    return ToolResult(blocks or "The tool gave no output.", blocks)


def _blocks(block: "ContentBlock", server: str, context: ToolContext) -> list[dict[str, Any]]:
    if block.type == "image":
        return _picture(block.data, block.mime_type, server, context)
    if block.type == "resource":
        held = block.resource
        data: object = getattr(held, "blob", None)
        if isinstance(data, str) and held.mime_type in _IMAGES:
            return _picture(data, held.mime_type, server, context)
    return [{"type": "text", "text": _text(block)}]


def _text(block: "ContentBlock") -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource":
        text: object = getattr(block.resource, "text", None)
        head = f"[Resource {block.resource.uri}]"
        return f"{head}\n{text}" if isinstance(text, str) else f"{head} (not text; left out)"
    if block.type == "resource_link":
        words = f": {block.description}" if block.description else ""
        return f"[Resource {block.name} at {block.uri}{words}]"
    return f"[{block.type}, {block.mime_type}; left out]"


def _picture(data: str, kind: str, server: str, context: ToolContext) -> list[dict[str, Any]]:
    """Return a picture and where it is kept; anything the API would refuse becomes words."""
    try:
        raw = b64decode(data, validate=True)
    except (NotBase64, ValueError):
        raw = b""
    if kind not in _IMAGES or not raw:
        return [{"type": "text", "text": f"[image, {kind}; cannot be shown]"}]
    source = {"type": "base64", "media_type": kind, "data": data}
    blocks: list[dict[str, Any]] = [{"type": "image", "source": source}]
    path = _keep(raw, f"mcp-{letters(server)}-blob", _IMAGES[kind], context)
    if path:
        blocks.append({"type": "text", "text": f"[Image: source: {path}]"})
    return blocks


def _keep(raw: bytes, stem: str, ending: str, context: ToolContext) -> str:
    name = f"{stem}-{time.time_ns() // 1_000_000}-{token_hex(3)}.{ending}"
    try:
        path = os.path.join(folder_for_results(context), name)
        put_file(path, (raw,))
    except OSError:
        return ""
    return path


def letters(name: str) -> str:
    """Return a name with nothing in it that the API or a file system minds."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def number_in(env: Mapping[str, str], name: str, otherwise: int) -> int:
    """Return a number above 0 that the environment has, or another one."""
    value = env.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and int(value) else otherwise
