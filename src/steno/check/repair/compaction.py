"""Compaction: a boundary without its summary is undone; a summary kept as a title is sent again."""

from typing import Any

from steno.check.compacted import Unsummed, unsummed
from steno.check.graph import Graph
from steno.check.repair.edits import Drafts, new_uuid
from steno.check.repair.records import envelope_of
from steno.session.nodes import Node

__all__ = ["mend_compaction"]


def mend_compaction(drafts: Drafts) -> None:
    """Let what a boundary hides be sent: as the summary kept elsewhere, or word for word."""
    graph = drafts.graph
    for found in unsummed(graph):
        if not found.matters:
            continue
        if not found.boundary.uuid:
            # Then it is a boundary like any other.
            fields = {"uuid": new_uuid("boundary", found.boundary.index)}
            what = "give the boundary an id, so that it has a place in the conversation"
            drafts.change(found.boundary, "compaction.title-form", what, fields)
            continue
        words = drafts.fields(found.title).get("summary") if found.title is not None else None
        if isinstance(words, str) and words.strip():
            _write_summary(drafts, graph, found, words)
        else:
            _undo(drafts, graph, found)


def _write_summary(drafts: Drafts, graph: Graph, found: Unsummed, words: str) -> None:
    boundary = found.boundary
    record: dict[str, Any] = {
        "parentUuid": boundary.uuid,
        "isSidechain": False,
        **envelope_of(drafts.fields(boundary)),
        "type": "user",
        "message": {"role": "user", "content": words},
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
        "uuid": new_uuid("summary", boundary.uuid),
        "timestamp": boundary.timestamp,
    }
    what = "write the summary as the message that is sent; it was kept as a title only"
    drafts.insert(boundary, record, "compaction.title-form", what)
    for node in _following(graph, found):
        what = "hang it behind the summary"
        drafts.change(node, "compaction.title-form", what, {"parentUuid": record["uuid"]})


def _undo(drafts: Drafts, graph: Graph, found: Unsummed) -> None:
    boundary = found.boundary
    above = graph.by_uuid.get(boundary.logical_parent or "") or graph.parent(boundary)
    # A parent behind the boundary may hang on what follows it.
    if above is None or above.index >= boundary.index:
        earlier = (node for node in graph.transcript.nodes[: boundary.index] if node.converses)
        above = max(earlier, key=lambda node: node.index, default=None)
    for node in _following(graph, found):
        what = "hang it on what stood before the boundary"
        fields = {"parentUuid": above.uuid if above is not None else None}
        drafts.change(node, "compaction.no-summary", what, fields)
    what = "set the boundary aside: there is no summary, so all before it is sent again"
    drafts.set_aside(boundary, "compaction.no-summary", what)


def _following(graph: Graph, found: Unsummed) -> list[Node]:
    """Return what goes on from a boundary."""
    if found.restart is not None:
        return [found.restart]
    return [node for node in graph.members if node.parent == found.boundary.uuid and node.converses]
