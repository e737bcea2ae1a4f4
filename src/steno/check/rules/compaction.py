"""Compactions: a boundary, followed by a summary of the records before it.

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
    "the compaction summary is not sent: it is in a `summary` record, which Claude Code does not send"
)


class MissingSummary(msgspec.Struct, frozen=True):
    """A compaction boundary without a summary after it."""

    boundary: Node
    title: Node | None
    """The `summary` record with the text of the summary, if any; Claude Code does not send it."""
    restart: Node | None
    """The root that continues the conversation, if the boundary has no children."""
    is_relevant: bool
    """Whether the conversation continues after this boundary; only the last boundary can be relevant."""


def compaction_boundaries(graph: RecordGraph) -> list[Node]:
    """Return the compaction boundaries of the main conversation."""
    # Most records have no subtype, so the check is skipped for them.
    return [node for node in graph.members if _is_main_boundary(node)]


def _is_main_boundary(node: Node) -> bool:
    return bool(node.subtype) and node.is_boundary and not node.sidechain


def find_missing_summaries(graph: RecordGraph) -> Iterator[MissingSummary]:
    """Yield the boundaries without a summary below them.

    The first prompt below a boundary, ignoring notes, is its summary: Claude Code does not require a flag. If a
    `summary` record was written with the boundary, only a flagged prompt counts as the summary. A boundary without an
    ID is of that form or has no effect.
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
    """Return whether the last summary of a conversation is in a record that Claude Code does not send."""
    if next(transcript.of_type("summary"), None) is None:
        # Most files have no such record, so the graph is not needed.
        return False
    return any(
        missing.is_relevant and missing.title is not None for missing in find_missing_summaries(RecordGraph(transcript))
    )


def _prompt_below(boundary: Node, children_of: dict[str, list[Node]]) -> Node | None:
    """Return the first prompt that descends from a boundary, directly or through notes."""
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
    """Lookups shared by all boundaries of a file."""

    def __init__(self, graph: RecordGraph) -> None:
        self._graph = graph
        self.title = graph.title_compactions.summary_of

    def is_marked(self, prompt: Node) -> bool:
        """Return whether a prompt is flagged as a compaction summary."""
        return self._graph.transcript.record(prompt).envelope.is_compact_summary is True

    def restart(self, boundary: Node) -> Node | None:
        """Return the root that continues the conversation after a boundary without children."""
        if boundary.index in self._chain:
            return None
        return self._restarts.get(boundary.index)

    @cached_property
    def _restarts(self) -> dict[int, Node]:
        """The root that continues the conversation after each boundary, by index of the boundary."""
        nodes = self._graph.transcript.nodes
        boundaries = self._graph.title_compactions.boundaries.items()
        return {boundary.index: nodes[index] for index, boundary in boundaries if self._graph.is_relevant(nodes[index])}

    def continues(self, boundary: Node, restart: Node | None) -> bool:
        """Return whether records follow a boundary."""
        if restart is not None:
            return True
        return boundary.index in self._chain and self._graph.chain[-1] is not boundary

    @cached_property
    def _chain(self) -> frozenset[int]:
        return frozenset(node.index for node in self._graph.chain)


NO_SUMMARY: Final = error_rule(
    "compaction.no-summary",
    "Compaction without a summary",
    "Claude Code sends nothing from before the compaction. Run `steno repair SESSION` to restore the earlier messages.",
    "On resume, everything before the last boundary is replaced by the message directly after it, the summary. "
    "Without a summary, the earlier conversation is missing from the model's context without a warning. The "
    "compaction was interrupted, or the summary was lost with a damaged line. Repair removes the boundary from "
    "the chain, so that the earlier messages are sent.",
)
TITLE_FORM: Final = error_rule(
    "compaction.title-form",
    "Compaction summary in a record that is not sent",
    "Claude Code treats a `summary` record as a title. Run `steno repair SESSION` to write the summary as a message.",
    "In a published description, compactions write a `summary` record, then the boundary, then a message "
    "without a parent. Claude Code does not: the summary is a `user` record below the boundary, and a "
    "`summary` record is the title of a session. Such a file loads, but the text of the summary is never sent. "
    "Repair adds the message that Claude Code expects.",
    docs=PUBLISHED_DESCRIPTIONS_PAGE,
)
LOGICAL_PARENT: Final = info_rule(
    "compaction.logical-parent",
    "Logical parent of a compaction missing",
    "Claude Code does not use it on resume. No action is needed.",
    "`logicalParentUuid` of a boundary names the last record before it. In two of five real files with "
    "compactions, that record was never written. Claude Code ignores the field on resume; readers that show "
    "the earlier records fall back to file order.",
)


class CompactionRules(RuleFamily):
    """Compaction boundaries and their summaries."""

    rules = rules_in(globals(), "compaction")

    def on_end(self, evidence: Evidence) -> None:
        """Check every boundary of the main conversation."""
        for node in compaction_boundaries(evidence.graph):
            if node.logical_parent and node.logical_parent not in evidence.graph.by_uuid:
                message = f"Logical parent {node.logical_parent!r} is not in the file"
                evidence.add_finding(LOGICAL_PARENT, node, message)
        for missing in find_missing_summaries(evidence.graph):
            title = missing.title
            rule = NO_SUMMARY if title is None else TITLE_FORM
            message = "" if title is None else f"The summary is on line {evidence.lines[title.index]}"
            location = evidence.location(missing.boundary)
            evidence.findings.add(rule, location, message, mild=not missing.is_relevant)
