"""Rules on the record chain: IDs, parents and sub-agents."""

from collections.abc import Sequence
from typing import Any, Final

from steno.check.client_readings import NEWEST_CLIENTS, is_conversation
from steno.check.evidence import Evidence, RecordShape, RecordView, RuleFamily, SubagentFileInfo, are_uuids
from steno.check.findings import Findings, Location, error_rule, info_rule, rules_in, warning_rule
from steno.check.record_graph import RecordGraph
from steno.check.rules.compaction import find_missing_summaries
from steno.format.paths import is_uuid
from steno.format.source import Span
from steno.session.resume.clients import LATEST
from steno.session.transcript import CONVERSATION, Node

_SNAPSHOT: Final = "file-history-snapshot"
_CONTENT_FIELDS: Final = ("type", "subtype", "message", "content", "attachment", "data")


def has_same_content(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Return whether two records have the same content, regardless of position and time.

    >>> has_same_content({"type": "user", "message": 1, "uuid": "a"}, {"type": "user", "message": 1})
    True
    """
    return [first.get(name) for name in _CONTENT_FIELDS] == [second.get(name) for name in _CONTENT_FIELDS]


def colliding_snapshots(earlier: Node, last: Node) -> list[Node]:
    """Return the file snapshots among two records with the same ID and different types."""
    if earlier.type == last.type:
        return []
    return [node for node in (earlier, last) if node.type == _SNAPSHOT]


DUPLICATE: Final = warning_rule(
    "ids.duplicate",
    "Duplicate record",
    "Claude Code keeps the last copy at the position of the first. Run `steno repair SESSION` to remove the duplicate.",
    "Duplicates come from copying a session, merging two copies, or a client that wrote a line twice. Claude "
    "Code loads records by ID: the last one in the file replaces the first, so no content is lost. Claude Code "
    "2.1.200, however, resumes from the last record of the file and sends only its ancestors, which is wrong "
    "if that record is a late copy. Repair keeps the first copy, whose position and time fit its neighbours, "
    "and removes the others.",
)
CONFLICT: Final = error_rule(
    "ids.conflict",
    "Different records with the same ID",
    "Claude Code keeps only the last record; the others are lost. Run `steno repair SESSION` to set the "
    "earlier record aside.",
    "If two different records share an ID, every version of Claude Code keeps the last one at the position of "
    "the first. The content of the first is lost, and its children become children of the other. The cause is "
    "usually a tool that copies records without new IDs. Repair sets the earlier record aside: it stays in the "
    "file under a type that Claude Code ignores, and the last record keeps the ID.",
)
BAD_UUID: Final = info_rule(
    "ids.bad-uuid",
    "Record IDs that are not UUIDs",
    "Claude Code accepts any text as a record ID; other tools may not. No action is needed.",
    "Claude Code writes a random UUID (version 4) as the ID of each record. On resume it compares IDs as text "
    "and accepts any value. Files written by hand or by converters may contain other IDs.",
)
FILE_NAME: Final = error_rule(
    "ids.file-name",
    "File name is not a UUID",
    "Claude Code does not resume a session by this name. Run `steno repair SESSION` to rename the file.",
    "A session is resumed by its file name, and every version of Claude Code rejects a name that is not a "
    "UUID: 2.1.42 and older report that a valid session ID is required, newer versions also look for a session "
    "with that title. The IDs inside the records do not matter. Repair renames the file to a UUID.",
)
SESSION_MISMATCH: Final = info_rule(
    "ids.session-mismatch",
    "Session ID differs from the file name",
    "Claude Code uses the file name. No content is lost.",
    "Each record contains its session ID. In a renamed or copied file, it differs from the file name. Claude "
    "Code uses the file name, and writes it into the records that it appends. Tools that group by the session "
    "ID in the records assign the session differently.",
)
SEVERAL_SESSIONS: Final = info_rule(
    "ids.several-sessions",
    "Several session IDs",
    "The file contains records of another session, after a fork, a join, or a resume by an old version. No "
    "action is needed.",
    "Claude Code 1.0 copied the records of a session into a new file on resume and kept the old session ID in "
    "the copies. Forked and joined files look similar. Claude Code ignores the session ID of records on resume.",
)
SNAPSHOT_COLLISION: Final = warning_rule(
    "ids.snapshot-collision",
    "File snapshot with the ID of another record",
    "Tools that index all records by ID lose the other record. Run `steno repair SESSION` to remove the ID of "
    "the snapshot.",
    "A file-history snapshot refers to its message by `messageId` and has no ID. If it has the same `uuid` as "
    "a message, readers that put all records into one table lose the message. The studied versions of Claude "
    "Code only load messages, system records and attachments, so they are not affected. Repair removes the "
    "`uuid` of the snapshot.",
)


class IdRules(RuleFamily):
    """IDs of records and sessions, file names, and duplicate records."""

    rules = rules_in(globals(), "ids")

    def on_end(self, evidence: Evidence) -> None:
        """Compare IDs within the file and with the file name."""
        _check_duplicates(evidence)
        if not are_uuids(list(evidence.graph.by_uuid)):
            not_uuids = [node for node in evidence.graph.members if not is_uuid(node.uuid or "")]
            rest = f" and {len(not_uuids) - 1:,} more are not UUIDs" if len(not_uuids) > 1 else " is not a UUID"
            evidence.add_finding(BAD_UUID, not_uuids[0], f"Record ID {not_uuids[0].uuid!r}{rest}")
        if has_invalid_name(evidence):
            message = f"The file name {evidence.name!r} is the session ID but not a UUID"
            evidence.findings.add(FILE_NAME, Location(1, Span(0, 0)), message)
        _check_sessions(evidence)


def is_agent_file(evidence: Evidence) -> bool:
    """Return whether the file is a sub-agent file, by its name."""
    return evidence.name.startswith("agent-")


def has_invalid_name(evidence: Evidence) -> bool:
    """Return whether the file is named by a session ID that Claude Code rejects."""
    if not evidence.name or is_uuid(evidence.name) or is_agent_file(evidence):
        return False
    return evidence.name == _recorded_id(evidence)


def _recorded_id(evidence: Evidence) -> str:
    return next((node.session for node in evidence.transcript.nodes if node.session), "")


# Records


def _check_duplicates(evidence: Evidence) -> None:
    record = evidence.transcript.record
    for earlier, last in evidence.graph.duplicates:
        line = evidence.lines[last.index]
        mild = not evidence.graph.is_relevant(last) and not evidence.graph.is_relevant(earlier)
        if colliding_snapshots(earlier, last):
            rule, message = SNAPSHOT_COLLISION, f"A {last.type} record on line {line} has the same ID"
        elif has_same_content(record(earlier).fields, record(last).fields):
            moved = "" if earlier.parent == last.parent else ", with a different parent"
            rule, message = DUPLICATE, f"The same record is also on line {line}{moved}"
        else:
            rule, message = CONFLICT, f"Another record with this ID is on line {line}"
        evidence.findings.add(rule, evidence.location(earlier), message, mild=mild)


# Sessions


def _check_sessions(evidence: Evidence) -> None:
    members = evidence.graph.members
    names = {node.session for node in members} - {""}
    if len(names) > 1:
        first, second, *more = _first_per_session(members)
        more_text = f" and {len(more):,} more" if more else ""
        separator = "," if more else " and"
        message = f"Records have the session IDs {first.session!r}{separator} {second.session!r}{more_text}"
        evidence.add_finding(SEVERAL_SESSIONS, second, message)
    if names and is_uuid(evidence.name) and evidence.name not in names:
        first = next(node for node in members if node.session)
        evidence.add_finding(SESSION_MISMATCH, first, f"Records have the session ID {first.session!r}")


def _first_per_session(members: list[Node]) -> list[Node]:
    """Return the first record of each session."""
    first_nodes: dict[str, Node] = {}
    for node in members:
        if node.session:
            first_nodes.setdefault(node.session, node)
    return list(first_nodes.values())


EMPTY: Final = error_rule(
    "chain.empty",
    "No messages to resume",
    "The file contains no message of a conversation. No repair is possible.",
    "Claude Code resumes a file with at least one message of the main conversation: a `user` or `assistant` "
    "record, or the output of a local command. Otherwise every version reports that no conversation was found. "
    "Claude Code leaves empty files, or files with only a title, if no prompt is sent.",
)
DANGLING: Final = warning_rule(
    "chain.dangling",
    "Parent record missing",
    "Claude Code guesses the position of this record; older versions drop everything before it. Run `steno "
    "repair SESSION` to relink it.",
    "The parent of the record was never written or was lost with a damaged line. Claude Code 2.1.200 and "
    "2.1.325 continue from the nearest earlier record by time if it is within five seconds; otherwise, and in "
    "all older versions, the conversation starts here and everything before is lost. Repair sets the parent "
    "that file order and times suggest.",
)
DANGLING_NOTE: Final = info_rule(
    "chain.dangling-note",
    "Parent record of a note missing",
    "No message depends on this record. No action is needed.",
    "The record is not a message and no message descends from it, for example the progress of a hook. "
    "Claude Code does not reach such records on resume.",
)
SELF_PARENT: Final = error_rule(
    "chain.self-parent",
    "Record is its own parent",
    "Older versions of Claude Code drop everything before this record. Run `steno repair SESSION` to relink it.",
    "Claude Code 2.1.200 and later detect the loop and continue from the nearest earlier record by time; in "
    "2.1.42 the conversation starts here; 2.0.76 and older hang. Repair sets the parent that file order and "
    "times suggest.",
)
CYCLE: Final = error_rule(
    "chain.cycle",
    "Parent cycle",
    "Claude Code 2.0.76 and older hang. Run `steno repair SESSION` to break the cycle at its first record.",
    "Following the parents from the end of the session returns to a record already visited. Newer versions of "
    "Claude Code stop there; 2.0.76 never stops. Records that are not part of the cycle or its descendants are "
    "lost. Repair breaks the cycle at the first record in the file.",
)
FORWARD: Final = info_rule(
    "chain.forward",
    "Records before their parents",
    "Claude Code 2.1.200 may resume from the wrong record. Other versions are not affected.",
    "Claude Code writes a record after its parent. Another order comes from tools that sort or join files, and "
    "occasionally from parallel writes. Claude Code follows IDs, and 2.1.325 finds the leaf in any order. "
    "2.1.200 resumes from the last record in the file, even if it is the first of the conversation.",
)
SEVERAL_ROOTS: Final = info_rule(
    "chain.several-roots",
    "Several records without a parent",
    "The file contains several conversations; Claude Code resumes one of them. No action is needed.",
    "After the first record, only a compaction starts without a parent. Rewinding to the very first prompt or "
    "joining files creates several starts. Each is a separate conversation, and Claude Code resumes the one "
    "that contains the last record or the record in `last-prompt`.",
)
LOST_PARENT: Final = error_rule(
    "chain.lost-parent",
    "Answer without a parent",
    "Claude Code drops everything before this record. Run `steno repair SESSION` to relink it to the previous record.",
    "An answer or a tool result always has a parent. If its `parentUuid` is null or missing, the link was lost "
    "and Claude Code does not restore it: in every version the conversation starts here. Repair sets the "
    "parent that file order and tool call IDs suggest.",
)
HEADLESS: Final = warning_rule(
    "chain.headless",
    "Conversation starts with an answer",
    "The API requires a prompt first. Run `steno repair SESSION` to insert one that states that the start is missing.",
    "The first prompt was lost with a damaged line or when the file was cut. Text that Claude Code inserts "
    "before the conversation may or may not make the request valid. Repair inserts a prompt that states that "
    "the start of the conversation is missing.",
)
UNREACHABLE: Final = error_rule(
    "chain.unreachable",
    "Unreachable messages",
    "The latest Claude Code does not send these messages. Run `steno repair SESSION` to restore lost links.",
    "These messages are neither ancestors of the leaf that the latest Claude Code resumes from, nor part of an "
    "abandoned branch: a link was lost, or leads through a record of an unknown type. Claude Code neither "
    "shows nor sends them. All messages are unreachable if `last-prompt` names a sub-agent record. Repair "
    "restores the links that can be derived from the file.",
)
LEAF: Final = info_rule(
    "chain.leaf",
    "Leaf depends on the Claude Code version",
    "Versions of Claude Code resume different branches. No action is needed.",
    "Claude Code 2.1.42 and older resume from the record with the latest time, 2.1.200 from the record in "
    "`last-prompt` or the last record of the file, 2.1.325 from the record in `last-prompt` or the last end of "
    "a branch. In a file with branches, these can be different messages.",
)
UNKNOWN_LINK: Final = info_rule(
    "chain.unknown-link",
    "Unknown record type in the conversation",
    "Claude Code 2.1.42 and older drop everything before this record. No action is needed for newer versions.",
    "The parent of a message has a type that no studied version of Claude Code writes. 2.1.200 and 2.1.325 "
    "follow it to the records before; in older versions the conversation starts after it.",
)

_LINK_TYPES: Final = CONVERSATION | {"progress"}
_KNOWN_TYPES: Final = _LINK_TYPES | {""}
_FIRST_TYPES: Final = frozenset(("", "user", "assistant", "attachment"))


class ChainRules(RuleFamily):
    """Parent links from the first record to the leaf."""

    rules = rules_in(globals(), "chain")

    def on_end(self, evidence: Evidence) -> None:
        """Check the parents of all records."""
        _check_parents(evidence)
        _check_cycles(evidence)
        _check_roots(evidence)
        if is_agent_file(evidence):
            return
        _check_messages(evidence)
        _check_beginning(evidence)
        _check_unreachable(evidence)
        _check_links(evidence)
        _check_leaves(evidence)


def _check_messages(evidence: Evidence) -> None:
    nodes = evidence.transcript.nodes
    # Files that contain only sub-agent messages have a separate rule.
    if any(is_conversation(node) for node in nodes):
        return
    message = "The file contains no message" if nodes else "The file contains no record"
    evidence.findings.add(EMPTY, Location(1, Span(0, 0)), message)


def _check_parents(evidence: Evidence) -> None:
    graph = evidence.graph
    if graph.dangling or graph.self_parents:
        leading = {graph.top_ancestors[node.index] for node in graph.members if node.is_message}
        needed = {graph.top_ancestors[node.index] for node in graph.unreachable} | graph.sent
        for node in graph.dangling:
            rule = DANGLING if node.index in leading else DANGLING_NOTE
            message = f"Parent {node.parent!r} is not in the file"
            mild = node.index not in needed
            evidence.findings.add(rule, evidence.location(node), message, mild=mild)
        for node in graph.self_parents:
            mild = node.index not in needed
            evidence.findings.add(SELF_PARENT, evidence.location(node), mild=mild)
    if graph.forward:
        message = f"{len(graph.forward):,} of {len(graph.members):,} records come before their parents"
        evidence.add_finding(FORWARD, graph.forward[0], message)


def _check_cycles(evidence: Evidence) -> None:
    for cycle in evidence.graph.cycles:
        first = min(cycle, key=lambda node: node.index)
        message = f"The parents of {len(cycle):,} records form a cycle"
        mild = not any(evidence.graph.is_relevant(node) for node in cycle)
        evidence.findings.add(CYCLE, evidence.location(first), message, mild=mild)


def _check_roots(evidence: Evidence) -> None:
    graph = evidence.graph
    for node in graph.cut_off:
        subject = "Tool result" if node.is_result else "Answer"
        mild = not graph.is_relevant(node)
        evidence.findings.add(LOST_PARENT, evidence.location(node), f"{subject} without a parent", mild=mild)
    cut_off = {node.index for node in graph.cut_off}
    beginnings = [node for node in graph.roots if not node.is_boundary and node.index not in cut_off]
    if len(beginnings) > 1:
        message = f"{len(beginnings):,} records have no parent; this is the second"
        evidence.add_finding(SEVERAL_ROOTS, beginnings[1], message)


def _check_beginning(evidence: Evidence) -> None:
    graph = evidence.graph
    for node in graph.conversation:
        is_answer = node.type == "assistant" and node not in graph.cut_off
        if is_answer and not _follows_title_compaction(graph, node):
            evidence.add_finding(HEADLESS, node)
        if node.type in _FIRST_TYPES or node.subtype == "local_command":
            return


def _follows_title_compaction(graph: RecordGraph, first: Node) -> bool:
    """Return whether an answer follows a title compaction, which has a separate finding."""
    return any(
        missing.title is not None and (missing.restart is first if missing.restart else missing.is_relevant)
        for missing in find_missing_summaries(graph)
    )


def _check_unreachable(evidence: Evidence) -> None:
    graph = evidence.graph
    reading = graph.readings.of(LATEST)
    if reading.chain == graph.conversation and not graph.unreachable:
        return
    reached = {node.index for node in reading.chain or ()}
    if all(node.index in reached for node in (*graph.messages, *graph.unreachable)):
        return
    messages = {node.index: node for node in (*graph.messages, *graph.unreachable)}
    not_resumed = [node for index, node in messages.items() if index not in reached]
    unreachable_indexes = {node.index for node in graph.unreachable}
    # Messages that are not sent for another reason, such as a missing time, have a separate finding.
    refuses = reading.refused not in ("", "no leaf")
    unreachable = {
        node.index: node
        for node in not_resumed
        if node.index in unreachable_indexes or (not refuses and _is_sound(node))
    }
    if not unreachable:
        return
    sent = len(messages) - len(not_resumed)
    message = (
        f"{len(unreachable):,} of {len(messages):,} messages are unreachable; Claude Code {LATEST.version} "
        f"would load {sent:,} ({round(100 * sent / len(messages))} %)"
    )
    evidence.add_finding(UNREACHABLE, unreachable[min(unreachable)], message)


def _is_sound(node: Node) -> bool:
    return LATEST.can_parse(node) and LATEST.accepts(node) and node.has_content


def _check_links(evidence: Evidence) -> None:
    chain = evidence.graph.chain
    unknown = [node for node in chain if node.type not in _KNOWN_TYPES]
    if not unknown:
        return
    needed = {node.parent for node in chain if node.is_message or node.type in _LINK_TYPES}
    for node in unknown:
        if node.uuid in needed:
            message = f"Unknown record type {node.type!r} in the conversation"
            evidence.add_finding(UNKNOWN_LINK, node, message)


def _check_leaves(evidence: Evidence) -> None:
    readings = evidence.graph.readings
    ends = {
        versions[-1]: last
        for versions, client in NEWEST_CLIENTS.items()
        if (last := readings.of(client).last) is not None
    }
    newest = ends.get(LATEST.version)
    other_ends = {version: node for version, node in ends.items() if node is not newest}
    if newest is not None and other_ends:
        version, node = next(reversed(other_ends.items()))
        line, other = evidence.lines[newest.index], evidence.lines[node.index]
        message = f"{LATEST.version} resumes from line {line}, {version} from line {other}"
        evidence.add_finding(LEAF, newest, message)


FLAG: Final = warning_rule(
    "sidechain.flag",
    "Inconsistent isSidechain flags",
    "Claude Code sends unflagged records and omits flagged ones. Compare the flags of the records; repair does "
    "not change them.",
    "`isSidechain` marks the records of a sub-agent. The flag never changes between a record and its parent, "
    "and all records in a sub-agent file have it. Claude Code omits flagged records from a conversation, so a "
    "wrong flag drops or adds messages. The file does not show which of two conflicting flags is correct, so "
    "repair changes flags only if every message has one.",
)
MISSING_FILE: Final = warning_rule(
    "sidechain.missing-file",
    "Sub-agent file missing",
    "The session resumes, but the records of the sub-agent are not available. Restore the file from a backup "
    "or the archive.",
    "A tool result names its sub-agent, but the file of that sub-agent is not next to the session. It was "
    "deleted, or the session was copied without its directory. Claude Code only needs the main file to resume; "
    "continuing that sub-agent fails.",
)
ORPHAN_FILE: Final = info_rule(
    "sidechain.orphan-file",
    "Unreferenced sub-agent file",
    "The sub-agent was interrupted, or Claude Code or another sub-agent started it. No action is needed.",
    "No tool result in the main file names this sub-agent file. Claude Code starts some sub-agents itself, to "
    "warm up or to compact; sub-agents start other sub-agents; and an interrupted sub-agent has no result.",
)
ALL: Final = error_rule(
    "sidechain.all",
    "All messages flagged as sub-agent messages",
    "Claude Code does not resume this file. Run `steno repair SESSION` to remove the flags.",
    "Claude Code resumes a file with at least one message that is not flagged as a sub-agent's. This file has "
    "none: it is a renamed sub-agent file, or its main conversation was lost. Repair removes the flags, so "
    "that the sub-agent's messages become a main conversation.",
)

_START: Final = Location(1, Span(0, 0))


class SidechainRules(RuleFamily):
    """Sub-agent flags and sub-agent files."""

    rules = rules_in(globals(), "sidechain")

    def __init__(self) -> None:
        self._named: list[tuple[Node, str]] = []
        """Tool results that name their sub-agent."""

    @staticmethod
    def applies_to(kind: str, shape: RecordShape | None) -> bool:
        """Return whether a record of this kind and shape may be a tool result that names its sub-agent."""
        return kind == "user" and (shape is None or shape.has("toolUseResult", dict))

    def on_record(self, view: RecordView, _findings: Findings) -> None:
        """Record the sub-agent that a tool result names."""
        if view.node.results:
            detail: Any = view.fields.get("toolUseResult")
            name = detail.get("agentId") if detail.__class__ is dict else None
            if isinstance(name, str) and name:
                self._named.append((view.node, name))

    def on_end(self, evidence: Evidence) -> None:
        """Check the sub-agent flags and files."""
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
        message = f"{len(unmarked):,} of {len(members):,} records of a sub-agent file are not flagged"
        evidence.add_finding(FLAG, unmarked[0], message)


def _check_marks(evidence: Evidence) -> None:
    marked = [node for node in evidence.graph.members if node.sidechain]
    if not marked:
        return
    messages = [node for node in evidence.transcript.nodes if node.is_message]
    if messages and all(node.sidechain for node in messages):
        evidence.add_finding(ALL, messages[0], f"All {len(messages):,} messages are flagged as sub-agent messages")
    for node in evidence.graph.members:
        parent = evidence.graph.parent(node)
        if parent is not None and parent.sidechain != node.sidechain:
            own_mark = "This record is flagged as a sub-agent's" if node.sidechain else "this record is not"
            other = "its parent is not" if node.sidechain else "The parent is flagged as a sub-agent's"
            first, second = (own_mark, other) if node.sidechain else (other, own_mark)
            evidence.add_finding(FLAG, node, f"{first}, {second}")


def _check_files(evidence: Evidence, agents: Sequence[SubagentFileInfo], results: Sequence[tuple[Node, str]]) -> None:
    file_ids = {note.agent_id for note in agents}
    inline = {node.agent_id for node in evidence.transcript.nodes if node.sidechain}
    named_ids: set[str] = set()
    known = file_ids | inline
    for node, agent_id in results:
        if agent_id not in named_ids and agent_id not in known:
            evidence.add_finding(MISSING_FILE, node, f"The file of sub-agent {agent_id!r} is missing")
        named_ids.add(agent_id)
    for note in agents:
        if note.agent_id not in named_ids:
            message = f"No tool result names the sub-agent {note.agent_id!r}"
            evidence.findings.add(ORPHAN_FILE, _START, message)
        if note.records and not note.flagged:
            message = f"No record of the sub-agent {note.agent_id!r} is flagged as a sub-agent's"
            evidence.findings.add(FLAG, _START, message)
