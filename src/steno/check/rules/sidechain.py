"""Sub-agents: which records belong to them, and their files."""

from collections.abc import Sequence
from typing import Any, Final

from steno.check.evidence import Evidence, RecordShape, RecordView, SubagentFileInfo
from steno.check.findings import Findings, Location, Rule
from steno.check.rules.ids import is_agent_file
from steno.format.source import Span
from steno.session.transcript import Node

FLAG: Final = Rule(
    "sidechain.flag",
    "warning",
    "the mark of a sub-agent's records is not consistent",
    "clients send what is not marked and leave out what is; look at which of the records are wrong",
    "Every record says in `isSidechain` whether it belongs to a sub-agent. The mark never changes "
    "between a record and its parent, and all records of a sub-agent's own file have it. Clients "
    "leave marked records out of a conversation, so a wrong mark loses messages or adds some. The "
    "file does not say which of two records that disagree is right, so repair leaves the marks "
    "alone, but for a file in which every message has one.",
)
MISSING_FILE: Final = Rule(
    "sidechain.missing-file",
    "warning",
    "the file of a sub-agent is missing",
    "the session resumes without it, but what the sub-agent did is not on record",
    "A result says which sub-agent it comes from, and there is no file of that name beside the "
    "session. It was deleted, or the session was copied without its folder. Clients only need the "
    "main file to resume; continuing that sub-agent fails.",
)
ORPHAN_FILE: Final = Rule(
    "sidechain.orphan-file",
    "info",
    "a sub-agent's file is named by no result",
    "the sub-agent was cut off, or started by the client or by another sub-agent",
    "There is a sub-agent's file beside the session, and no result in the main file names it. "
    "Clients start some sub-agents of their own, to warm up or to compact; sub-agents start "
    "others; and one that was interrupted leaves no result.",
)
ALL: Final = Rule(
    "sidechain.all",
    "error",
    "every message belongs to a sub-agent",
    "no client resumes it; `steno repair` takes the marks away",
    "A client resumes a file with at least one message that is not marked as a sub-agent's. This "
    "file has none: it is a sub-agent's file under another name, or its main conversation was "
    "lost. Repair takes the marks away, and the sub-agent's words become a conversation of their "
    "own.",
)
RULES: Final[tuple[Rule, ...]] = (FLAG, MISSING_FILE, ORPHAN_FILE, ALL)

_START: Final = Location(1, Span(0, 0))


def applies_to(kind: str, shape: RecordShape | None) -> bool:
    """Say whether such a record may be a result with details, which name the sub-agent."""
    return kind == "user" and (shape is None or shape.has("toolUseResult", dict))


class FileChecker:
    """Looks for the marks of sub-agents in one file, and for the names of their files."""

    def __init__(self) -> None:
        self._named: list[tuple[Node, str]] = []
        """The results that say which sub-agent they come from."""

    def on_record(self, view: RecordView, _findings: Findings) -> None:
        """Remember which sub-agent a result names."""
        if view.node.results:
            detail: Any = view.fields.get("toolUseResult")
            name = detail.get("agentId") if detail.__class__ is dict else None
            if isinstance(name, str) and name:
                self._named.append((view.node, name))

    def on_end(self, evidence: Evidence) -> None:
        """Look at the marks of sub-agents, and for their files."""
        if is_agent_file(evidence):
            _check_own_marks(evidence)
        else:
            _check_marks(evidence)
        if evidence.agents is not None:
            _check_files(evidence, evidence.agents, self._named)


def _check_own_marks(evidence: Evidence) -> None:
    members = evidence.graph.members
    unmarked = [node for node in members if not node.sidechain]
    if unmarked:
        message = f"{len(unmarked):,} of {len(members):,} records of a sub-agent's file are not marked"
        evidence.add_finding(FLAG, unmarked[0], message)


def _check_marks(evidence: Evidence) -> None:
    marked = [node for node in evidence.graph.members if node.sidechain]
    if not marked:
        return
    messages = [node for node in evidence.transcript.nodes if node.is_message]
    if messages and all(node.sidechain for node in messages):
        evidence.add_finding(ALL, messages[0], f"all {len(messages):,} messages are marked as a sub-agent's")
    for node in evidence.graph.members:
        parent = evidence.graph.parent(node)
        if parent is not None and parent.sidechain != node.sidechain:
            own_mark = "this record is marked as a sub-agent's" if node.sidechain else "this one is not"
            other = "its parent is not" if node.sidechain else "its parent is marked as a sub-agent's"
            first, second = (own_mark, other) if node.sidechain else (other, own_mark)
            evidence.add_finding(FLAG, node, f"{first}, {second}")


# Files


def _check_files(evidence: Evidence, agents: Sequence[SubagentFileInfo], results: Sequence[tuple[Node, str]]) -> None:
    file_ids = {note.agent_id for note in agents}
    inline = {node.agent_id for node in evidence.transcript.nodes if node.sidechain}
    named_ids: set[str] = set()
    known = file_ids | inline
    for node, agent_id in results:
        if agent_id not in named_ids and agent_id not in known:
            evidence.add_finding(MISSING_FILE, node, f"there is no file of the sub-agent {agent_id!r}")
        named_ids.add(agent_id)
    for note in agents:
        if note.agent_id not in named_ids:
            message = f"no result names the sub-agent {note.agent_id!r}"
            evidence.findings.add(ORPHAN_FILE, _START, message)
        if note.records and not note.flagged:
            message = f"no record of the sub-agent {note.agent_id!r} is marked as a sub-agent's"
            evidence.findings.add(FLAG, _START, message)
