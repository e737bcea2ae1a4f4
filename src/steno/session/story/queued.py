"""Prompts typed while the agent was busy.

Newer clients write such a prompt into the conversation when it is taken up. Older ones only take it
off the queue again, so that the record of the queue is all there is of what was said.
"""

from collections import OrderedDict, deque
from typing import Any, Final

import msgspec

from steno.format.blocks import Text, read_blocks
from steno.format.loose import REFUSED, loose
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["absorbed"]

_QUEUED: Final = b'"queued_command"'


class _Attached(msgspec.Struct):
    type: str = ""
    prompt: Any = None


class _Queue:
    """Prompts in the order they came, from which the first or a certain one can be taken."""

    def __init__(self) -> None:
        self._items: OrderedDict[int, tuple[str, Node]] = OrderedDict()
        self._by_text: dict[str, deque[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, text: str, node: Node) -> None:
        """Put one at the end."""
        self._items[node.index] = text, node
        self._by_text.setdefault(text, deque()).append(node.index)

    def take(self, text: str | None = None) -> tuple[str, Node]:
        """Take out the first one with that text, or the first of all."""
        same = self._by_text.get(text, ()) if text is not None else ()
        while same:
            place = same.popleft()
            # It may have been taken as the first of all.
            if place in self._items:
                return self._items.pop(place)
        return self._items.popitem(last=False)[1]


def absorbed(transcript: Transcript) -> list[Node]:
    """Return the queue records of prompts that were taken up and are written nowhere else."""
    waiting = _Queue()
    taken: list[tuple[str, Node]] = []
    for node in transcript.of_type("queue-operation"):
        envelope = transcript.record(node).envelope
        content = loose(envelope.content) if envelope.content else None
        text = content if isinstance(content, str) else ""
        match envelope.operation:
            case "enqueue":
                waiting.add(text, node)
            case "popAll":
                waiting = _Queue()
            case "dequeue" if waiting:
                waiting.take()
            case "remove" if waiting:
                taken.append(waiting.take(text))
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
        except REFUSED:
            continue
        blocks = read_blocks(data.prompt)
        said.add("\n".join(block.text for block in blocks if isinstance(block, Text)))
    return said
