"""Repair stages for the record chain: parents, cycles, start, compactions, leaf.

Missing parents are bridged as Claude Code bridges them. A conversation that would start with an answer gets a prompt
before it. A boundary without a summary is removed from the chain; a summary stored as a title is written as a message.
The repaired session continues from the same record as the broken one.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from steno.check.record_graph import RecordGraph
from steno.check.repair.edits import EditPlan, envelope_of, new_uuid
from steno.check.repair.record_repairs import just_after
from steno.check.rules.compaction import MissingSummary, find_missing_summaries
from steno.format.records import read_time, time_text
from steno.session.resume.clients import Client
from steno.session.resume.replay import MISSING_BEGINNING, as_resumed, resumed_chain
from steno.session.transcript import CONVERSATION, Node


class ParentFinder:
    """Finds a new parent for a record: the nearest earlier record by time, else by file order.

    The parent of a tool result is its call, or a descendant of it.
    """

    def __init__(self, graph: RecordGraph, broken: list[Node]) -> None:
        self.graph = graph
        self.freed: list[Node] = []
        """Records unlinked from a later record; they also need a new parent."""
        # The current parents of these records are ignored.
        self._tops = {node.index for node in broken}
        self._trees = _ParentForest(graph, self._tops)
        by_speaker: defaultdict[tuple[bool, str], list[Node]] = defaultdict(list)
        self._calls: defaultdict[str, list[Node]] = defaultdict(list)
        for node in graph.members:
            if node.type in CONVERSATION:
                by_speaker[_speaker(node)].append(node)
            for call in node.uses:
                self._calls[call].append(node)
        self._conversations = {speaker: _ConversationRecords(nodes) for speaker, nodes in by_speaker.items()}
        self._compacted = any(node.is_boundary for node in graph.members)

    def find_parent(self, node: Node) -> Node | None:
        """Return the new parent, or None if no record comes earlier."""
        conversation = self._conversations.get(_speaker(node))
        if conversation is None:
            return None
        nearest, link = self._nearest_record(conversation, node)
        call = self._call(node, nearest, link)
        if nearest is None and call is None and self._free_first_record(conversation, node):
            nearest, link = self._nearest_record(conversation, node)
            call = self._call(node, nearest, link)
        parent = call or nearest
        if parent is None:
            return None
        if link is not None and self._trees.descends_from(parent.index, link.index):
            self._free(link)
        self._trees.set_parent(node.index, parent.index)
        return parent

    def _nearest_record(self, conversation: "_ConversationRecords", node: Node) -> tuple[Node | None, Node | None]:
        """Return the nearest earlier record that can become the parent, and the link to cut.

        The second record is the one to unlink from its parent first, or None.
        """
        hopeless = {node.index}
        for candidate in conversation.before(node):
            if candidate is node:
                continue
            if self._trees.top(candidate.index) != node.index:
                return candidate, None
            link = self._wrong_link(candidate, hopeless)
            if link is not None:
                return candidate, link
        return None, None

    def _wrong_link(self, start: Node, hopeless: set[int]) -> Node | None:
        """Return the first ancestor whose parent comes later in file and time order, if it may be unlinked.

        `hopeless` collects the indexes of records without such an ancestor. Records with a new parent are not unlinked.
        """
        nodes = self.graph.transcript.nodes
        record = start
        trail: list[int] = []
        while record.index not in hopeless:
            parent = nodes[self._trees.parent_of(record.index)]
            # File order alone may be wrong (swapped lines), and so may times (clock changes): require both.
            later = record.index < parent.index and _is_earlier(record, parent)
            if later and record.index not in self._tops:
                return record
            trail.append(record.index)
            record = parent
        hopeless.update(trail)
        return None

    def _free(self, node: Node) -> None:
        self.freed.append(node)
        self._tops.add(node.index)
        self._trees.make_top(node.index)

    def _call(self, node: Node, nearest: Node | None, link: Node | None) -> Node | None:
        """Return the call that a tool result answers, unless the nearest record belongs to that response.

        Of several calls with the same ID, prefer an ancestor of the nearest record, then the latest earlier call.
        `link` is the record that would be unlinked, with all its descendants.
        """
        calls = [
            call
            for call in (self._calls.get(node.results[0], ()) if node.results else ())
            if _speaker(call) == _speaker(node) and self._is_free(call, node, link)
        ]
        if not calls or nearest is None:
            return _nearest_call(calls, node)
        nearest_call_index = self._trees.first_above(nearest.index, {call.index for call in calls})
        if nearest_call_index is None:
            if self._compacted:
                calls = [call for call in calls if not self._is_compacted_away(call, nearest)]
            return _nearest_call(calls, node)
        call = self.graph.transcript.nodes[nearest_call_index]
        if nearest.is_result or (nearest.type == call.type and nearest.message_id == call.message_id):
            return None
        return None if self._compacted and self._is_compacted_away(call, nearest) else call

    def _is_free(self, call: Node, node: Node, link: Node | None) -> bool:
        """Return whether a call does not descend from a record, or will not once the link is cut."""
        if self._trees.top(call.index) != node.index:
            return True
        return link is not None and self._trees.descends_from(call.index, link.index)

    def _is_compacted_away(self, call: Node, later: Node) -> bool:
        """Return whether a compaction lies between a call and a later record."""
        boundary = self._boundary(later)
        if boundary is None or self._boundary(call) is boundary:
            return False
        return call.index < boundary.index

    def _boundary(self, node: Node) -> Node | None:
        """Return the compaction boundary above a record, if any."""
        seen: set[int] = set()
        while not node.is_boundary and node.index not in seen:
            seen.add(node.index)
            node = self.graph.transcript.nodes[self._trees.parent_of(node.index)]
        return node if node.is_boundary else None

    def _free_first_record(self, conversation: "_ConversationRecords", node: Node) -> bool:
        """Unlink the first record of the file from a later one that descends from `node`.

        Not if timestamps show that `node` came first and the lines were only swapped.
        """
        first = conversation.nodes[0]
        parent = self.graph.parent(first)
        if parent is None or first is node or parent.index < first.index:
            return False
        if first.index in self._tops or (_may_begin(node) and _is_earlier(node, first)):
            return False
        self._free(first)
        return True


class _ParentForest:
    """Trees of records, identified by their topmost record; merged as parents are assigned."""

    def __init__(self, graph: RecordGraph, tops: set[int]) -> None:
        by_uuid = graph.by_uuid
        self._parents = list(range(len(graph.transcript.nodes)))
        self._further: dict[int, int] = {}
        """Shortcut to a higher ancestor for each record queried, so that each path is walked once."""
        for node in graph.members:
            parent = by_uuid.get(node.parent) if node.parent is not None else None
            if parent is not None and node.index not in tops:
                self._parents[node.index] = parent.index

    def top(self, index: int) -> int:
        """Return the index of the topmost ancestor of a record."""
        parents, further = self._parents, self._further
        trail = [index]
        seen = {index}
        while (higher := further.get(index, parents[index])) not in seen:
            index = higher
            seen.add(index)
            trail.append(index)
        further.update(dict.fromkeys(trail[:-1], index))
        return index

    def parent_of(self, index: int) -> int:
        """Return the index of a record's parent, or its own index if it is a top."""
        return self._parents[index]

    def first_above(self, index: int, candidates: set[int]) -> int | None:
        """Return the nearest of the candidates that is the record itself or an ancestor, or None."""
        seen: set[int] = set()
        while index not in seen and index not in candidates:
            seen.add(index)
            index = self._parents[index]
        return index if index in candidates else None

    def descends_from(self, index: int, ancestor: int) -> bool:
        """Return whether a record is `ancestor` or a descendant of it."""
        return self.first_above(index, {ancestor}) is not None

    def set_parent(self, index: int, parent: int) -> None:
        """Set the parent of a top."""
        self._parents[index] = parent

    def make_top(self, index: int) -> None:
        """Make a record the top of its tree."""
        self._parents[index] = index
        self._further.clear()


class _ConversationRecords:
    """Records of the main conversation or of one sub-agent, in file order and time order."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.places = [node.index for node in nodes]
        timed = [
            (time.timestamp(), -node.index, node) for node in nodes if (time := read_time(node.timestamp)) is not None
        ]
        self.timeline = sorted(timed, key=lambda entry: entry[:2])

    def before(self, node: Node) -> Iterator[Node]:
        """Yield the earlier records, nearest first: by time, then by file order.

        Of records with the same time, the first in the file comes first, as in Claude Code.
        """
        time = read_time(node.timestamp)
        if time is not None:
            index = bisect_left(self.timeline, (time.timestamp(), 1))
            for at in range(index - 1, -1, -1):
                moment, _, record = self.timeline[at]
                # Of records with the same time, only those earlier in the file count as earlier.
                if record.index < node.index or moment < time.timestamp():
                    yield record
        for at in range(bisect_left(self.places, node.index) - 1, -1, -1):
            yield self.nodes[at]


def cycle_start(cycle: list[Node]) -> Node:
    """Return the record of a cycle whose parent is wrong: the first in the file.

    If that record cannot start a conversation and the timestamps identify exactly one that can, return the latter. Each
    record of the cycle is followed by its parent.
    """
    first = min(cycle, key=lambda node: node.index)
    if _may_begin(first):
        return first
    with_parents = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    wrong = [node for node, parent in with_parents if _is_earlier(node, parent)]
    return wrong[0] if len(wrong) == 1 and _may_begin(wrong[0]) else first


def _may_begin(node: Node) -> bool:
    """Return whether a conversation can start with a record; answers and results need a parent."""
    return node.type != "assistant" and not node.is_result


def _nearest_call(calls: list[Node], node: Node) -> Node | None:
    """Return the latest of the calls not later than a record, else the latest of all."""
    before = [call for call in calls if not _is_earlier(node, call)]
    return max(before or calls, key=_time_key, default=None)


def _time_key(node: Node) -> tuple[float, int]:
    time = read_time(node.timestamp)
    return time.timestamp() if time is not None else 0.0, node.index


def _is_earlier(node: Node, other: Node) -> bool:
    """Return whether a record's timestamp is earlier than another's; False if one is missing."""
    time, of_other = read_time(node.timestamp), read_time(other.timestamp)
    return time is not None and of_other is not None and time < of_other


def _speaker(node: Node) -> tuple[bool, str]:
    """Return the key that separates the main conversation and each sub-agent."""
    return node.sidechain, node.agent_id


_BEGIN_TEXT: Final = "make it the start of the conversation: no earlier record"
_NO_PARENT: Final = "fields.no-parent"
_CYCLE: Final = "chain.cycle"
_INVALID_BEGINNING: Final = "chain.unreachable"
_BrokenParent: TypeAlias = tuple[str, Node, str]
"""Finding, record, and the reason for a new parent."""


def repair_chain(plan: EditPlan, *, client: Client) -> None:
    """Give every record an existing parent without cycles, so that the client reaches all of them."""
    broken = _records_without_parent(plan, plan.graph)
    if broken:
        _bridge_parents(plan, broken)
    if not plan:
        _begin_at_boundaries(plan, plan.graph)
    if not plan:
        _chain_in_order(plan, plan.graph, client)


def _begin_at_boundaries(plan: EditPlan, graph: RecordGraph) -> None:
    """Unlink compaction boundaries from records that come after them."""
    for node in graph.forward:
        if node.is_boundary and node.logical_parent in graph.by_uuid:
            description = "unlink the compaction boundary: its parent comes after it"
            plan.change(node, "chain.forward", description, {"parentUuid": None})


def _bridge_parents(plan: EditPlan, broken: list[_BrokenParent]) -> None:
    finder = ParentFinder(plan.graph, [node for _, node, _ in broken])
    for finding, node, reason in broken:
        parent = finder.find_parent(node)
        uuid = parent.uuid if parent is not None else None
        if finding == _INVALID_BEGINNING and uuid is None:
            _begin_at_children(plan, node)
        elif uuid != node.parent or finding == _NO_PARENT:
            text = reason if finding == _CYCLE else f"{_describe_move(node, parent)}: {reason}"
            text = text if parent is not None else _BEGIN_TEXT
            plan.change(node, finding, text, {"parentUuid": uuid})
    # Cutting a link can create further broken records, but each is cut at most once.
    for node in finder.freed:
        parent = finder.find_parent(node)
        description = _describe_move(node, parent) if parent is not None else "make it the start of the conversation"
        description = f"{description} (parent came after it)"
        uuid = parent.uuid if parent is not None else None
        plan.change(node, "chain.forward", description, {"parentUuid": uuid})


def _begin_at_children(plan: EditPlan, top: Node) -> None:
    """Start the conversation at the children of a record that cannot start it."""
    for node in plan.graph.members:
        if node.converses and node.parent == top.uuid:
            plan.change(node, _INVALID_BEGINNING, _BEGIN_TEXT, {"parentUuid": None})


def _describe_move(node: Node, parent: Node | None) -> str:
    """Describe the new parent of a record."""
    answers = parent is not None and not set(parent.uses).isdisjoint(node.results)
    return f"relink to {'its tool call' if answers else 'the previous record'}"


def _records_without_parent(plan: EditPlan, graph: RecordGraph) -> list[_BrokenParent]:
    """Return the records with an unusable parent, in file order."""
    groups: list[tuple[str, list[Node], str]] = [
        # A missing parent may be on a line that was too long to read.
        ("chain.dangling", [] if plan.hides_records else _lost_parents(graph), "parent missing"),
        ("chain.self-parent", graph.self_parents, "record is its own parent"),
        *(
            (_CYCLE, [cycle_start(ring)], f"break the cycle of {len(ring):,} records that are each other's parents")
            for ring in graph.cycles
        ),
        ("chain.lost-parent", graph.cut_off, "an answer needs a parent"),
        (_INVALID_BEGINNING, _invalid_beginnings(graph), "a conversation cannot start with this record type"),
        (_NO_PARENT, _nameless_parents(plan, graph), "no parentUuid field"),
    ]
    by_index = {node.index: (finding, node, reason) for finding, nodes, reason in groups for node in nodes}
    return [by_index[index] for index in sorted(by_index)]


def _lost_parents(graph: RecordGraph) -> list[Node]:
    """Return the records with a missing parent that messages depend on."""
    if not graph.dangling:
        return []
    leading = _leading_to_messages(graph)
    return [node for node in graph.dangling if node.index in leading]


def _invalid_beginnings(graph: RecordGraph) -> list[Node]:
    """Return the topmost records of unreachable messages that cannot start a conversation."""
    tops = {graph.top_ancestors[node.index] for node in graph.unreachable}
    ancestors = [graph.transcript.nodes[top] for top in sorted(tops)]
    return [node for node in ancestors if node.parent is None and not node.converses]


def _nameless_parents(plan: EditPlan, graph: RecordGraph) -> list[Node]:
    """Return the messages without a `parentUuid` field, except the first of the file."""
    first = next((node for node in plan.transcript.nodes if node.is_message), None)
    return [
        node for node in graph.roots if node is not first and node.is_message and "parentUuid" not in plan.fields(node)
    ]


def _leading_to_messages(graph: RecordGraph) -> set[int]:
    """Return the indexes of messages and their ancestors."""
    leading: set[int] = set()
    for start in graph.members:
        node: Node | None = start if start.is_message else None
        while node is not None and node.index not in leading:
            leading.add(node.index)
            node = graph.parent(node)
    return leading


def _chain_in_order(plan: EditPlan, graph: RecordGraph, client: Client) -> None:
    """Chain the conversation record by record, for a client version that would lose part of it.

    Versions before 2.1.200 follow only parents, so they lose all but one of several parallel results.
    """
    if not graph.lost_messages(client):
        return
    before: Node | None = None
    for node in graph.conversation:
        if node.is_boundary or not node.converses:
            continue
        if before is not None and node.parent != before.uuid:
            description = f"relink to the previous record, for Claude Code {client.version} to reach it"
            plan.change(node, "chain.unreachable", description, {"parentUuid": before.uuid})
        before = node


# Start of slash command output, which some versions leave out.
_COMMAND_START: Final = "<"


def repair_beginning(plan: EditPlan, *, client: Client) -> None:
    """Insert a prompt before a leading answer: the API requires the user to speak first."""
    if plan.hides_records or _begins_with_prompt(plan, client):
        return
    sent = as_resumed(plan.transcript, client)
    if not sent or sent[0]["role"] == "user":
        return
    # With record types unknown to the client version, its conversation may start earlier.
    first = next((node for node in _resumed_messages(plan, client) if node.type == "assistant"), None)
    if first is None:
        return
    record = {
        "parentUuid": None if _is_in_cycle(plan, first) else first.parent,
        "isSidechain": False,
        **envelope_of(plan.fields(first)),
        "type": "user",
        "message": {"role": "user", "content": MISSING_BEGINNING},
        "uuid": new_uuid("beginning", first.uuid),
        "timestamp": first.timestamp,
    }
    description = "insert a prompt: a conversation cannot start with an answer"
    plan.insert(first, record, "chain.headless", description, before=True)
    description = "relink to the inserted prompt"
    plan.change(first, "chain.headless", description, {"parentUuid": record["uuid"]})


def _is_in_cycle(plan: EditPlan, first: Node) -> bool:
    """Return whether the parents of a record form a cycle."""
    seen: set[str | None] = set()
    node: Node | None = first
    while node is not None and node.uuid not in seen:
        seen.add(node.uuid)
        node = plan.graph.parent(node)
    return node is not None


def _resumed_messages(plan: EditPlan, client: Client) -> list[Node]:
    """Return the messages that the client version resumes, in order."""
    chain = plan.graph.readings.of(client).chain or []
    return [node for node in chain if node.is_message]


def _begins_with_prompt(plan: EditPlan, client: Client) -> bool:
    """Return whether the conversation starts with a prompt that every client version sends.

    Most conversations do; then the request does not have to be replayed.
    """
    first = next(iter(plan.graph.messages), None)
    if first is not next(iter(_resumed_messages(plan, client)), None):
        return False
    if first is None or first.type != "user" or first.results or plan.graph.lost_messages(client) != []:
        return False
    text = plan.transcript.record(first).text
    return bool(text.strip()) and not text.startswith(_COMMAND_START)


def repair_compactions(plan: EditPlan) -> None:
    """Make content before a boundary reach the model: as the stored summary, or in full."""
    graph = plan.graph
    for missing in find_missing_summaries(graph):
        if not missing.is_relevant:
            continue
        if not missing.boundary.uuid:
            # With an ID, it is a regular boundary.
            fields = {"uuid": new_uuid("boundary", missing.boundary.index)}
            description = "give the compaction boundary an ID"
            plan.change(missing.boundary, "compaction.title-form", description, fields)
            continue
        summary = plan.fields(missing.title).get("summary") if missing.title is not None else None
        if isinstance(summary, str) and summary.strip():
            _write_summary(plan, graph, missing, summary)
        else:
            _remove_boundary(plan, graph, missing)


def _write_summary(plan: EditPlan, graph: RecordGraph, missing: MissingSummary, summary: str) -> None:
    boundary = missing.boundary
    record: dict[str, Any] = {
        "parentUuid": boundary.uuid,
        "isSidechain": False,
        **envelope_of(plan.fields(boundary)),
        "type": "user",
        "message": {"role": "user", "content": summary},
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
        "uuid": new_uuid("summary", boundary.uuid),
        "timestamp": boundary.timestamp,
    }
    description = "write the summary as a message: it was stored only as a title"
    plan.insert(boundary, record, "compaction.title-form", description)
    for node in _records_after(graph, missing):
        description = "relink to the summary"
        plan.change(node, "compaction.title-form", description, {"parentUuid": record["uuid"]})


def _remove_boundary(plan: EditPlan, graph: RecordGraph, missing: MissingSummary) -> None:
    boundary = missing.boundary
    previous = graph.by_uuid.get(boundary.logical_parent or "") or graph.parent(boundary)
    # A parent that comes after the boundary may descend from the boundary's successors.
    if previous is None or previous.index >= boundary.index:
        earlier = (node for node in graph.transcript.nodes[: boundary.index] if node.converses)
        previous = max(earlier, key=lambda node: node.index, default=None)
    for node in _records_after(graph, missing):
        description = "relink to the record before the boundary"
        fields = {"parentUuid": previous.uuid if previous is not None else None}
        plan.change(node, "compaction.no-summary", description, fields)
    description = "set aside the compaction boundary: no summary, so all earlier messages are sent"
    plan.set_aside(boundary, "compaction.no-summary", description)


def _records_after(graph: RecordGraph, missing: MissingSummary) -> list[Node]:
    """Return the records that continue the conversation after a boundary."""
    if missing.restart is not None:
        return [missing.restart]
    return [node for node in graph.members if node.parent == missing.boundary.uuid and node.converses]


def repair_leaf(plan: EditPlan, *, client: Client, target: str | None) -> None:
    """Record the leaf in a `last-prompt` record, or by its time, if the client would choose another.

    `target` is the leaf before the repair; if it was removed, its nearest remaining ancestor is used.
    """
    leaf = plan.remaining_record(target or "") or plan.graph.leaf
    if leaf is None or not leaf.converses:
        return
    missed = not _is_resumed(plan, leaf, client)
    if missed and _is_marked(plan, leaf):
        # The leaf is recorded explicitly, and the client version ignores it for a known reason.
        return
    # Other readers that look for the leaf should find the same record.
    if not any(node is leaf for node in plan.graph.chain) or (missed and client.obeys_last_prompt):
        _insert_marker(plan, leaf)
    elif missed:
        _make_latest(plan, leaf, client)


def _is_marked(plan: EditPlan, leaf: Node) -> bool:
    """Return whether the last `last-prompt` record explicitly names this leaf."""
    last = plan.transcript.last("last-prompt")
    fields = last.fields if last is not None else {}
    return fields.get("leafUuid") == leaf.uuid and fields.get("explicit") is True


def _insert_marker(plan: EditPlan, leaf: Node) -> None:
    record = {
        "type": "last-prompt",
        "lastPrompt": "",
        "leafUuid": leaf.uuid,
        "explicit": True,
        "sessionId": plan.fields(leaf).get("sessionId"),
    }
    description = "record the leaf of the session"
    plan.insert(plan.transcript.nodes[-1], record, "chain.leaf", description)


def _make_latest(plan: EditPlan, leaf: Node, client: Client) -> None:
    """Give the leaf the latest timestamp, for client versions that choose the leaf by time."""
    other_nodes = [node for node in plan.transcript.nodes if node is not leaf]
    times = [time for node in other_nodes if (time := read_time(node.timestamp)) is not None]
    own_time = read_time(leaf.timestamp)
    latest = max(times, default=own_time)
    if latest is None or (own_time is not None and own_time > latest):
        return
    description = f"set the latest timestamp: Claude Code {client.version} resumes from it"
    lost = f"timestamp {leaf.timestamp} of {leaf.uuid}"
    fields = {"timestamp": time_text(just_after(latest))}
    plan.change(leaf, "chain.leaf", description, fields, lost=lost)


def _is_resumed(plan: EditPlan, leaf: Node, client: Client) -> bool:
    """Return whether the client version resumes a record."""
    read = plan.graph.readings.of(client).chain or []
    if any(node is leaf for node in read):
        return True
    # A reading may omit notes without descendants, and the leaf may be one.
    chain = resumed_chain(plan.transcript, client) if read and not leaf.is_message else None
    return any(node is leaf for node in chain or [])
