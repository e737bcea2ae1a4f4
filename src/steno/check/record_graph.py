"""Record graph of a file: parents, ancestry, conversation and unpaired tool calls. Shared by rules and repairs."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from steno.check.client_readings import ClientReadings
from steno.format.records import ROLES
from steno.session.resume.clients import STENO, Client
from steno.session.resume.record_chain import LoadedRecords, gather, since_compaction, walk
from steno.session.transcript import Node, Transcript
from steno.session.turns.branches import conversation_leaf, load_all_records
from steno.session.turns.compactions import TitleCompactions


class Ancestry:
    """Ancestry test in constant time: each record has a number range that contains those of its descendants."""

    def __init__(self, members: Iterable[Node], by_uuid: Mapping[str, Node]) -> None:
        self._by_uuid = by_uuid
        self._first: dict[str | None, int] = {}
        self._last: dict[str | None, int] = {}
        children: defaultdict[str | None, list[str | None]] = defaultdict(list)
        for node in members:
            children[node.parent].append(node.uuid)
        for top in [name for name in children if name is None or name not in by_uuid]:
            self._number_descendants(top, children)

    def _number_descendants(self, top: str | None, children: Mapping[str | None, list[str | None]]) -> None:
        stack = [(top, False)]
        while stack:
            name, done = stack.pop()
            if done:
                self._last[name] = len(self._first)
                continue
            self._first[name] = len(self._first)
            stack.append((name, True))
            stack.extend((child, False) for child in children.get(name, ()))

    def descends_from(self, uuid: str | None, ancestor: str | None) -> bool:
        """Return whether a record equals or descends from `ancestor`; None stands for the root.

        The ancestor may be an ID that is not in the file.
        """
        number = self._first.get(uuid)
        if number is None:
            return ancestor in self._cycle_ancestors(uuid)
        return ancestor in self._first and self._first[ancestor] <= number < self._last[ancestor]

    def _cycle_ancestors(self, uuid: str | None) -> set[str | None]:
        """Return all ancestors of a record in a parent cycle."""
        seen: set[str | None] = set()
        while uuid is not None and uuid not in seen:
            seen.add(uuid)
            node = self._by_uuid.get(uuid)
            uuid = node.parent if node is not None else None
        return seen


class ToolBlock(msgspec.Struct, frozen=True):
    """A tool call or tool result by ID, with the record that contains it."""

    node: Node
    id: str


class ToolPairs(msgspec.Struct, frozen=True):
    """Unpaired tool calls and results of a conversation, each list in conversation order."""

    open: tuple[ToolBlock, ...] = ()
    """Calls without a result, followed by further messages."""
    interrupted: tuple[ToolBlock, ...] = ()
    """Calls without a result in the last response."""
    orphans: tuple[ToolBlock, ...] = ()
    """Results without a call in the conversation."""
    repeated: tuple[ToolBlock, ...] = ()
    """Second results of a call."""
    early: tuple[ToolBlock, ...] = ()
    """Results before their call."""
    late: tuple[ToolBlock, ...] = ()
    """Results that follow a later response than the one with their call."""
    reused: tuple[ToolBlock, ...] = ()
    """Calls with the ID of an earlier call."""

    @property
    def is_complete(self) -> bool:
        """Whether every call has one result and every result one call."""
        return self == _COMPLETE


_COMPLETE: Final = ToolPairs()


def pair_tools(conversation: Sequence[Node]) -> ToolPairs:
    """Pair the tool calls and results of a conversation, in order."""
    if _all_answered(conversation):
        return _COMPLETE
    tally = _PairTally()
    for node in conversation:
        if node.type == "assistant":
            # Synthetic error answers and their calls are not sent.
            if not node.synthetic_error:
                tally.add_calls(node)
        elif node.type == "user":
            tally.add_results(node)
    return tally.sum_up()


def _all_answered(conversation: Sequence[Node]) -> bool:
    """Return whether each call is followed directly by one result: the fast path of `pair_tools`."""
    called: set[str] = set()
    open_calls: set[str] = set()
    response: str | None = None
    for node in conversation:
        if node.type == "assistant" and not node.synthetic_error:
            if open_calls and node.message_id != response:
                return False
            response = node.message_id
            if not node.uses:
                continue
            if not called.isdisjoint(node.uses) or len(set(node.uses)) < len(node.uses):
                return False
            called.update(node.uses)
            open_calls.update(node.uses)
        elif node.results and node.type == "user":
            if not open_calls.issuperset(node.results) or len(set(node.results)) < len(node.results):
                return False
            open_calls.difference_update(node.results)
    return not open_calls


class _PairTally:
    """Calls and results seen so far."""

    def __init__(self) -> None:
        self.calls: dict[str, Node] = {}
        self.answered: set[str] = set()
        self.unanswered: list[ToolBlock] = []
        self.uncalled: list[ToolBlock] = []
        self.repeated: list[ToolBlock] = []
        self.reused: list[ToolBlock] = []
        self.late: list[ToolBlock] = []
        self.open_calls: set[str] = set()
        """Calls of the last response that have no result yet."""
        self.last: Node | None = None
        self.has_later_prompt = False

    def add_calls(self, node: Node) -> None:
        """Record the calls of one line of a response."""
        if self.last is not None and self.last.message_id != node.message_id:
            self.open_calls.clear()
        self.open_calls.update(node.uses)
        self.last = node
        self.has_later_prompt = False
        for call in node.uses:
            before = self.calls.get(call)
            if before is not None and (before is node or before.uuid != node.uuid):
                self.reused.append(ToolBlock(node, call))
                if before is not node and not same_response(before, node):
                    self._reuse_id(before, call)
            self.calls[call] = node

    def _reuse_id(self, before: Node, call: str) -> None:
        if call not in self.answered:
            self.unanswered.append(ToolBlock(before, call))
        self.answered.discard(call)

    def add_results(self, node: Node) -> None:
        """Record the results of a message; a message without results counts as a later prompt."""
        if not node.results:
            self.has_later_prompt = True
        for call in node.results:
            if call in self.answered:
                self.repeated.append(ToolBlock(node, call))
                continue
            self.answered.add(call)
            if call not in self.calls:
                self.uncalled.append(ToolBlock(node, call))
            elif call not in self.open_calls:
                self.late.append(ToolBlock(node, call))

    def sum_up(self) -> ToolPairs:
        """Return the unpaired calls and results."""
        called = (ToolBlock(node, call) for call, node in self.calls.items())
        unanswered = [*self.unanswered, *(block for block in called if block.id not in self.answered)]
        orphans = [block for block in self.uncalled if block.id not in self.calls]
        return ToolPairs(
            open=tuple(block for block in unanswered if not self._at_end(block.node)),
            interrupted=tuple(block for block in unanswered if self._at_end(block.node)),
            orphans=tuple(orphans),
            repeated=tuple(self.repeated),
            early=tuple(block for block in self.uncalled if block.id in self.calls),
            late=tuple(self.late),
            reused=tuple(self.reused),
        )

    def _at_end(self, node: Node) -> bool:
        if self.last is None or self.has_later_prompt:
            return False
        return node is self.last or same_response(node, self.last)


def same_response(first: Node, second: Node) -> bool:
    """Return whether two records belong to the same response."""
    return first.message_id is not None and first.message_id == second.message_id


class RecordGraph:
    """Parent relations of a transcript's records. No method recurses."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript

    @property
    def by_uuid(self) -> dict[str, Node]:
        """Records by ID; the last one wins, as in Claude Code."""
        return self.transcript.by_uuid

    @cached_property
    def members(self) -> list[Node]:
        """Records of the graph: those with an ID that no later record has."""
        last = self.by_uuid
        if len(self._with_uuid) == len(last):
            return self._with_uuid
        return [node for node in self._with_uuid if node.uuid and last[node.uuid] is node]

    @cached_property
    def _with_uuid(self) -> list[Node]:
        return [node for node in self.transcript.nodes if node.uuid]

    @cached_property
    def duplicates(self) -> list[tuple[Node, Node]]:
        """Pairs of a record whose ID appears again later, and the last record with that ID."""
        last = self.by_uuid
        if len(self.members) == len(self._with_uuid):
            return []
        return [(node, last[node.uuid]) for node in self._with_uuid if node.uuid and last[node.uuid] is not node]

    # Parents

    def parent(self, node: Node) -> Node | None:
        """Return the parent of a record, if it is in the file."""
        return self.by_uuid.get(node.parent) if node.parent is not None else None

    @cached_property
    def _members_by_parent(self) -> tuple[list[Node], list[Node], list[Node], list[Node]]:
        """Members with no parent, a missing parent, themselves as parent, and a later record as parent.

        Computed in one pass, each list in file order. In most files only the first list has entries.
        """
        parentless, dangling, self_parents, forward = list[Node](), list[Node](), list[Node](), list[Node]()
        by_uuid = self.by_uuid
        for node in self.members:
            parent = by_uuid.get(node.parent) if node.parent is not None else None
            if parent is not None and parent.index < node.index:
                continue
            if node.parent is None:
                parentless.append(node)
            elif parent is None:
                dangling.append(node)
            elif parent is node:
                self_parents.append(node)
            else:
                forward.append(node)
        return parentless, dangling, self_parents, forward

    @property
    def _has_ordered_parents(self) -> bool:
        """Whether every named parent is in the file before its children."""
        return not (self.dangling or self.self_parents or self.forward)

    @property
    def dangling(self) -> list[Node]:
        """Members whose parent is not in the file."""
        return self._members_by_parent[1]

    @property
    def self_parents(self) -> list[Node]:
        """Members that name themselves as parent."""
        return self._members_by_parent[2]

    @property
    def forward(self) -> list[Node]:
        """Members whose parent comes later in the file."""
        return self._members_by_parent[3]

    @cached_property
    def cycles(self) -> list[list[Node]]:
        """Parent cycles, each once; excludes records that are their own parent."""
        cycles: list[list[Node]] = []
        if not self.forward:
            return cycles
        done: set[int] = set()
        for start in self.members:
            path: dict[int, int] = {}
            trail: list[Node] = []
            node: Node | None = start
            while node is not None and node.index not in done and node.index not in path:
                path[node.index] = len(trail)
                trail.append(node)
                node = self.parent(node)
            if node is not None and node.index in path:
                cycle = trail[path[node.index] :]
                if len(cycle) > 1:
                    cycles.append(cycle)
            done.update(path)
        return cycles

    @cached_property
    def roots(self) -> list[Node]:
        """Members of the main conversation without a parent, in file order."""
        return [node for node in self._members_by_parent[0] if node.converses]

    @cached_property
    def cut_off(self) -> list[Node]:
        """Roots that cannot begin a conversation and follow other messages: their parent was lost.

        An answer or a tool result always has a parent, except for an answer after a boundary without children, as one
        published description defines it.
        """
        first = next((node for node in self.members if node.is_message and node.converses), None)
        return [
            node
            for node in self.roots
            if node is not first and (node.is_result or (node.type == "assistant" and not self._restarts(node)))
        ]

    def _restarts(self, node: Node) -> bool:
        """Return whether a root continues the conversation after a compaction."""
        return node.index in self.title_compactions.boundaries

    @cached_property
    def title_compactions(self) -> TitleCompactions:
        """Compactions in the form of a published description, and the records that follow them."""
        return TitleCompactions(self.transcript)

    # The conversation

    @cached_property
    def loaded(self) -> LoadedRecords:
        """All records with an ID, including those on damaged lines."""
        return load_all_records(self.transcript)

    @cached_property
    def leaf(self) -> Node | None:
        """Leaf of the conversation, including damaged lines."""
        return conversation_leaf(self.loaded)

    @cached_property
    def chain(self) -> list[Node]:
        """Chain from the root to the leaf, with missing parents bridged and siblings gathered."""
        return gather(self.loaded, self.parent_chain) if self.parent_chain else []

    @cached_property
    def parent_chain(self) -> list[Node]:
        """Chain from the root to the leaf, with missing parents bridged."""
        return walk(self.loaded, self.leaf, STENO) if self.leaf is not None else []

    @cached_property
    def conversation(self) -> list[Node]:
        """Records that a resume should send: the chain since the last compaction."""
        return since_compaction(self.transcript, self.loaded, self.chain, STENO)

    def sibling_before(self, node: Node, parent: str | None, removed: Container[object]) -> Node | None:
        """Return the gathered record that directly precedes a chain record after some records are removed.

        Lines and results of a response are gathered only while the parent chain passes through one of its records. If
        that record is removed, the chain has to pass through a remaining one whose parent is the new `parent`.
        """
        index = self._chain_indexes.get(node.index)
        if index is None or node.index not in self._parent_chain_indexes:
            return None
        earlier = (self.chain[at] for at in range(index - 1, -1, -1))
        before = next((record for record in earlier if record.uuid not in removed), None)
        if before is None or before.index in self._parent_chain_indexes:
            return None
        descends_from = self.ancestry.descends_from
        return before if descends_from(before.uuid, parent) and not descends_from(before.uuid, node.uuid) else None

    @cached_property
    def ancestry(self) -> Ancestry:
        """Ancestry of all members."""
        return Ancestry(self.members, self.by_uuid)

    @cached_property
    def _chain_indexes(self) -> dict[int, int]:
        return {node.index: index for index, node in enumerate(self.chain)}

    @cached_property
    def _parent_chain_indexes(self) -> frozenset[int]:
        return frozenset(node.index for node in self.parent_chain)

    @cached_property
    def messages(self) -> list[Node]:
        """Messages of the conversation."""
        return [node for node in self.conversation if node.type in ROLES]

    def lost_messages(self, client: Client) -> list[Node] | None:
        """Return the messages that a client version does not resume, or None if it refuses the file."""
        chain = self.readings.of(client).chain
        if chain is None:
            return None
        resumed = {node.index for node in chain}
        return [node for node in self.messages if node.index not in resumed]

    @cached_property
    def readings(self) -> ClientReadings:
        """Readings of the file by each client generation."""
        # Without missing parents, versions with the same leaf follow the same chain.
        return ClientReadings(self.transcript, self.loaded, self.parent_chain if self._has_ordered_parents else [])

    @cached_property
    def sent(self) -> frozenset[int]:
        """Indexes of the records that a resume should send."""
        return frozenset(node.index for node in self.conversation)

    @cached_property
    def pairs(self) -> ToolPairs:
        """Unpaired tool calls and results of the conversation."""
        return pair_tools(self.conversation)

    def is_relevant(self, node: Node) -> bool:
        """Return whether a record belongs to the conversation, or should but cannot be reached.

        Compacted, abandoned and sub-agent records do not affect a resume.
        """
        return node.index in self.sent or node.index in self._unreachable_indexes

    @cached_property
    def _unreachable_indexes(self) -> frozenset[int]:
        return frozenset(node.index for node in self.unreachable)

    @cached_property
    def unreachable(self) -> list[Node]:
        """Messages that belong to neither the conversation nor one of its branches.

        A prompt without a parent is a branch (rewound to the start), unless the conversation itself starts at a lost
        parent.
        """
        if self._is_connected:
            return []
        tops = self.top_ancestors
        known = {tops[node.index] for node in self.chain if node.index in tops}
        if self.chain and not self._lacks_parent(self.chain[0]):
            known |= {tops[node.index] for node in self.roots if not self._lacks_parent(node)}
        known |= {top for top in set(tops.values()) if self.transcript.nodes[top].sidechain}
        return [node for node in self.members if tops[node.index] not in known and node.is_message and node.converses]

    @property
    def _is_connected(self) -> bool:
        """Whether every record has a path to a root, so that none is unreachable."""
        if not self._has_ordered_parents or self.cut_off or not self.chain:
            return False
        return all(
            node.converses or (node.sidechain and node.logical_parent is None) for node in self._members_by_parent[0]
        )

    def _lacks_parent(self, node: Node) -> bool:
        """Return whether a record without an ancestor cannot be a root."""
        return node.parent is not None or node.index in self._cut_off_indexes

    @cached_property
    def _cut_off_indexes(self) -> frozenset[int]:
        return frozenset(node.index for node in self.cut_off)

    @cached_property
    def top_ancestors(self) -> dict[int, int]:
        """Index of the topmost ancestor of each member, across compaction boundaries."""
        tops: dict[int, int] = {}
        by_uuid = self.by_uuid
        for start in self.members:
            direct_parent = by_uuid.get(start.parent) if start.parent is not None else None
            if direct_parent is not None and direct_parent.index in tops:
                tops[start.index] = tops[direct_parent.index]
                continue
            trail: list[int] = []
            seen: set[int] = set()
            node = start
            while node.index not in tops and node.index not in seen:
                trail.append(node.index)
                seen.add(node.index)
                parent = self.parent(node)
                if parent is None and node.logical_parent is not None:
                    parent = self.by_uuid.get(node.logical_parent)
                if parent is None:
                    break
                node = parent
            tops.update(dict.fromkeys(trail, tops.get(node.index, node.index)))
        return tops
