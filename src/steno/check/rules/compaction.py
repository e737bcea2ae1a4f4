"""Compactions: a boundary, below it the summary of what came before."""

from typing import Final

from steno.check.compacted import boundaries, unsummed
from steno.check.evidence import Evidence
from steno.check.findings import Rule
from steno.check.published import PAGE

__all__ = ["RULES", "look"]

NO_SUMMARY: Final = Rule(
    "compaction.no-summary",
    "error",
    "there is no summary behind a compaction",
    "clients send nothing of what came before; `steno repair` takes the boundary off the chain",
    "Everything before the last boundary is left out on resume, and the message right below the "
    "boundary, the summary, stands for it. Without one the model knows nothing of what came "
    "before, and no client says so. The compaction was cut off, or the summary was lost with a "
    "damaged line. Repair lets the conversation go on from what came before.",
)
TITLE_FORM: Final = Rule(
    "compaction.title-form",
    "error",
    "the summary of a compaction is in a record that no client sends",
    "a `summary` record is a title to every client; `steno repair` writes it as a message",
    "A published description has compactions write a `summary` record, then the boundary, then a "
    "message without a parent. No client does: the summary is a `user` record below the boundary, "
    "and a `summary` record is the title of a session. Such a file loads, but the text of the "
    "summary is never sent. Repair adds the message that clients expect.",
    docs=PAGE,
)
LOGICAL_PARENT: Final = Rule(
    "compaction.logical-parent",
    "info",
    "a compaction follows a record that is not in the file",
    "only readers that show what came before need it; they go by the order of the file",
    "A boundary names in `logicalParentUuid` the last record before it. In two of five real files "
    "with compactions that record was never written. Clients do not look at it when they resume.",
)
RULES: Final[tuple[Rule, ...]] = (NO_SUMMARY, TITLE_FORM, LOGICAL_PARENT)


def look(evidence: Evidence) -> None:
    """Look at every boundary of the main conversation."""
    for node in boundaries(evidence.graph):
        if node.logical_parent and node.logical_parent not in evidence.graph.by_uuid:
            words = f"it follows {node.logical_parent!r}, which is not in the file"
            evidence.note(LOGICAL_PARENT, node, words)
    for each in unsummed(evidence.graph):
        title = each.title
        rule = NO_SUMMARY if title is None else TITLE_FORM
        words = "" if title is None else f"line {evidence.lines[title.index]} has the summary"
        place = evidence.place(each.boundary)
        evidence.findings.add(rule, place, words, mild=not each.matters)
