"""The chain: lost parents are bridged as the real client bridges them, rings are cut."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, TypeAlias

from steno.check.graph import Graph
from steno.check.repair.edits import Drafts
from steno.format.records import read_time
from steno.session.nodes import CONVERSATION, Node
from steno.session.resume.clients import Client

__all__ = ["mend_chain"]

_BEGIN: Final = "let it begin the conversation: nothing comes before it"
_NO_PARENT: Final = "fields.no-parent"
_Broken: TypeAlias = tuple[str, Node, str]
"""The finding, the record, and what is done about it."""


def mend_chain(drafts: Drafts, *, client: Client) -> None:
    """Give every record a parent that is there, without rings, and the client a way to them all."""
    broken = _broken(drafts, drafts.graph)
    if broken:
        _bridge(drafts, broken)
    if not drafts:
        _straighten(drafts, drafts.graph, client)


def _bridge(drafts: Drafts, broken: list[_Broken]) -> None:
    bridge = _Bridge(drafts.graph, [node for _, node, _ in broken])
    for finding, node, what in broken:
        parent = bridge.above(node)
        if parent != node.parent or finding == _NO_PARENT:
            said = what if parent is not None else _BEGIN
            drafts.change(node, finding, said, {"parentUuid": parent})
    for node in bridge.cut:
        parent = bridge.above(node)
        what = "hang it on the record before" if parent else "let it begin the conversation"
        what = f"{what}: it hung on a record that comes after it"
        drafts.change(node, "chain.forward", what, {"parentUuid": parent})


def _broken(drafts: Drafts, graph: Graph) -> list[_Broken]:
    """Return the records whose parent is of no use, in file order."""
    found: dict[int, _Broken] = {}
    # A parent that is not there may stand on a line that was too long to be read.
    for node in [] if drafts.hides_records else _lost_parents(graph):
        what = "hang it on the record before: its parent is not in the file"
        found[node.index] = ("chain.dangling", node, what)
    for node in graph.selfish:
        what = "hang it on the record before: it names itself as its parent"
        found[node.index] = ("chain.self-parent", node, what)
    for ring in graph.rings:
        first = min(ring, key=lambda node: node.index)
        what = f"cut the ring of {len(ring):,} records that are each other's parents"
        found[first.index] = ("chain.cycle", first, what)
    for node in graph.cut_off:
        what = "hang it on the record before: an answer always follows something"
        found[node.index] = ("chain.lost-parent", node, what)
    for node in _nameless_parents(drafts, graph):
        what = "hang it on the record before: it names no parent"
        found[node.index] = (_NO_PARENT, node, what)
    return [found[index] for index in sorted(found)]


def _lost_parents(graph: Graph) -> list[Node]:
    """Return what names a parent that is not in the file, where a message depends on it."""
    if not graph.dangling:
        return []
    leading = _leading(graph)
    return [node for node in graph.dangling if node.index in leading]


def _nameless_parents(drafts: Drafts, graph: Graph) -> list[Node]:
    """Return the messages without a parent's field; the first of a file needs none."""
    first = next((node for node in drafts.transcript.nodes if node.is_message), None)
    return [
        node
        for node in graph.roots
        if node is not first and node.is_message and "parentUuid" not in drafts.fields(node)
    ]


def _leading(graph: Graph) -> set[int]:
    """Return the records that are messages or lead to one."""
    leading: set[int] = set()
    for start in graph.members:
        node: Node | None = start if start.is_message else None
        while node is not None and node.index not in leading:
            leading.add(node.index)
            node = graph.parent(node)
    return leading


class _Trees:
    """Which records hang together, told by the one at the top; grows as parents are given."""

    def __init__(self, graph: Graph, tops: set[int]) -> None:
        named = graph.by_uuid
        self._above = list(range(len(graph.transcript.nodes)))
        self._further: dict[int, int] = {}
        """For records that were asked about, one further up: the way to the top is walked once."""
        for node in graph.members:
            parent = named.get(node.parent) if node.parent is not None else None
            if parent is not None and node.index not in tops:
                self._above[node.index] = parent.index

    def top(self, index: int) -> int:
        """Return the place of the record that a record hangs on in the end."""
        above, further = self._above, self._further
        trail = [index]
        seen = {index}
        while (higher := further.get(index, above[index])) not in seen:
            index = higher
            seen.add(index)
            trail.append(index)
        further.update(dict.fromkeys(trail[:-1], index))
        return index

    def above(self, index: int) -> int:
        """Return the place of what a record hangs on; its own when it is a top."""
        return self._above[index]

    def leads(self, index: int, above: int) -> bool:
        """Whether a record hangs on another, if only in the end."""
        seen: set[int] = set()
        while index not in seen and index != above:
            seen.add(index)
            index = self._above[index]
        return index == above

    def hang(self, index: int, parent: int) -> None:
        """Hang a top on another record."""
        self._above[index] = parent

    def cut(self, index: int) -> None:
        """Make a record a top."""
        self._above[index] = index
        self._further.clear()


class _Voice:
    """The records of the main conversation, or of one sub-agent, by file order and by time."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.places = [node.index for node in nodes]
        timed = [
            (time.timestamp(), -node.index, node)
            for node in nodes
            if (time := read_time(node.timestamp)) is not None
        ]
        self.timeline = sorted(timed, key=lambda each: each[:2])

    def before(self, node: Node) -> Iterator[Node]:
        """Yield what comes before a record, the nearest in time first, then that in the file.

        Of records of one time the client takes the first in the file, and so does this.
        """
        time = read_time(node.timestamp)
        if time is not None:
            place = bisect_left(self.timeline, (time.timestamp(), 1))
            for at in range(place - 1, -1, -1):
                moment, _, each = self.timeline[at]
                # Of records of one time, those behind it in the file do not come before it.
                if each.index < node.index or moment < time.timestamp():
                    yield each
        for at in range(bisect_left(self.places, node.index) - 1, -1, -1):
            yield self.nodes[at]


class _Bridge:
    """Finds what a record should hang on: the nearest before it in time, else in the file.

    A result hangs on its call, or on what hangs on that.
    """

    def __init__(self, graph: Graph, broken: list[Node]) -> None:
        self.graph = graph
        self.cut: list[Node] = []
        # Whatever they named plays no part any more.
        self._tops = {node.index for node in broken}
        self._trees = _Trees(graph, self._tops)
        spoken: defaultdict[tuple[bool, str], list[Node]] = defaultdict(list)
        for node in graph.members:
            if node.type in CONVERSATION:
                spoken[_speaker(node)].append(node)
        self._voices = {speaker: _Voice(nodes) for speaker, nodes in spoken.items()}
        self._calls = {call: node for node in graph.members for call in node.uses}

    def above(self, node: Node) -> str | None:
        """Return the id of the new parent; None when nothing comes before."""
        voice = self._voices.get(_speaker(node))
        if voice is None:
            return None
        found = self._found(voice, node)
        if found is None and self._cut_loose(voice, node):
            found = self._found(voice, node)
        found = self._call(node, found) or found
        if found is None:
            return None
        self._trees.hang(node.index, found.index)
        return found.uuid

    def _found(self, voice: _Voice, node: Node) -> Node | None:
        """Return the nearest record that does not hang below its new child, or should not."""
        for each in voice.before(node):
            if each is node:
                continue
            if self._trees.top(each.index) != node.index or self._cut_between(each, node):
                return each
        return None

    def _cut_between(self, low: Node, high: Node) -> bool:
        """Free a record from one above it, where a link between them leads to what came later."""
        at = low
        while at is not high:
            above = self._trees.above(at.index)
            parent = self.graph.transcript.nodes[above]
            if at.index < above and _is_earlier(at, parent):
                self._cut(at)
                return True
            at = parent
        return False

    def _cut(self, node: Node) -> None:
        self.cut.append(node)
        self._tops.add(node.index)
        self._trees.cut(node.index)

    def _call(self, node: Node, found: Node | None) -> Node | None:
        """Return the call that a record answers, unless what was found is of that response."""
        call = self._calls.get(node.results[0]) if node.results else None
        if call is None or _speaker(call) != _speaker(node):
            return None
        if self._trees.top(call.index) == node.index:
            return None
        if found is None or not (found.is_result or found.message_id == call.message_id):
            return call
        return None if self._trees.leads(found.index, call.index) else call

    def _cut_loose(self, voice: _Voice, node: Node) -> bool:
        """Free the first record of the file from a later one that hangs, in the end, on `node`.

        But not where the times say that `node` came first, and the lines were merely swapped.
        """
        first = voice.nodes[0]
        parent = self.graph.parent(first)
        if parent is None or first is node or parent.index < first.index:
            return False
        if first.index in self._tops or _is_earlier(node, first):
            return False
        self._cut(first)
        return True


def _is_earlier(node: Node, other: Node) -> bool:
    """Whether the time of a record is before that of another; not when one has none."""
    time, of_other = read_time(node.timestamp), read_time(other.timestamp)
    return time is not None and of_other is not None and time < of_other


def _speaker(node: Node) -> tuple[bool, str]:
    """Return what tells the main conversation and its sub-agents apart."""
    return node.sidechain, node.agent_id


def _straighten(drafts: Drafts, graph: Graph, client: Client) -> None:
    """Chain the conversation one record after the other, for a client that would lose part of it.

    Clients before 2.1.200 go by parents alone, and so lose all but one of parallel results.
    """
    if not graph.lost(client):
        return
    before: Node | None = None
    for node in graph.conversation:
        if node.is_boundary or not node.converses:
            continue
        if before is not None and node.parent != before.uuid:
            what = f"hang it on the record before, for {client.version} to find it"
            drafts.change(node, "chain.unreachable", what, {"parentUuid": before.uuid})
        before = node
