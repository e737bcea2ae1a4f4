"""Compaction: where a conversation was summed up, and what of it is still in view."""

from typing import Any, cast

from steno.session.nodes import Node
from steno.session.resume.clients import Client
from steno.session.resume.walk import Loaded
from steno.session.transcript import Transcript

__all__ = ["preserved", "since_compaction"]


def since_compaction(
    transcript: Transcript, loaded: Loaded, chain: list[Node], client: Client
) -> list[Node]:
    """Return what the client keeps of a chain: the part behind the last boundary.

    Messages that the compaction preserved stand before the boundary in the file but behind the
    summary in the conversation.
    """
    # Few records have a subtype at all: asked first, it spares the rest a call.
    boundaries = [place for place, node in enumerate(chain) if node.subtype and node.is_boundary]
    for place in reversed(boundaries):
        if place == len(chain) - 1 and client.ignores_last_boundary:
            continue
        rest = chain[place + 1 :]
        if not client.honours_preserved:
            return rest
        kept = preserved(transcript, loaded, chain[place])
        names = {node.uuid for node in kept}
        rest = [node for node in rest if node.uuid not in names]
        summary = next((at for at, node in enumerate(rest, 1) if node.is_message), 0)
        return [*rest[:summary], *kept, *rest[summary:]]
    return chain


def preserved(transcript: Transcript, loaded: Loaded, boundary: Node) -> list[Node]:
    """Return the older records that a compaction kept word for word, in order."""
    metadata = _object(transcript.record(boundary).fields.get("compactMetadata"))
    names = _object(metadata.get("preservedMessages")).get("uuids")
    if isinstance(names, list):
        uuids = [name for name in cast("list[Any]", names) if isinstance(name, str)]
        return [loaded.nodes[uuid] for uuid in uuids if uuid in loaded.nodes]
    segment = _object(metadata.get("preservedSegment"))
    return _stretch(loaded, segment.get("headUuid"), segment.get("tailUuid"))


def _stretch(loaded: Loaded, head: Any, tail: Any) -> list[Node]:
    """Return the records from `head` to `tail`, found by walking back from the tail."""
    found: list[Node] = []
    seen: set[str | None] = set()
    node = loaded.nodes.get(tail) if isinstance(tail, str) else None
    while node is not None and node.uuid not in seen:
        found.append(node)
        seen.add(node.uuid)
        if node.uuid == head:
            return found[::-1]
        node = loaded.nodes.get(loaded.parent(node))
    return []


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
