"""Rules on the chain of records: ids, parents and sub-agents."""

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
    """Whether two records say the same, whatever else differs: their place, their time, ….

    >>> has_same_content({"type": "user", "message": 1, "uuid": "a"}, {"type": "user", "message": 1})
    True
    """
    return [first.get(name) for name in _CONTENT_FIELDS] == [second.get(name) for name in _CONTENT_FIELDS]


def colliding_snapshots(earlier: Node, last: Node) -> list[Node]:
    """Return the snapshot of two records with one id, if the other is none."""
    if earlier.type == last.type:
        return []
    return [node for node in (earlier, last) if node.type == _SNAPSHOT]


DUPLICATE: Final = warning_rule(
    "ids.duplicate",
    "two records have one id, and say the same",
    "clients keep the last of them in the place of the first; `steno repair` leaves one",
    "Copying a session, merging two copies of it, or a client that wrote a line again leaves a record twice. Clients "
    "keep records by id: the last one in the file wins and takes the place of the first, so nothing is lost. 2.1.200 "
    "goes on from the last record of the file though, and sends only what leads up to it when that is a late copy. "
    "Repair keeps the first copy, whose place and time fit its neighbours, and leaves the others out.",
)
CONFLICT: Final = error_rule(
    "ids.conflict",
    "two records have one id, and say different things",
    "clients keep the last one only, the other is lost; `steno repair` sets the other aside",
    "An id names one record of a file. When two different records share one, every client keeps the last in the file, "
    "in the place of the first; what the first said is gone, and records that hung on it hang on the other. Tools "
    "that edit sessions without renaming the copies cause it. Repair sets the earlier record aside: it stays in the "
    "file, under a type that no client takes in, and the last keeps the id.",
)
BAD_UUID: Final = info_rule(
    "ids.bad-uuid",
    "ids are no UUIDs",
    "clients take any text as a record's id, other tools may not",
    "The real client writes a random UUID (version 4) as the id of each record. Clients that resume a file compare "
    "ids as text and take any. Files made by hand or by converters have been seen with other ids.",
)
FILE_NAME: Final = error_rule(
    "ids.file-name",
    "the file is named by a session id that is no UUID",
    "no client resumes it by that name; `steno repair` names it by a UUID",
    "A session is resumed by the name of its file, and every client refuses a name that is no UUID: 2.1.42 and older "
    "say that a valid session id is required, newer ones look for a session of that title besides. The ids inside the "
    "records do not matter. Renaming the file to any UUID is enough, which is what repair does.",
)
SESSION_MISMATCH: Final = info_rule(
    "ids.session-mismatch",
    "the records name another session than the file",
    "clients go by the name of the file; nothing is lost",
    "Each record names its session. In a file that was renamed or copied this differs from the "
    "name of the file. Clients go by the name, and write it into the records they append. Tools "
    "that group by the id in the records will put the session elsewhere.",
)
SEVERAL_SESSIONS: Final = info_rule(
    "ids.several-sessions",
    "the records name several sessions",
    "it holds records of another session: resumed by an old client, forked, or joined",
    "Clients of 1.0 copied a session's records into a new file when they resumed it, and kept the old id in the "
    "copies. Forks and joined files look alike. Clients do not look at the id when they resume.",
)
SNAPSHOT_COLLISION: Final = warning_rule(
    "ids.snapshot-collision",
    "a file snapshot has the id of another record",
    "readers that keep all records by id lose the other one; `steno repair` takes the id away",
    "A file-history snapshot names the message it belongs to in `messageId`, and has no id of its "
    "own. One with a `uuid` that a message has as well hides that message from readers that put "
    "every record into one table. The studied clients only look at messages, system records and "
    "attachments, and are not misled. Repair takes the `uuid` off the snapshot.",
)


class IdRules(RuleFamily):
    """Ids of records, of the session and of its file; copies of records."""

    rules = rules_in(globals(), "ids")

    def on_end(self, evidence: Evidence) -> None:
        """Compare ids within the file, and with its name."""
        _check_duplicates(evidence)
        if not are_uuids(list(evidence.graph.by_uuid)):
            not_uuids = [node for node in evidence.graph.members if not is_uuid(node.uuid or "")]
            rest = f" and {len(not_uuids) - 1:,} more are no UUIDs" if len(not_uuids) > 1 else " is no UUID"
            evidence.add_finding(BAD_UUID, not_uuids[0], f"the id {not_uuids[0].uuid!r}{rest}")
        if has_invalid_name(evidence):
            message = f"{evidence.name!r} is the session's id, but no UUID"
            evidence.findings.add(FILE_NAME, Location(1, Span(0, 0)), message)
        _check_sessions(evidence)


def is_agent_file(evidence: Evidence) -> bool:
    """Whether the file is a sub-agent's own, by its name."""
    return evidence.name.startswith("agent-")


def has_invalid_name(evidence: Evidence) -> bool:
    """Whether the file bears a session id that no client accepts."""
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
            rule, message = SNAPSHOT_COLLISION, f"a {last.type} on line {line} has the same id"
        elif has_same_content(record(earlier).fields, record(last).fields):
            moved = "" if earlier.parent == last.parent else ", with another parent"
            rule, message = DUPLICATE, f"the same record is on line {line} again{moved}"
        else:
            rule, message = CONFLICT, f"another record with this id is on line {line}"
        evidence.findings.add(rule, evidence.location(earlier), message, mild=mild)


# Sessions


def _check_sessions(evidence: Evidence) -> None:
    members = evidence.graph.members
    names = {node.session for node in members} - {""}
    if len(names) > 1:
        first, second, *more = _first_per_session(members)
        more_text = f" and {len(more):,} more" if more else ""
        separator = "," if more else " and"
        message = f"records name {first.session!r}{separator} {second.session!r}{more_text}"
        evidence.add_finding(SEVERAL_SESSIONS, second, message)
    if names and is_uuid(evidence.name) and evidence.name not in names:
        first = next(node for node in members if node.session)
        evidence.add_finding(SESSION_MISMATCH, first, f"records name {first.session!r}")


def _first_per_session(members: list[Node]) -> list[Node]:
    """Return the first record of each session that is named."""
    first_nodes: dict[str, Node] = {}
    for node in members:
        if node.session:
            first_nodes.setdefault(node.session, node)
    return list(first_nodes.values())


EMPTY: Final = error_rule(
    "chain.empty",
    "there is nothing to resume",
    "the file has no message of a conversation; there is nothing to mend",
    "A client resumes a file that has a message of the main conversation: a `user` or `assistant` record, or the "
    "output of a local command. Without one all of them say that no conversation was found. Files that hold nothing "
    "but a title, and empty files, are left behind by clients that never got to a first prompt.",
)
DANGLING: Final = warning_rule(
    "chain.dangling",
    "the parent is not in the file",
    "clients guess where it belongs, older ones begin here; `steno repair` hangs it on the record before",
    "A record names a parent that was never written, or was lost with a damaged line. 2.1.200 and "
    "2.1.325 go on from the record that is nearest before it in time, if that is within five "
    "seconds; otherwise, and in all older clients, the conversation begins here and everything "
    "before it is lost. Repair names the parent that the order and the times of the file suggest.",
)
DANGLING_NOTE: Final = info_rule(
    "chain.dangling-note",
    "the parent of a note is not in the file",
    "no message hangs on it, so nothing is lost",
    "The same as a dangling parent, on a record that is no message and leads to none, such as the "
    "progress of a hook. Clients do not come by it when they resume.",
)
SELF_PARENT: Final = error_rule(
    "chain.self-parent",
    "the record names itself as its parent",
    "older clients lose what is before it; `steno repair` hangs it on the record before",
    "Clients from 2.1.200 on notice that they have been here and go on from the record that is "
    "nearest before it in time; 2.1.42 begins the conversation here. 2.0.76 and older hang. "
    "Repair names the parent that the order and the times of the file suggest.",
)
CYCLE: Final = error_rule(
    "chain.cycle",
    "the parents lead round in a circle",
    "2.0.76 and older hang on it; `steno repair` opens the circle at its first record",
    "Following the parents from the end of the session comes back to a record that was passed already. Newer clients "
    "stop there, 2.0.76 never does. Where the circle does not hold the whole session, what hangs on neither end of it "
    "is lost. Repair opens it at the record that stands first in the file.",
)
FORWARD: Final = info_rule(
    "chain.forward",
    "records stand before their parents",
    "clients go by ids, not by order; 2.1.200 may go on from the wrong record",
    "The client writes a record after its parent, so another order comes from tools that sort or join files, and now "
    "and then from clients that write in parallel. Clients follow ids, and 2.1.325 finds the end of a file in any "
    "order. 2.1.200 goes on from the last record in the file, even if that is the first of the conversation.",
)
SEVERAL_ROOTS: Final = info_rule(
    "chain.several-roots",
    "several records have no parent",
    "the session began more than once; clients go on with one of the beginnings",
    "After the first record only a compaction begins anew without a parent. Taking back the very "
    "first prompt, or joining files, leaves several beginnings. Each is a conversation of its "
    "own, and clients resume the one that the last record, or `last-prompt`, belongs to.",
)
LOST_PARENT: Final = error_rule(
    "chain.lost-parent",
    "an answer has no parent",
    "every client begins the conversation here, and loses what is before; `steno repair` hangs it on the record before",
    "An answer, or the result of a tool call, always follows something. Where its `parentUuid` is null or missing, "
    "the link was lost, and no client tries to find it: for all of them the conversation begins here. Repair names "
    "the parent that the order of the file and the ids of tool calls suggest.",
)
HEADLESS: Final = warning_rule(
    "chain.headless",
    "the conversation begins with an answer",
    "the API wants the user to speak first; `steno repair` puts a prompt before it that says so",
    "The first prompt was lost, with a damaged line or by cutting the file. What clients put before "
    "the conversation may save the request, or not. Repair adds a prompt that says that the "
    "beginning is missing; it invents nothing else.",
)
UNREACHABLE: Final = error_rule(
    "chain.unreachable",
    "messages cannot be reached",
    "the newest client does not send them; `steno repair` mends the links that were lost",
    "The parents of the record that the newest client goes on from do not lead to these messages, and they are no "
    "branch that was taken back: a link was lost on the way, or leads through a record that the client does not know. "
    "It neither shows nor sends them. All are out of reach when `last-prompt` tells it to go on from a sub-agent's "
    "record. Repair mends the links, where the file still says how.",
)
LEAF: Final = info_rule(
    "chain.leaf",
    "clients go on from different messages",
    "which branch is resumed depends on the client",
    "2.1.42 and older go on from the record with the latest time, 2.1.200 from what `last-prompt` "
    "names or the last record of the file, 2.1.325 from what `last-prompt` names or the last end "
    "of a branch. In a file with branches these can be different messages.",
)
UNKNOWN_LINK: Final = info_rule(
    "chain.unknown-link",
    "a record of an unknown type is a link of the conversation",
    "2.1.42 and older lose what is before it",
    "A message hangs on a record whose type no client knows. 2.1.200 and 2.1.325 walk through it; "
    "older ones stop, so that the conversation begins behind it.",
)

_LINK_TYPES: Final = CONVERSATION | {"progress"}
_KNOWN_TYPES: Final = _LINK_TYPES | {""}
_FIRST_TYPES: Final = frozenset(("", "user", "assistant", "attachment"))


class ChainRules(RuleFamily):
    """The chain: the parent of each record, from the first record to the leaf."""

    rules = rules_in(globals(), "chain")

    def on_end(self, evidence: Evidence) -> None:
        """Follow the parents."""
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
    # Files in which only sub-agents speak have a rule of their own.
    if any(is_conversation(node) for node in nodes):
        return
    message = "no record of the file is a message" if nodes else "the file has no record"
    evidence.findings.add(EMPTY, Location(1, Span(0, 0)), message)


def _check_parents(evidence: Evidence) -> None:
    graph = evidence.graph
    if graph.dangling or graph.self_parents:
        leading = {graph.top_ancestors[node.index] for node in graph.members if node.is_message}
        needed = {graph.top_ancestors[node.index] for node in graph.unreachable} | graph.sent
        for node in graph.dangling:
            rule = DANGLING if node.index in leading else DANGLING_NOTE
            message = f"the parent {node.parent!r} is not in the file"
            mild = node.index not in needed
            evidence.findings.add(rule, evidence.location(node), message, mild=mild)
        for node in graph.self_parents:
            mild = node.index not in needed
            evidence.findings.add(SELF_PARENT, evidence.location(node), mild=mild)
    if graph.forward:
        message = f"{len(graph.forward):,} of {len(graph.members):,} records stand before their parents"
        evidence.add_finding(FORWARD, graph.forward[0], message)


def _check_cycles(evidence: Evidence) -> None:
    for cycle in evidence.graph.cycles:
        first = min(cycle, key=lambda node: node.index)
        message = f"the parents of {len(cycle):,} records lead round in a circle"
        mild = not any(evidence.graph.is_relevant(node) for node in cycle)
        evidence.findings.add(CYCLE, evidence.location(first), message, mild=mild)


def _check_roots(evidence: Evidence) -> None:
    graph = evidence.graph
    for node in graph.cut_off:
        subject = "a tool result" if node.is_result else "an answer"
        mild = not graph.is_relevant(node)
        evidence.findings.add(LOST_PARENT, evidence.location(node), f"{subject} has no parent", mild=mild)
    cut_off = {node.index for node in graph.cut_off}
    beginnings = [node for node in graph.roots if not node.is_boundary and node.index not in cut_off]
    if len(beginnings) > 1:
        message = f"{len(beginnings):,} records have no parent, this is the second"
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
    """Whether what is before an answer was compacted into a title, which has its own finding."""
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
    # What is not sent for another reason, such as a missing time, has a finding of its own.
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
        f"{len(unreachable):,} of {len(messages):,} messages cannot be reached; "
        f"{LATEST.version} would load {sent:,}, {round(100 * sent / len(messages))} %"
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
            message = f"{node.type!r} is of no known type, and a link of the conversation"
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
        message = f"{LATEST.version} goes on from line {line}, {version} from line {other}"
        evidence.add_finding(LEAF, newest, message)


FLAG: Final = warning_rule(
    "sidechain.flag",
    "the mark of a sub-agent's records is not consistent",
    "clients send what is not marked and leave out what is; look at which of the records are wrong",
    "Every record says in `isSidechain` whether it belongs to a sub-agent. The mark never changes between a record "
    "and its parent, and all records of a sub-agent's own file have it. Clients leave marked records out of a "
    "conversation, so a wrong mark loses messages or adds some. The file does not say which of two records that "
    "disagree is right, so repair leaves the marks alone, but for a file in which every message has one.",
)
MISSING_FILE: Final = warning_rule(
    "sidechain.missing-file",
    "the file of a sub-agent is missing",
    "the session resumes without it, but what the sub-agent did is not on record",
    "A result says which sub-agent it comes from, and there is no file of that name beside the "
    "session. It was deleted, or the session was copied without its folder. Clients only need the "
    "main file to resume; continuing that sub-agent fails.",
)
ORPHAN_FILE: Final = info_rule(
    "sidechain.orphan-file",
    "a sub-agent's file is named by no result",
    "the sub-agent was cut off, or started by the client or by another sub-agent",
    "There is a sub-agent's file beside the session, and no result in the main file names it. "
    "Clients start some sub-agents of their own, to warm up or to compact; sub-agents start "
    "others; and one that was interrupted leaves no result.",
)
ALL: Final = error_rule(
    "sidechain.all",
    "every message belongs to a sub-agent",
    "no client resumes it; `steno repair` takes the marks away",
    "A client resumes a file with at least one message that is not marked as a sub-agent's. This file has none: it is "
    "a sub-agent's file under another name, or its main conversation was lost. Repair takes the marks away, and the "
    "sub-agent's words become a conversation of their own.",
)

_START: Final = Location(1, Span(0, 0))


class SidechainRules(RuleFamily):
    """Sub-agents: which records belong to them, and their files."""

    rules = rules_in(globals(), "sidechain")

    def __init__(self) -> None:
        self._named: list[tuple[Node, str]] = []
        """The results that say which sub-agent they come from."""

    @staticmethod
    def applies_to(kind: str, shape: RecordShape | None) -> bool:
        """Say whether such a record may be a result with details, which name the sub-agent."""
        return kind == "user" and (shape is None or shape.has("toolUseResult", dict))

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
