"""A session that was, told again as the updates that it would have been."""

from collections.abc import Iterator
from typing import Any, Final

from acp import helpers

from steno.acp.telling import Update, begun, ended
from steno.acp.todos import Todos
from steno.format.blocks import Image, Text, Thinking, ToolResult, ToolUse
from steno.format.records import Record
from steno.session.nodes import Node
from steno.session.session import Session
from steno.session.story.prompts import BY_PEOPLE, origin_of, prompt_of

__all__ = ["past"]

_UNKNOWN: Final = "Nothing is known of how this ended."


def past(session: Session, cwd: str) -> Iterator[Update]:
    """Yield what was said and done in a session, from its beginning, compactions or not."""
    open_calls: dict[str, dict[str, Any]] = {}
    todos = Todos()
    plan = None
    for node in session.conversation():
        record = session.transcript.record(node)
        if record.type == "assistant":
            yield from _answered(record, cwd, open_calls)
        elif record.type == "user":
            yield from _said(record, node)
            for block in record.tool_results:
                call = open_calls.pop(block.tool_use_id, None)
                if call is None:
                    continue
                failed = block.is_error is True
                yield ended(call, _content(block), failed=failed)
                if not failed:
                    plan = todos.take(call, record.fields.get("toolUseResult")) or plan
    for call in open_calls.values():
        yield ended(call, _UNKNOWN, failed=True)
    if plan is not None:
        yield plan


def _answered(record: Record, cwd: str, open_calls: dict[str, dict[str, Any]]) -> Iterator[Update]:
    for block in record.blocks:
        match block:
            case Text() if block.text.strip():
                yield helpers.update_agent_message_text(block.text)
            case Thinking() if block.thinking.strip():
                yield helpers.update_agent_thought_text(block.thinking)
            case ToolUse():
                call = {"id": block.id, "name": block.name, "input": block.input}
                open_calls[block.id] = call
                yield begun(call, cwd, on_disk=False)
            case _:
                pass


def _said(record: Record, node: Node) -> Iterator[Update]:
    origin = origin_of(record)
    if origin not in BY_PEOPLE:
        return
    words = prompt_of(record, node, origin).text
    if words.strip():
        yield helpers.update_user_message_text(words)
    for block in record.blocks:
        if isinstance(block, Image) and block.source.get("type") == "base64":
            image = helpers.image_block(str(block.source.get("data")), block.media_type)
            yield helpers.update_user_message(image)


def _content(block: ToolResult) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in block.blocks:
        if isinstance(each, Text):
            found.append({"type": "text", "text": each.text})
        elif isinstance(each, Image):
            found.append({"type": "image", "source": each.source})
    return found
