"""A session as messages that the API accepts, proven before they leave.

What was thought is signed, and a thought that was masked no longer fits its signature: it is left
out, as the API would refuse it.
"""

from typing import Any

from steno.errors import StenoError
from steno.format.blocks import Thinking
from steno.report.export.opened import Leaving
from steno.session.resume.replay import ApiMessage
from steno.session.resume.rules import NOTHING, breaches
from steno.session.session import Session
from steno.store.library import open_found

__all__ = ["messages"]


def messages(leaving: Leaving, *, masked: bool) -> list[ApiMessage]:
    """Return the conversation as the API accepts it.

    Raises:
        StenoError: it would not; that is a fault of ours.
    """
    found = leaving.session.messages()
    if masked:
        with open_found(leaving.found) as before:
            signed = _signed(before)
        found = [_unbroken(message, signed) for message in found]
    wrong = breaches(found)
    if wrong:
        raise StenoError(f"the API would refuse what came out: {wrong[0]}")
    return found


def _signed(session: Session) -> dict[str, str]:
    """Return every thought by its signature, as it was before it was masked."""
    return {
        block.signature: block.thinking
        for node in session.transcript.nodes
        if node.type == "assistant"
        for block in session.transcript.record(node).blocks
        if isinstance(block, Thinking) and block.signature
    }


def _unbroken(message: ApiMessage, signed: dict[str, str]) -> ApiMessage:
    content = message["content"]
    if isinstance(content, str):
        return message
    kept = [block for block in content if not _is_broken(block, signed)]
    return {**message, "content": kept or [{"type": "text", "text": NOTHING}]}


def _is_broken(block: dict[str, Any], signed: dict[str, str]) -> bool:
    if block.get("type") != "thinking":
        return False
    return signed.get(str(block.get("signature"))) != block.get("thinking")
