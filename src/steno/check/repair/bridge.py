"""What a record should hang on whose parent is of no use."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from steno.check.graph import Graph
from steno.format.records import read_time
from steno.session.nodes import CONVERSATION, Node

__all__ = ["Bridge", "weakest"]


class Bridge:
    """Finds what a record should hang on: the nearest before it in time, else in the file.

    A result hangs on its call, or on what hangs on that.
    """

    def __init__(self, graph: Graph, broken: list[Node]) -> None:
        self.graph = graph
        self.cut: list[Node] = []
        """Records that had to be freed from a later one; they want a parent as well."""
        # Whatever they named plays no part any more.
        self._tops = {node.index for node in broken}
        self._trees = _Trees(graph, self._tops)
        spoken: defaultdict[tuple[bool, str], list[Node]] = defaultdict(list)
        self._calls: defaultdict[str, list[Node]] = defaultdict(list)
        for node in graph.members:
            if node.type in CONVERSATION:
                spoken[_speaker(node)].append(node)
            for call in node.uses:
                self._calls[call].append(node)
        self._voices = {speaker: _Voice(nodes) for speaker, nodes in spoken.items()}
        self._compacted = any(node.is_boundary for node in graph.members)

    def above(self, node: Node) -> Node | None:
        """Return the new parent; None when nothing comes before."""
        voice = self._voices.get(_speaker(node))
        if voice is None:
            return None
        found, link = self._found(voice, node)
        call = self._call(node, found, link)
        if found is None and call is None and self._cut_loose(voice, node):
            found, link = self._found(voice, node)
            call = self._call(node, found, link)
        parent = call or found
        if parent is None:
            return None
        if link is not None and self._trees.leads(parent.index, link.index):
            self._cut(link)
        self._trees.hang(node.index, parent.index)
        return parent

    def _found(self, voice: "_Voice", node: Node) -> tuple[Node | None, Node | None]:
        """Return the nearest record that does not hang below its new child, or should not.

        With it the record that has to be cut off for that, if one has.
        """
        hopeless = {node.index}
        for each in voice.before(node):
            if each is node:
                continue
            if self._trees.top(each.index) != node.index:
                return each, None
            link = self._wrong_link(each, hopeless)
            if link is not None:
                return each, link
        return None, None

    def _wrong_link(self, low: Node, hopeless: set[int]) -> Node | None:
        """Return the first record on the way up that hangs on what came later.

        `hopeless` are records above which there is none; they become more. What was given a parent
        already is let be.
        """
        nodes = self.graph.transcript.nodes
        at = low
        trail: list[int] = []
        while at.index not in hopeless:
            parent = nodes[self._trees.above(at.index)]
            # One order alone may be wrong: that of the file where lines were swapped, that of time
            # where a clock was.
            later = at.index < parent.index and _is_earlier(at, parent)
            if later and at.index not in self._tops:
                return at
            trail.append(at.index)
            at = parent
        hopeless.update(trail)
        return None

    def _cut(self, node: Node) -> None:
        self.cut.append(node)
        self._tops.add(node.index)
        self._trees.cut(node.index)

    def _call(self, node: Node, found: Node | None, link: Node | None) -> Node | None:
        """Return the call that a record answers, unless what was found is of that response.

        Of several calls of one id, that which the found one leads to, or the nearest before.
        `link` is what can be cut off, and all that hangs on it with it.
        """
        calls = [
            call
            for call in (self._calls.get(node.results[0], ()) if node.results else ())
            if _speaker(call) == _speaker(node) and self._is_free(call, node, link)
        ]
        if not calls or found is None:
            return _nearest(calls, node)
        near = self._trees.first_above(found.index, {call.index for call in calls})
        if near is None:
            if self._compacted:
                calls = [call for call in calls if not self._is_summed_up(call, found)]
            return _nearest(calls, node)
        call = self.graph.transcript.nodes[near]
        if found.is_result or (found.type == call.type and found.message_id == call.message_id):
            return None
        return None if self._compacted and self._is_summed_up(call, found) else call

    def _is_free(self, call: Node, node: Node, link: Node | None) -> bool:
        """Whether a call does not hang below a record, or will not when a link is cut."""
        if self._trees.top(call.index) != node.index:
            return True
        return link is not None and self._trees.leads(call.index, link.index)

    def _is_summed_up(self, call: Node, found: Node) -> bool:
        """Whether the conversation was compacted between a call and a record behind it."""
        boundary = self._boundary(found)
        if boundary is None or self._boundary(call) is boundary:
            return False
        return call.index < boundary.index

    def _boundary(self, node: Node) -> Node | None:
        """Return where the part of the conversation begins that a record is in."""
        seen: set[int] = set()
        while not node.is_boundary and node.index not in seen:
            seen.add(node.index)
            node = self.graph.transcript.nodes[self._trees.above(node.index)]
        return node if node.is_boundary else None

    def _cut_loose(self, voice: "_Voice", node: Node) -> bool:
        """Free the first record of the file from a later one that hangs, in the end, on `node`.

        But not where the times say that `node` came first, and the lines were merely swapped.
        """
        first = voice.nodes[0]
        parent = self.graph.parent(first)
        if parent is None or first is node or parent.index < first.index:
            return False
        if first.index in self._tops or (_may_begin(node) and _is_earlier(node, first)):
            return False
        self._cut(first)
        return True


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

    def first_above(self, index: int, wanted: set[int]) -> int | None:
        """Return the nearest of some records that a record is or hangs on, if only in the end."""
        seen: set[int] = set()
        while index not in seen and index not in wanted:
            seen.add(index)
            index = self._above[index]
        return index if index in wanted else None

    def leads(self, index: int, above: int) -> bool:
        """Whether a record is another or hangs on it, if only in the end."""
        return self.first_above(index, {above}) is not None

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


def weakest(ring: list[Node]) -> Node:
    """Return the record whose parent is the wrong one in a ring: the first in the file.

    But where that cannot begin a conversation, and the times tell plainly of another that can, it
    is that one. The records of the ring are each followed by their parent.
    """
    first = min(ring, key=lambda node: node.index)
    if _may_begin(first):
        return first
    above = zip(ring, [*ring[1:], ring[0]], strict=True)
    wrong = [node for node, parent in above if _is_earlier(node, parent)]
    return wrong[0] if len(wrong) == 1 and _may_begin(wrong[0]) else first


def _may_begin(node: Node) -> bool:
    """Whether a conversation may begin with a record: an answer, or a result, follows something."""
    return node.type != "assistant" and not node.is_result


def _nearest(calls: list[Node], node: Node) -> Node | None:
    """Return the last of some calls that came before a record, or else the last of all."""
    before = [call for call in calls if not _is_earlier(node, call)]
    return max(before or calls, key=_moment, default=None)


def _moment(node: Node) -> tuple[float, int]:
    time = read_time(node.timestamp)
    return time.timestamp() if time is not None else 0.0, node.index


def _is_earlier(node: Node, other: Node) -> bool:
    """Whether the time of a record is before that of another; not when one has none."""
    time, of_other = read_time(node.timestamp), read_time(other.timestamp)
    return time is not None and of_other is not None and time < of_other


def _speaker(node: Node) -> tuple[bool, str]:
    """Return what tells the main conversation and its sub-agents apart."""
    return node.sidechain, node.agent_id
