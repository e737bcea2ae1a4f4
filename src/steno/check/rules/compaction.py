"""Compactions: a boundary, and below it the summary of the records before it.

Repair uses the same functions to find boundaries without a summary.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

from steno.check.evidence import Evidence, RuleFamily
from steno.check.findings import error_rule, info_rule, rules_in
from steno.check.record_graph import RecordGraph
from steno.format.records import PUBLISHED_DESCRIPTIONS_PAGE
from steno.session.transcript import Node, Transcript

UNSENT_SUMMARY: Final = (
    "the summary of what was compacted is not sent: it is in a `summary` record, which no client sends"
)


class MissingSummary(msgspec.Struct, frozen=True):
    """A boundary that hides what came before it without saying what that was."""

    boundary: Node
    title: Node | None
    """The `summary` record that has the words, which no client sends."""
    restart: Node | None
    """The message that begins anew behind it, where nothing hangs below it."""
    is_relevant: bool
    """Whether the conversation goes on behind it; an older one, or the last record, hides nothing."""


def compaction_boundaries(graph: RecordGraph) -> list[Node]:
    """Return where the main conversation was compacted."""
    # Few records have a subtype at all: asked first, it spares the rest a call.
    return [node for node in graph.members if _is_main_boundary(node)]


def _is_main_boundary(node: Node) -> bool:
    return bool(node.subtype) and node.is_boundary and not node.sidechain


def find_missing_summaries(graph: RecordGraph) -> Iterator[MissingSummary]:
    """Yield the boundaries without a summary below them.

    The prompt below a boundary, notes between them left out, is its summary: clients need no mark to take it for that.
    But where a `summary` record was written with the boundary, a prompt without the mark is a prompt. A boundary
    without an id is of that form, or it means nothing.
    """
    nameless = [node for node in graph.transcript.nodes if not node.uuid and _is_main_boundary(node)]
    boundary_nodes = sorted([*compaction_boundaries(graph), *nameless], key=lambda node: node.index)
    if not boundary_nodes:
        return
    children: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.members:
        if node.parent is not None:
            children[node.parent].append(node)
    lookup = _CompactionLookup(graph)
    for boundary in boundary_nodes:
        prompt = _prompt_below(boundary, children) if boundary.uuid else None
        if not boundary.uuid and (lookup.title(boundary) is None or lookup.restart(boundary) is None):
            continue
        if prompt is None or (lookup.title(boundary) is not None and not lookup.is_marked(prompt)):
            restart = lookup.restart(boundary)
            matters = boundary is boundary_nodes[-1] and lookup.continues(boundary, restart)
            yield MissingSummary(boundary, lookup.title(boundary), restart, matters)


def has_unsent_summary(transcript: Transcript) -> bool:
    """Return whether the last summary of a conversation is in a record that no client sends."""
    if next(transcript.of_type("summary"), None) is None:
        # As in most files: asked first, it spares them the graph.
        return False
    return any(
        missing.is_relevant and missing.title is not None for missing in find_missing_summaries(RecordGraph(transcript))
    )


def _prompt_below(boundary: Node, children_of: dict[str, list[Node]]) -> Node | None:
    """Return the first prompt that hangs on a boundary or on notes below it."""
    queue, seen = [boundary], {boundary.index}
    while queue:
        children = children_of.get(queue.pop().uuid or "", [])
        for node in children:
            if node.type == "user" and not node.results:
                return node
        notes = [node for node in children if not node.is_message and node.index not in seen]
        seen.update(node.index for node in notes)
        queue.extend(notes)
    return None


class _CompactionLookup:
    """What has to be known of a whole file, looked up once however many boundaries it has."""

    def __init__(self, graph: RecordGraph) -> None:
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
        boundaries = self._graph.title_compactions.boundaries.items()
        return {boundary.index: nodes[index] for index, boundary in boundaries if self._graph.is_relevant(nodes[index])}

    def continues(self, boundary: Node, restart: Node | None) -> bool:
        """Say whether anything follows a boundary."""
        if restart is not None:
            return True
        return boundary.index in self._chain and self._graph.chain[-1] is not boundary

    @cached_property
    def _chain(self) -> frozenset[int]:
        return frozenset(node.index for node in self._graph.chain)


NO_SUMMARY: Final = error_rule(
    "compaction.no-summary",
    "there is no summary behind a compaction",
    "clients send nothing of what came before; `steno repair` takes the boundary off the chain",
    "Everything before the last boundary is left out on resume, and the message right below the "
    "boundary, the summary, stands for it. Without one the model knows nothing of what came "
    "before, and no client says so. The compaction was cut off, or the summary was lost with a "
    "damaged line. Repair lets the conversation go on from what came before.",
)
TITLE_FORM: Final = error_rule(
    "compaction.title-form",
    "the summary of a compaction is in a record that no client sends",
    "a `summary` record is a title to every client; `steno repair` writes it as a message",
    "A published description has compactions write a `summary` record, then the boundary, then a "
    "message without a parent. No client does: the summary is a `user` record below the boundary, "
    "and a `summary` record is the title of a session. Such a file loads, but the text of the "
    "summary is never sent. Repair adds the message that clients expect.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
LOGICAL_PARENT: Final = info_rule(
    "compaction.logical-parent",
    "a compaction follows a record that is not in the file",
    "only readers that show what came before need it; they go by the order of the file",
    "A boundary names in `logicalParentUuid` the last record before it. In two of five real files "
    "with compactions that record was never written. Clients do not look at it when they resume.",
)


class CompactionRules(RuleFamily):
    """Compactions: a boundary, and below it the summary of the records before it."""

    rules = rules_in(globals(), "compaction")

    def on_end(self, evidence: Evidence) -> None:
        """Look at every boundary of the main conversation."""
        for node in compaction_boundaries(evidence.graph):
            if node.logical_parent and node.logical_parent not in evidence.graph.by_uuid:
                message = f"it follows {node.logical_parent!r}, which is not in the file"
                evidence.add_finding(LOGICAL_PARENT, node, message)
        for missing in find_missing_summaries(evidence.graph):
            title = missing.title
            rule = NO_SUMMARY if title is None else TITLE_FORM
            message = "" if title is None else f"line {evidence.lines[title.index]} has the summary"
            location = evidence.location(missing.boundary)
            evidence.findings.add(rule, location, message, mild=not missing.is_relevant)
