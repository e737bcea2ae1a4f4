"""A tool call as clients show it: its kind, its title, the places it touches, what it changes."""

import os
import re
from typing import Any, Final

from acp import helpers
from acp.helpers import ToolCallContentVariant as Content
from acp.schema import ToolCallLocation, ToolCallUpdate, ToolKind

from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS, facts_of
from steno.format.values import as_list, as_object
from steno.safe.terminal import one_line, without_colours
from steno.session.story.outcomes import subject_of

__all__ = ["Content", "changes", "kind_of", "places", "shown", "title", "wanted"]

_FENCED: Final = frozenset(("execute", "read", "search"))
"""The kinds whose results are no prose."""
_TITLE: Final = 160
_LARGEST: Final = 1 << 20
_LONGEST: Final = 60_000
_TICKS: Final = re.compile(r"`{3,}")


def kind_of(name: str) -> ToolKind:
    """Return what sort of thing a tool does."""
    return facts_of(name).kind


def _given(call: dict[str, Any]) -> dict[str, Any]:
    return as_object(call.get("input")) or {}


def _path(call: dict[str, Any], cwd: str) -> str:
    given = _given(call)
    named = given.get("file_path") or given.get("notebook_path") or given.get("path")
    if not isinstance(named, str) or not named:
        return ""
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(named)))


def title(call: dict[str, Any], cwd: str) -> str:
    """Return a call on one line."""
    name, given = str(call.get("name")), _given(call)
    if name == SHELL:
        return one_line(str(given.get("command", "")), _TITLE) or name
    if name.startswith("mcp__"):
        name = ".".join(name.split("__")[1:])
    path = _path(call, cwd)
    about = subject_of(name, given)
    if path and about and os.path.normpath(os.path.join(cwd, about)) == path:
        about = _within(path, cwd)
    return one_line(f"{name} {about}".strip(), _TITLE)


def _within(path: str, cwd: str) -> str:
    inside = os.path.relpath(path, cwd)
    return path if inside.startswith(os.pardir) else inside


def places(call: dict[str, Any], cwd: str) -> list[ToolCallLocation]:
    """Return the file that a call is about, and the line where it is known."""
    path = _path(call, cwd)
    line = _given(call).get("offset")
    at = line if isinstance(line, int) and line > 0 else None
    return [ToolCallLocation(path=path, line=at)] if path else []


def changes(call: dict[str, Any], cwd: str, *, on_disk: bool = True) -> list[Content]:
    """Return what a call would change, as far as that can be said beforehand.

    A call that was made once is told without what is on the disk by now.
    """
    name, given, path = str(call.get("name")), _given(call), _path(call, cwd)
    if not path:
        return []
    if facts_of(name).file_action == "write":
        before = _content(path) if on_disk else None
        return [helpers.tool_diff_content(path, str(given.get("content", "")), before)]
    if name not in TEXT_EDITING_TOOLS:
        return []
    edits = [as_object(each) or {} for each in as_list(given.get("edits")) or [given]]
    return [
        helpers.tool_diff_content(
            path, str(each.get("new_string", "")), str(each.get("old_string", ""))
        )
        for each in edits
    ]


def _content(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except (OSError, ValueError):
        return None


def shown(name: str, content: str | list[dict[str, Any]]) -> list[Content]:
    """Return what a call gave back: words, in a fence where they are no prose, and images."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found: list[Content] = []
    for block in blocks:
        if block.get("type") == "text":
            words = _words(str(block.get("text", "")), fenced=kind_of(name) in _FENCED)
            if words:
                found.append(helpers.tool_content(helpers.text_block(words)))
        source = as_object(block.get("source")) or {}
        if block.get("type") == "image" and source.get("type") == "base64":
            image = helpers.image_block(str(source.get("data")), str(source.get("media_type")))
            found.append(helpers.tool_content(image))
    return found


def _words(text: str, *, fenced: bool) -> str:
    text = without_colours(text).strip("\n")
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n… {len(text) - _LONGEST} more letters are in the session"
    if not fenced or not text:
        return text
    fence = max(("```", *(f"{each}`" for each in _TICKS.findall(text))), key=len)
    return f"{fence}\n{text}\n{fence}"


def wanted(call: dict[str, Any], cwd: str) -> ToolCallUpdate:
    """Return a call as whoever is asked about it sees it."""
    return ToolCallUpdate(
        tool_call_id=str(call.get("id")),
        title=title(call, cwd),
        kind=kind_of(str(call.get("name"))),
        status="pending",
        content=list(changes(call, cwd)),
        locations=places(call, cwd),
        raw_input=_given(call),
    )
