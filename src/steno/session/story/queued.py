"""Prompts typed while the agent was busy.

Newer clients write such a prompt into the conversation when it is taken up. Older ones only take it
off the queue again, so that the record of the queue is all there is of what was said.
"""

from typing import Any, Final

import msgspec

from steno.format.blocks import Text, read_blocks
from steno.format.loose import loose
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["absorbed"]

_QUEUED: Final = b'"queued_command"'


class _Attached(msgspec.Struct):
    type: str = ""
    prompt: Any = None


def absorbed(transcript: Transcript) -> list[Node]:
    """Return the queue records of prompts that were taken up and are written nowhere else."""
    waiting: list[tuple[str, Node]] = []
    taken: list[tuple[str, Node]] = []
    for node in transcript.of_type("queue-operation"):
        envelope = transcript.record(node).envelope
        content = loose(envelope.content) if envelope.content else None
        text = content if isinstance(content, str) else ""
        match envelope.operation:
            case "enqueue":
                waiting.append((text, node))
            case "popAll":
                waiting.clear()
            case "dequeue" if waiting:
                waiting.pop(0)
            case "remove" if waiting:
                place = next((i for i, item in enumerate(waiting) if item[0] == text), 0)
                taken.append(waiting.pop(place))
            case _:
                continue
    if not taken:
        return []
    said = _said(transcript)
    return [node for text, node in taken if text and text not in said]


def _said(transcript: Transcript) -> set[str]:
    """Return the queued prompts that the conversation itself holds."""
    said: set[str] = set()
    for node in transcript.of_type("attachment"):
        if _QUEUED not in transcript.source.read(node.offset, node.length):
            continue
        raw = transcript.record(node).envelope.attachment
        try:
            data = msgspec.json.decode(raw, type=_Attached)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        blocks = read_blocks(data.prompt)
        said.add("\n".join(block.text for block in blocks if isinstance(block, Text)))
    return said
