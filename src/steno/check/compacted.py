"""What compactions left of a conversation: a summary, or only a boundary. For rules and repair."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.check.graph import Graph
from steno.session.nodes import Node

__all__ = ["Unsummed", "boundaries", "unsummed"]

_NEAR: Final = 2


class Unsummed(msgspec.Struct, frozen=True):
    """A boundary that hides what came before it without saying what that was."""

    boundary: Node
    title: Node | None
    """The `summary` record that has the words, which no client sends."""
    restart: Node | None
    """The message that begins anew behind it, where nothing hangs below it."""
    matters: bool
    """Whether the conversation goes on behind it; an older one, or the last record, hides nothing."""


def boundaries(graph: Graph) -> list[Node]:
    """Return where the main conversation was compacted."""
    return [node for node in graph.members if node.is_boundary and not node.sidechain]


def unsummed(graph: Graph) -> Iterator[Unsummed]:
    """Yield the boundaries without a summary below them.

    The prompt below a boundary, notes between them left out, is its summary: clients need no mark
    to take it for that.
    """
    found = boundaries(graph)
    below: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.members if found else ():
        if node.parent is not None:
            below[node.parent].append(node)
    for boundary in found:
        if not _summed_up(boundary, below):
            restart = _restart(graph, boundary)
            matters = boundary is found[-1] and _goes_on(graph, boundary, restart)
            yield Unsummed(boundary, _title(graph, boundary), restart, matters)


def _summed_up(boundary: Node, below: dict[str, list[Node]]) -> bool:
    waiting, seen = [boundary], {boundary.index}
    while waiting:
        children = below.get(waiting.pop().uuid or "", [])
        if any(node.type == "user" and not node.results for node in children):
            return True
        notes = [node for node in children if not node.is_message and node.index not in seen]
        seen.update(node.index for node in notes)
        waiting.extend(notes)
    return False


def _title(graph: Graph, boundary: Node) -> Node | None:
    """Return the `summary` record that was written with a boundary."""
    nodes = graph.transcript.nodes
    near = nodes[max(0, boundary.index - _NEAR) : boundary.index + _NEAR + 1]
    found = next((node for node in near if node.type == "summary"), None)
    if found is not None or boundary.logical_parent is None:
        return found
    titles = (node for node in nodes if node.type == "summary")
    leaf = boundary.logical_parent
    return next((n for n in titles if graph.transcript.record(n).envelope.leaf_uuid == leaf), None)


def _restart(graph: Graph, boundary: Node) -> Node | None:
    if any(node is boundary for node in graph.chain):
        return None
    behind = graph.transcript.nodes[boundary.index + 1 :]
    first = next((node for node in behind if node.is_message and node.converses), None)
    if first is None or first.parent is not None or not graph.matters(first):
        return None
    return first


def _goes_on(graph: Graph, boundary: Node, restart: Node | None) -> bool:
    if restart is not None:
        return True
    chain = graph.chain
    return any(node is boundary for node in chain) and chain[-1] is not boundary
