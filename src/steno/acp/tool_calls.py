"""Tool calls for clients: kind, title, file locations, changes, result content."""

import os
import re
from typing import Any, Final

from acp import helpers
from acp.helpers import ToolCallContentVariant as Content
from acp.schema import ToolCallLocation, ToolCallUpdate, ToolKind

from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS, tool_facts
from steno.sanitize.terminal import one_line, strip_colours
from steno.session.turns.tool_outcomes import tool_call_subject

_FENCED_KINDS: Final = frozenset(("execute", "read", "search"))
"""Kinds whose results are shown in a code fence."""
_MAX_TITLE: Final = 160
_MAX_FILE_BYTES: Final = 1 << 20
_MAX_CHARACTERS: Final = 60_000
_BACKTICKS: Final = re.compile(r"`{3,}")


def tool_kind(name: str) -> ToolKind:
    """Return the ACP kind of a tool."""
    return tool_facts(name).kind


def _tool_input(call: dict[str, Any]) -> dict[str, Any]:
    return as_object(call.get("input")) or {}


def _file_path(call: dict[str, Any], cwd: str) -> str:
    tool_input = _tool_input(call)
    path = tool_input.get("file_path") or tool_input.get("notebook_path") or tool_input.get("path")
    if not isinstance(path, str) or not path:
        return ""
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))


def call_title(call: dict[str, Any], cwd: str) -> str:
    """Return a one-line title for a tool call."""
    name, tool_input = str(call.get("name")), _tool_input(call)
    if name == SHELL:
        return one_line(str(tool_input.get("command", "")), _MAX_TITLE) or name
    if name.startswith("mcp__"):
        name = ".".join(name.split("__")[1:])
    path = _file_path(call, cwd)
    subject = tool_call_subject(name, tool_input)
    if path and subject and os.path.normpath(os.path.join(cwd, subject)) == path:
        subject = _relative_path(path, cwd)
    return one_line(f"{name} {subject}".strip(), _MAX_TITLE)


def _relative_path(path: str, cwd: str) -> str:
    relative = os.path.relpath(path, cwd)
    return path if relative.startswith(os.pardir) else relative


def call_locations(call: dict[str, Any], cwd: str) -> list[ToolCallLocation]:
    """Return the file of a tool call, with the line if known."""
    path = _file_path(call, cwd)
    line = _tool_input(call).get("offset")
    line_number = line if isinstance(line, int) and line > 0 else None
    return [ToolCallLocation(path=path, line=line_number)] if path else []


def call_changes(call: dict[str, Any], cwd: str, *, on_disk: bool = True) -> list[Content]:
    """Return the file changes that a tool call would make, as far as they are known.

    For recorded calls, `on_disk` is false: the file may have changed since.
    """
    name, tool_input, path = str(call.get("name")), _tool_input(call), _file_path(call, cwd)
    if not path:
        return []
    if tool_facts(name).file_action == "write":
        before = _read_text(path) if on_disk else None
        return [helpers.tool_diff_content(path, str(tool_input.get("content", "")), before)]
    if name not in TEXT_EDITING_TOOLS:
        return []
    edits = [as_object(edit) or {} for edit in as_list(tool_input.get("edits")) or [tool_input]]
    return [
        helpers.tool_diff_content(path, str(each.get("new_string", "")), str(each.get("old_string", "")))
        for each in edits
    ]


def _read_text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except (OSError, ValueError):
        return None


def result_content(name: str, content: str | list[dict[str, Any]]) -> list[Content]:
    """Return the content of a tool result: text, fenced if it is not prose, and images."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    contents: list[Content] = []
    for block in blocks:
        if block.get("type") == "text":
            text = _format_text(str(block.get("text", "")), fenced=tool_kind(name) in _FENCED_KINDS)
            if text:
                contents.append(helpers.tool_content(helpers.text_block(text)))
        source = as_object(block.get("source")) or {}
        if block.get("type") == "image" and source.get("type") == "base64":
            image = helpers.image_block(str(source.get("data")), str(source.get("media_type")))
            contents.append(helpers.tool_content(image))
    return contents


def _format_text(text: str, *, fenced: bool) -> str:
    text = strip_colours(text).strip("\n")
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}\n… {len(text) - _MAX_CHARACTERS} more characters in the session"
    if not fenced or not text:
        return text
    fence = max(("```", *(f"{ticks}`" for ticks in _BACKTICKS.findall(text))), key=len)
    return f"{fence}\n{text}\n{fence}"


def pending_call_update(call: dict[str, Any], cwd: str) -> ToolCallUpdate:
    """Return a tool call for an approval request."""
    return ToolCallUpdate(
        tool_call_id=str(call.get("id")),
        title=call_title(call, cwd),
        kind=tool_kind(str(call.get("name"))),
        status="pending",
        content=list(call_changes(call, cwd)),
        locations=call_locations(call, cwd),
        raw_input=_tool_input(call),
    )
