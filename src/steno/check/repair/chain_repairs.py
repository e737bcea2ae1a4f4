"""Stages that repair the chain of records: parents, cycles, beginning, compactions, leaf.

Missing parents are bridged as the real client bridges them. A conversation that would begin with an answer gets a
prompt before it. A boundary without its summary is undone; a summary kept as a title is sent again. The repaired
session continues from the same record as the broken one.
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
    """Finds what a record should hang on: the nearest before it in time, else in the file.

    A result hangs on its call, or on what hangs on that.
    """

    def __init__(self, graph: RecordGraph, broken: list[Node]) -> None:
        self.graph = graph
        self.freed: list[Node] = []
        """Records that had to be freed from a later one; they want a parent as well."""
        # Whatever they named plays no part any more.
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
        """Return the new parent; None when nothing comes before."""
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
        """Return the nearest record that does not hang below its new child, or should not.

        With it the record that has to be cut off for that, if one has.
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
        """Return the first record on the way up that hangs on what came later.

        `hopeless` are records above which there is none; they become more. What was given a parent already is let be.
        """
        nodes = self.graph.transcript.nodes
        record = start
        trail: list[int] = []
        while record.index not in hopeless:
            parent = nodes[self._trees.parent_of(record.index)]
            # One order alone may be wrong: that of the file where lines were swapped, that of time where a clock was.
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
        """Return the call that a record answers, unless what was found is of that response.

        Of several calls of one id, that which the found one leads to, or the nearest before. `link` is what can be cut
        off, and all that hangs on it with it.
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
        """Whether a call does not hang below a record, or will not when a link is cut."""
        if self._trees.top(call.index) != node.index:
            return True
        return link is not None and self._trees.descends_from(call.index, link.index)

    def _is_compacted_away(self, call: Node, later: Node) -> bool:
        """Whether the conversation was compacted between a call and a record behind it."""
        boundary = self._boundary(later)
        if boundary is None or self._boundary(call) is boundary:
            return False
        return call.index < boundary.index

    def _boundary(self, node: Node) -> Node | None:
        """Return where the part of the conversation begins that a record is in."""
        seen: set[int] = set()
        while not node.is_boundary and node.index not in seen:
            seen.add(node.index)
            node = self.graph.transcript.nodes[self._trees.parent_of(node.index)]
        return node if node.is_boundary else None

    def _free_first_record(self, conversation: "_ConversationRecords", node: Node) -> bool:
        """Free the first record of the file from a later one that hangs, in the end, on `node`.

        But not where the times say that `node` came first, and the lines were merely swapped.
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
    """Which records hang together, told by the one at the top; grows as parents are given."""

    def __init__(self, graph: RecordGraph, tops: set[int]) -> None:
        by_uuid = graph.by_uuid
        self._parents = list(range(len(graph.transcript.nodes)))
        self._further: dict[int, int] = {}
        """For records that were asked about, one further up: the way to the top is walked once."""
        for node in graph.members:
            parent = by_uuid.get(node.parent) if node.parent is not None else None
            if parent is not None and node.index not in tops:
                self._parents[node.index] = parent.index

    def top(self, index: int) -> int:
        """Return the place of the record that a record hangs on in the end."""
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
        """Return the place of what a record hangs on; its own when it is a top."""
        return self._parents[index]

    def first_above(self, index: int, candidates: set[int]) -> int | None:
        """Return the nearest of some records that a record is or hangs on, if only in the end."""
        seen: set[int] = set()
        while index not in seen and index not in candidates:
            seen.add(index)
            index = self._parents[index]
        return index if index in candidates else None

    def descends_from(self, index: int, ancestor: int) -> bool:
        """Whether a record is another or hangs on it, if only in the end."""
        return self.first_above(index, {ancestor}) is not None

    def set_parent(self, index: int, parent: int) -> None:
        """Hang a top on another record."""
        self._parents[index] = parent

    def make_top(self, index: int) -> None:
        """Make a record a top."""
        self._parents[index] = index
        self._further.clear()


class _ConversationRecords:
    """The records of the main conversation, or of one sub-agent, by file order and by time."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.places = [node.index for node in nodes]
        timed = [
            (time.timestamp(), -node.index, node) for node in nodes if (time := read_time(node.timestamp)) is not None
        ]
        self.timeline = sorted(timed, key=lambda entry: entry[:2])

    def before(self, node: Node) -> Iterator[Node]:
        """Yield what comes before a record, the nearest in time first, then that in the file.

        Of records of one time the client takes the first in the file, and so does this.
        """
        time = read_time(node.timestamp)
        if time is not None:
            index = bisect_left(self.timeline, (time.timestamp(), 1))
            for at in range(index - 1, -1, -1):
                moment, _, record = self.timeline[at]
                # Of records of one time, those behind it in the file do not come before it.
                if record.index < node.index or moment < time.timestamp():
                    yield record
        for at in range(bisect_left(self.places, node.index) - 1, -1, -1):
            yield self.nodes[at]


def cycle_start(cycle: list[Node]) -> Node:
    """Return the record whose parent is the wrong one in a ring: the first in the file.

    But where that cannot begin a conversation, and the times tell plainly of another that can, it is that one. The
    records of the ring are each followed by their parent.
    """
    first = min(cycle, key=lambda node: node.index)
    if _may_begin(first):
        return first
    with_parents = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    wrong = [node for node, parent in with_parents if _is_earlier(node, parent)]
    return wrong[0] if len(wrong) == 1 and _may_begin(wrong[0]) else first


def _may_begin(node: Node) -> bool:
    """Whether a conversation may begin with a record: an answer, or a result, follows something."""
    return node.type != "assistant" and not node.is_result


def _nearest_call(calls: list[Node], node: Node) -> Node | None:
    """Return the last of some calls that came before a record, or else the last of all."""
    before = [call for call in calls if not _is_earlier(node, call)]
    return max(before or calls, key=_time_key, default=None)


def _time_key(node: Node) -> tuple[float, int]:
    time = read_time(node.timestamp)
    return time.timestamp() if time is not None else 0.0, node.index


def _is_earlier(node: Node, other: Node) -> bool:
    """Whether the time of a record is before that of another; not when one has none."""
    time, of_other = read_time(node.timestamp), read_time(other.timestamp)
    return time is not None and of_other is not None and time < of_other


def _speaker(node: Node) -> tuple[bool, str]:
    """Return what tells the main conversation and its sub-agents apart."""
    return node.sidechain, node.agent_id


_BEGIN_TEXT: Final = "let it begin the conversation: nothing comes before it"
_NO_PARENT: Final = "fields.no-parent"
_CYCLE: Final = "chain.cycle"
_INVALID_BEGINNING: Final = "chain.unreachable"
_BrokenParent: TypeAlias = tuple[str, Node, str]
"""The finding, the record, and why it needs another parent."""


def repair_chain(plan: EditPlan, *, client: Client) -> None:
    """Give every record a parent that is there, without rings, and the client a way to them all."""
    broken = _records_without_parent(plan, plan.graph)
    if broken:
        _bridge_parents(plan, broken)
    if not plan:
        _begin_at_boundaries(plan, plan.graph)
    if not plan:
        _chain_in_order(plan, plan.graph, client)


def _begin_at_boundaries(plan: EditPlan, graph: RecordGraph) -> None:
    """Unlink compactions from records that come after them: these are not what was summed up."""
    for node in graph.forward:
        if node.is_boundary and node.logical_parent in graph.by_uuid:
            description = "let the compaction begin anew: its parent comes after it"
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
    # Each that is cut may bring about others, but none is cut twice.
    for node in finder.freed:
        parent = finder.find_parent(node)
        description = _describe_move(node, parent) if parent is not None else "let it begin the conversation"
        description = f"{description}: it hung on a record that comes after it"
        uuid = parent.uuid if parent is not None else None
        plan.change(node, "chain.forward", description, {"parentUuid": uuid})


def _begin_at_children(plan: EditPlan, top: Node) -> None:
    """Let the conversation begin below a record that none begins with and that nothing precedes."""
    for node in plan.graph.members:
        if node.converses and node.parent == top.uuid:
            plan.change(node, _INVALID_BEGINNING, _BEGIN_TEXT, {"parentUuid": None})


def _describe_move(node: Node, parent: Node | None) -> str:
    """Return in words what becomes of a record that gets another parent."""
    answers = parent is not None and not set(parent.uses).isdisjoint(node.results)
    return f"hang it on {'its call' if answers else 'the record before'}"


def _records_without_parent(plan: EditPlan, graph: RecordGraph) -> list[_BrokenParent]:
    """Return the records whose parent is of no use, in file order."""
    groups: list[tuple[str, list[Node], str]] = [
        # A parent that is not there may be on a line that was too long to be read.
        ("chain.dangling", [] if plan.hides_records else _lost_parents(graph), "its parent is not in the file"),
        ("chain.self-parent", graph.self_parents, "it names itself as its parent"),
        *(
            (_CYCLE, [cycle_start(ring)], f"cut the ring of {len(ring):,} records that are each other's parents")
            for ring in graph.cycles
        ),
        ("chain.lost-parent", graph.cut_off, "an answer always follows something"),
        (_INVALID_BEGINNING, _invalid_beginnings(graph), "no conversation begins with a record of its type"),
        (_NO_PARENT, _nameless_parents(plan, graph), "it names no parent"),
    ]
    by_index = {node.index: (finding, node, reason) for finding, nodes, reason in groups for node in nodes}
    return [by_index[index] for index in sorted(by_index)]


def _lost_parents(graph: RecordGraph) -> list[Node]:
    """Return what names a parent that is not in the file, where a message depends on it."""
    if not graph.dangling:
        return []
    leading = _leading_to_messages(graph)
    return [node for node in graph.dangling if node.index in leading]


def _invalid_beginnings(graph: RecordGraph) -> list[Node]:
    """Return the records without a parent that messages lead up to and no client begins with."""
    tops = {graph.top_ancestors[node.index] for node in graph.unreachable}
    ancestors = [graph.transcript.nodes[top] for top in sorted(tops)]
    return [node for node in ancestors if node.parent is None and not node.converses]


def _nameless_parents(plan: EditPlan, graph: RecordGraph) -> list[Node]:
    """Return the messages without a parent's field; the first of a file needs none."""
    first = next((node for node in plan.transcript.nodes if node.is_message), None)
    return [
        node for node in graph.roots if node is not first and node.is_message and "parentUuid" not in plan.fields(node)
    ]


def _leading_to_messages(graph: RecordGraph) -> set[int]:
    """Return the records that are messages or lead to one."""
    leading: set[int] = set()
    for start in graph.members:
        node: Node | None = start if start.is_message else None
        while node is not None and node.index not in leading:
            leading.add(node.index)
            node = graph.parent(node)
    return leading


def _chain_in_order(plan: EditPlan, graph: RecordGraph, client: Client) -> None:
    """Chain the conversation one record after the other, for a client that would lose part of it.

    Clients before 2.1.200 go by parents alone, and so lose all but one of parallel results.
    """
    if not graph.lost_messages(client):
        return
    before: Node | None = None
    for node in graph.conversation:
        if node.is_boundary or not node.converses:
            continue
        if before is not None and node.parent != before.uuid:
            description = f"hang it on the record before, for {client.version} to find it"
            plan.change(node, "chain.unreachable", description, {"parentUuid": before.uuid})
        before = node


# What tells of commands; some clients leave it out.
_COMMAND_START: Final = "<"


def repair_beginning(plan: EditPlan, *, client: Client) -> None:
    """Say that the beginning is missing: the API wants the user to speak first."""
    if plan.hides_records or _begins_with_prompt(plan, client):
        return
    sent = as_resumed(plan.transcript, client)
    if not sent or sent[0]["role"] == "user":
        return
    # Where records are of a type that the client does not know, its way may begin earlier.
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
    description = "put a prompt before it: a conversation cannot begin with an answer"
    plan.insert(first, record, "chain.headless", description, before=True)
    description = "hang it behind that prompt"
    plan.change(first, "chain.headless", description, {"parentUuid": record["uuid"]})


def _is_in_cycle(plan: EditPlan, first: Node) -> bool:
    """Whether the parents of a record lead round in a circle."""
    seen: set[str | None] = set()
    node: Node | None = first
    while node is not None and node.uuid not in seen:
        seen.add(node.uuid)
        node = plan.graph.parent(node)
    return node is not None


def _resumed_messages(plan: EditPlan, client: Client) -> list[Node]:
    """Return the messages that the client goes by, in its order."""
    chain = plan.graph.readings.of(client).chain or []
    return [node for node in chain if node.is_message]


def _begins_with_prompt(plan: EditPlan, client: Client) -> bool:
    """Whether the conversation begins with words of the user's, which every client sends.

    Most do; then nothing needs to be put together to see it.
    """
    first = next(iter(plan.graph.messages), None)
    if first is not next(iter(_resumed_messages(plan, client)), None):
        return False
    if first is None or first.type != "user" or first.results or plan.graph.lost_messages(client) != []:
        return False
    text = plan.transcript.record(first).text
    return bool(text.strip()) and not text.startswith(_COMMAND_START)


def repair_compactions(plan: EditPlan) -> None:
    """Let what a boundary hides be sent: as the summary kept elsewhere, or word for word."""
    graph = plan.graph
    for missing in find_missing_summaries(graph):
        if not missing.is_relevant:
            continue
        if not missing.boundary.uuid:
            # Then it is a boundary like any other.
            fields = {"uuid": new_uuid("boundary", missing.boundary.index)}
            description = "give the boundary an id, so that it has a place in the conversation"
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
    description = "write the summary as the message that is sent; it was kept as a title only"
    plan.insert(boundary, record, "compaction.title-form", description)
    for node in _records_after(graph, missing):
        description = "hang it behind the summary"
        plan.change(node, "compaction.title-form", description, {"parentUuid": record["uuid"]})


def _remove_boundary(plan: EditPlan, graph: RecordGraph, missing: MissingSummary) -> None:
    boundary = missing.boundary
    previous = graph.by_uuid.get(boundary.logical_parent or "") or graph.parent(boundary)
    # A parent behind the boundary may hang on what follows it.
    if previous is None or previous.index >= boundary.index:
        earlier = (node for node in graph.transcript.nodes[: boundary.index] if node.converses)
        previous = max(earlier, key=lambda node: node.index, default=None)
    for node in _records_after(graph, missing):
        description = "hang it on what stood before the boundary"
        fields = {"parentUuid": previous.uuid if previous is not None else None}
        plan.change(node, "compaction.no-summary", description, fields)
    description = "set the boundary aside: there is no summary, so all before it is sent again"
    plan.set_aside(boundary, "compaction.no-summary", description)


def _records_after(graph: RecordGraph, missing: MissingSummary) -> list[Node]:
    """Return what goes on from a boundary."""
    if missing.restart is not None:
        return [missing.restart]
    return [node for node in graph.members if node.parent == missing.boundary.uuid and node.converses]


def repair_leaf(plan: EditPlan, *, client: Client, target: str | None) -> None:
    """Name the leaf in a `last-prompt` record, or by its time, if the client would go another way.

    `target` is the record the session stood at before anything was mended; if that was taken out, it goes on from what
    came before.
    """
    leaf = plan.remaining_record(target or "") or plan.graph.leaf
    if leaf is None or not leaf.converses:
        return
    missed = not _is_resumed(plan, leaf, client)
    if missed and _is_marked(plan, leaf):
        # The client was told, and has its reasons.
        return
    # Whatever the client goes by, the file should say the same to those that look for the record.
    if not any(node is leaf for node in plan.graph.chain) or (missed and client.obeys_last_prompt):
        _insert_marker(plan, leaf)
    elif missed:
        _make_latest(plan, leaf, client)


def _is_marked(plan: EditPlan, leaf: Node) -> bool:
    """Whether the last word on the leaf is that it is this record, and no other."""
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
    description = "say which record the session goes on from"
    plan.insert(plan.transcript.nodes[-1], record, "chain.leaf", description)


def _make_latest(plan: EditPlan, leaf: Node, client: Client) -> None:
    """Give the leaf the latest time of all, for a client that goes on from there."""
    other_nodes = [node for node in plan.transcript.nodes if node is not leaf]
    times = [time for node in other_nodes if (time := read_time(node.timestamp)) is not None]
    own_time = read_time(leaf.timestamp)
    latest = max(times, default=own_time)
    if latest is None or (own_time is not None and own_time > latest):
        return
    description = f"give it the latest time: {client.version} goes on from there"
    lost = f"the time of {leaf.uuid}: {leaf.timestamp}"
    fields = {"timestamp": time_text(just_after(latest))}
    plan.change(leaf, "chain.leaf", description, fields, lost=lost)


def _is_resumed(plan: EditPlan, leaf: Node, client: Client) -> bool:
    """Whether the client goes by a record."""
    read = plan.graph.readings.of(client).chain or []
    if any(node is leaf for node in read):
        return True
    # A reading may leave out notes that lead nowhere; the leaf may be one.
    chain = resumed_chain(plan.transcript, client) if read and not leaf.is_message else None
    return any(node is leaf for node in chain or [])
