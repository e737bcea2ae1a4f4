"""What compactions left of a conversation: a summary, or only a boundary. For rules and repair."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from steno.check.graph import Graph
from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["UNSENT_SUMMARY", "Unsummed", "boundaries", "has_unsent_summary", "unsummed"]

UNSENT_SUMMARY: Final = (
    "the summary of what was compacted is not sent: it is in a `summary` record, which no client "
    "sends"
)


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


def has_unsent_summary(transcript: Transcript) -> bool:
    """Return whether the last summary of a conversation is in a record that no client sends."""
    if next(transcript.of_type("summary"), None) is None:
        # As in most files: asked first, it spares them the graph.
        return False
    return any(found.matters and found.title is not None for found in unsummed(Graph(transcript)))


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
        self.title = graph.title_compactions.summary_of

    def is_marked(self, prompt: Node) -> bool:
        """Return whether a prompt says that it is the summary of a compaction."""
        return self._graph.transcript.record(prompt).envelope.is_compact_summary is True

    def restart(self, boundary: Node) -> Node | None:
        """Return the record that begins anew behind a boundary, if it hangs on nothing."""
        if boundary.index in self._chain:
            return None
        return self._restarts.get(boundary.index)

    @cached_property
    def _restarts(self) -> dict[int, Node]:
        """The record that the conversation begins with behind each boundary that has such a one."""
        nodes = self._graph.transcript.nodes
        behind = self._graph.title_compactions.boundaries.items()
        return {
            boundary.index: nodes[place]
            for place, boundary in behind
            if self._graph.matters(nodes[place])
        }

    def goes_on(self, boundary: Node, restart: Node | None) -> bool:
        """Say whether anything follows a boundary."""
        if restart is not None:
            return True
        return boundary.index in self._chain and self._graph.chain[-1] is not boundary

    @cached_property
    def _chain(self) -> frozenset[int]:
        return frozenset(node.index for node in self._graph.chain)
