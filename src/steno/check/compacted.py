"""What compactions left of a conversation: a summary, or only a boundary. For rules and repair."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
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
    # Few records have a subtype at all: asked first, it spares the rest a call.
    return [node for node in graph.members if _compacts(node)]


def _compacts(node: Node) -> bool:
    return bool(node.subtype) and node.is_boundary and not node.sidechain


def unsummed(graph: Graph) -> Iterator[Unsummed]:
    """Yield the boundaries without a summary below them.

    The prompt below a boundary, notes between them left out, is its summary: clients need no mark
    to take it for that. But where a `summary` record was written with the boundary, a prompt without
    the mark is a prompt. A boundary without an id is of that form, or it means nothing.
    """
    nameless = [node for node in graph.transcript.nodes if not node.uuid and _compacts(node)]
    found = sorted([*boundaries(graph), *nameless], key=lambda node: node.index)
    if not found:
        return
    below: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.members:
        if node.parent is not None:
            below[node.parent].append(node)
    file = _File(graph)
    for boundary in found:
        prompt = _prompt_below(boundary, below) if boundary.uuid else None
        if not boundary.uuid and (file.title(boundary) is None or file.restart(boundary) is None):
            continue
        if prompt is None or (file.title(boundary) is not None and not file.is_marked(prompt)):
            restart = file.restart(boundary)
            matters = boundary is found[-1] and file.goes_on(boundary, restart)
            yield Unsummed(boundary, file.title(boundary), restart, matters)


def _prompt_below(boundary: Node, below: dict[str, list[Node]]) -> Node | None:
    """Return the first prompt that hangs on a boundary or on notes below it."""
    waiting, seen = [boundary], {boundary.index}
    while waiting:
        children = below.get(waiting.pop().uuid or "", [])
        for node in children:
            if node.type == "user" and not node.results:
                return node
        notes = [node for node in children if not node.is_message and node.index not in seen]
        seen.update(node.index for node in notes)
        waiting.extend(notes)
    return None


class _File:
    """What has to be known of a whole file, looked up once however many boundaries it has."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def title(self, boundary: Node) -> Node | None:
        """Return the `summary` record that was written with a boundary."""
        nodes = self._graph.transcript.nodes
        near = nodes[max(0, boundary.index - _NEAR) : boundary.index + _NEAR + 1]
        found = next((node for node in near if node.type == "summary"), None)
        if found is not None or boundary.logical_parent is None:
            return found
        return self._titles.get(boundary.logical_parent)

    def is_marked(self, prompt: Node) -> bool:
        """Return whether a prompt says that it is the summary of a compaction."""
        return self._graph.transcript.record(prompt).envelope.is_compact_summary is True

    @cached_property
    def _titles(self) -> dict[str, Node]:
        """The first `summary` record of each leaf that one names."""
        transcript = self._graph.transcript
        titles: dict[str, Node] = {}
        for node in transcript.nodes:
            if node.type == "summary" and (leaf := transcript.record(node).envelope.leaf_uuid):
                titles.setdefault(leaf, node)
        return titles

    def restart(self, boundary: Node) -> Node | None:
        """Return the message that begins anew behind a boundary, if it hangs on nothing."""
        if boundary.index in self._chain:
            return None
        at = bisect_right(self._spoken, boundary.index)
        if at == len(self._spoken):
            return None
        first = self._graph.transcript.nodes[self._spoken[at]]
        return first if first.parent is None and self._graph.matters(first) else None

    def goes_on(self, boundary: Node, restart: Node | None) -> bool:
        """Say whether anything follows a boundary."""
        if restart is not None:
            return True
        return boundary.index in self._chain and self._graph.chain[-1] is not boundary

    @cached_property
    def _chain(self) -> frozenset[int]:
        return frozenset(node.index for node in self._graph.chain)

    @cached_property
    def _spoken(self) -> list[int]:
        """The places of the messages of the main conversation."""
        nodes = self._graph.transcript.nodes
        return [node.index for node in nodes if node.is_message and node.converses]
