"""Old tool output that is left out of the conversation to save room, while the file keeps it.

A record (`system/microcompact_boundary`) names the calls; from there on a short note stands for
what they printed. The note follows from the output alone, so it is the same whenever it is made.
"""

from collections.abc import Collection
from typing import Any, Final, cast

from steno.format.values import as_list, as_object
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["TRIM", "output_size", "trimmed", "trims_of"]

TRIM: Final = "microcompact_boundary"
"""The subtype of the record that names calls whose output is left out."""
_NOTE: Final = (
    "[The output of this call, {}, was left out to save room. Make the call again if you need it.]"
)
_PICTURE: Final = 6_000
"""How many characters a picture or a document counts for: about what it takes of the window."""

_Message = dict[str, Any]


def trims_of(transcript: Transcript, chain: list[Node]) -> frozenset[str]:
    """Return the calls whose output the records of a conversation say was left out."""
    found: set[str] = set()
    for node in chain:
        if node.subtype == TRIM:
            told = as_object(transcript.record(node).fields.get("microcompactMetadata")) or {}
            calls = as_list(told.get("compactedToolIds")) or ()
            found.update(call for call in calls if isinstance(call, str))
    return frozenset(found)


def trimmed(message: _Message, calls: Collection[str]) -> _Message:
    """Return a message with a note in place of what these calls printed; the same if none did."""
    blocks = cast("list[dict[str, Any]]", message["content"])
    if not any(_is_of(block, calls) for block in blocks):
        return message
    return {
        **message,
        "content": [_noted(block) if _is_of(block, calls) else block for block in blocks],
    }


def _is_of(block: dict[str, Any], calls: Collection[str]) -> bool:
    return block.get("type") == "tool_result" and block.get("tool_use_id") in calls


def _noted(block: dict[str, Any]) -> dict[str, Any]:
    characters, others = _measured(block.get("content"))
    size = f"{characters:,} characters" + (f" and {others:,} pictures or documents" * bool(others))
    note = _NOTE.format(size)
    # What is shorter than the note says more as it is.
    return {**block, "content": note} if others or characters > len(note) else block


def output_size(block: dict[str, Any]) -> int:
    """Return how many characters a tool result takes, about."""
    characters, others = _measured(block.get("content"))
    return characters + others * _PICTURE


def _measured(content: Any) -> tuple[int, int]:
    """Return how many characters and how many other blocks a result holds."""
    if isinstance(content, str):
        return len(content), 0
    inner = [as_object(item) or {} for item in as_list(content) or ()]
    texts = [each.get("text") for each in inner if each.get("type") == "text"]
    return sum(len(text) for text in texts if isinstance(text, str)), len(inner) - len(texts)
