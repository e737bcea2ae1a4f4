"""The chain: lost parents are bridged as the real client bridges them, rings are cut."""

from bisect import bisect_left, bisect_right

from steno.check.graph import Graph
from steno.check.repair.edits import Drafts
from steno.format.records import read_time
from steno.session.nodes import CONVERSATION, Node
from steno.session.resume.clients import Client

__all__ = ["mend_chain"]


def mend_chain(drafts: Drafts, *, client: Client) -> None:
    """Give every record a parent that is there, without rings, and the client a way to them all."""
    broken = _broken(drafts, drafts.graph)
    if broken:
        _bridge(drafts, broken)
    if not drafts:
        _straighten(drafts, drafts.graph, client)


def _bridge(drafts: Drafts, broken: list[tuple[str, Node, str]]) -> None:
    bridge = _Bridge(drafts.graph, [node for _, node, _ in broken])
    for finding, node, what in broken:
        parent = bridge.above(node)
        if parent != node.parent:
            drafts.change(node, finding, what, {"parentUuid": parent})
    for node in bridge.cut:
        what = "let it begin the conversation: it hung on a record that comes after it"
        drafts.change(node, "chain.forward", what, {"parentUuid": None})


def _broken(drafts: Drafts, graph: Graph) -> list[tuple[str, Node, str]]:
    """Return the records whose parent is of no use, in file order."""
    leading = _leading(graph)
    found: dict[int, tuple[str, Node, str]] = {}
    for node in graph.dangling:
        if node.index in leading:
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
    for node in graph.roots[1:]:
        if node.is_message and "parentUuid" not in drafts.fields(node):
            what = "hang it on the record before: it names no parent"
            found[node.index] = ("fields.no-parent", node, what)
    return [found[index] for index in sorted(found)]


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
        for node in graph.members:
            parent = named.get(node.parent) if node.parent is not None else None
            if parent is not None and node.index not in tops:
                self._above[node.index] = parent.index

    def top(self, index: int) -> int:
        """Return the place of the record that a record hangs on in the end."""
        above, trail = self._above, [index]
        seen = {index}
        while above[index] != index and above[index] not in seen:
            index = above[index]
            seen.add(index)
            trail.append(index)
        for each in trail[:-1]:
            above[each] = index
        return index

    def hang(self, index: int, parent: int) -> None:
        """Hang a top on another record."""
        self._above[index] = parent


class _Bridge:
    """Finds what a record should hang on: the nearest before it in time, else in the file."""

    def __init__(self, graph: Graph, broken: list[Node]) -> None:
        self.graph = graph
        self.cut: list[Node] = []
        # Whatever they named plays no part any more.
        self._tops = {node.index for node in broken}
        self._given: dict[int, int] = {}
        self._trees = _Trees(graph, self._tops)
        self._all = [node for node in graph.members if node.type in CONVERSATION]
        self._places = [node.index for node in self._all]
        timed = [
            (time.timestamp(), node.index, node)
            for node in self._all
            if (time := read_time(node.timestamp)) is not None
        ]
        self._timeline = sorted(timed, key=lambda each: each[:2])

    def above(self, node: Node) -> str | None:
        """Return the id of the new parent; None when nothing comes before."""
        found = self._earlier(node) or self._before(node)
        if found is None and self._cut_loose(node):
            found = self._earlier(node) or self._before(node)
        if found is None:
            return None
        self._given[node.index] = found.index
        self._trees.hang(node.index, found.index)
        return found.uuid

    def _cut_loose(self, node: Node) -> bool:
        """Free the first record of the file from a later one that hangs, in the end, on `node`."""
        first = next((each for each in self._all if _same_voice(each, node)), None)
        parent = self.graph.parent(first) if first is not None else None
        if first is None or parent is None or first is node or parent.index < first.index:
            return False
        if first.index in self._tops:
            return False
        self.cut.append(first)
        self._tops.add(first.index)
        self._trees = _Trees(self.graph, self._tops)
        for index, given in self._given.items():
            self._trees.hang(index, given)
        return True

    def _earlier(self, node: Node) -> Node | None:
        time = read_time(node.timestamp)
        if time is None:
            return None
        # Of records of one time, those behind it in the file do not come before it.
        place = bisect_left(self._timeline, (time.timestamp(), node.index))
        while place > 0:
            place -= 1
            candidate = self._timeline[place][2]
            if self._fits(candidate, node):
                return candidate
        return None

    def _before(self, node: Node) -> Node | None:
        place = bisect_right(self._places, node.index - 1)
        while place > 0:
            place -= 1
            if self._fits(self._all[place], node):
                return self._all[place]
        return None

    def _fits(self, candidate: Node, node: Node) -> bool:
        """Whether a record may become the parent: it must not hang below its new child."""
        if candidate is node or not _same_voice(candidate, node):
            return False
        return self._trees.top(candidate.index) != node.index


def _same_voice(one: Node, other: Node) -> bool:
    """Whether two records belong to the main conversation, or to one sub-agent."""
    return one.sidechain == other.sidechain and one.agent_id == other.agent_id


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
