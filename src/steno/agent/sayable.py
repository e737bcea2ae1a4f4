"""What can be said as it is, and what has to be put otherwise before it is taken down.

The API refuses some things, and clients that read a session stumble over others: blank words,
pictures that are none, half characters. They are mended before they are written, so that what is
in the file is what was sent, and nothing has to be mended again.
"""

from typing import Any, cast

import msgspec

from steno.model.wire import Block, Response
from steno.session.resume.entries import only_thinking
from steno.session.resume.rules import NOTHING, fixed_block, is_blank
from steno.tools.base import ToolResult

__all__ = ["sayable_content", "sayable_outcome", "sayable_response"]


def sayable_content(content: str | list[Block]) -> str | list[Block]:
    """Return what a user says so that it can be sent."""
    if isinstance(content, str):
        return _whole(content) if content.strip() else NOTHING
    fixed = [good for block in content if (good := fixed_block(block, "user")) is not None]
    return _whole(fixed) or NOTHING


def sayable_outcome(outcome: ToolResult) -> ToolResult:
    """Return what a call came to so that it can be sent."""
    block = {"type": "tool_result", "tool_use_id": "x", "content": outcome.content}
    fixed = fixed_block({**block, "is_error": outcome.is_error}, "user") or block
    return msgspec.structs.replace(
        outcome, content=_whole(fixed["content"]), detail=_whole(outcome.detail)
    )


def sayable_response(response: Response) -> Response:
    """Return an answer without blank words, and nothing of one that is nothing but thoughts."""
    blocks = [
        block if only_thinking([block]) else _whole(block)
        for block in response.blocks
        if not is_blank(block)
    ]
    return msgspec.structs.replace(response, blocks=[] if only_thinking(blocks) else blocks)


def _whole(value: Any) -> Any:
    """Return a value whose characters are whole: half of one has no bytes to be sent as."""
    try:
        msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return _mended(value)
    return value


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_mended(key): _mended(each) for key, each in items}
    if isinstance(value, list | tuple):
        return [_mended(each) for each in cast("list[Any]", value)]
    return value
