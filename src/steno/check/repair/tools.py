"""Tool calls: each gets one result, right behind it, and no result is without its call."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from steno.check.graph import Graph
from steno.check.pairs import Block, Pairs, same_response
from steno.check.repair.edits import Drafts, new_uuid
from steno.check.repair.moving import move_results, reattach
from steno.check.repair.records import envelope_of, message_of, objects_in
from steno.check.repair.shape import just_after
from steno.format.records import read_time, time_text
from steno.format.values import as_list, as_object
from steno.session.nodes import Node
from steno.session.resume.mend import INTERRUPTED

__all__ = ["mend_tools"]

_IDS: Final = {"tool_use": "id", "tool_result": "tool_use_id"}


def mend_tools(drafts: Drafts) -> None:
    """Pair calls and results along the conversation, one kind of trouble at a time."""
    graph = drafts.graph
    pairs = graph.pairs
    if drafts.hides_records:
        # What is missing may stand on the line that was not read.
        return
    if pairs.reused:
        _rename(drafts, graph, pairs)
        return
    move_results(drafts, graph, pairs)
    if drafts or reattach(drafts, graph, pairs.orphans):
        return
    if pairs.orphans or pairs.repeated:
        repeated = tuple(_surplus(graph, pairs))
        _take_out(drafts, Pairs(orphans=pairs.orphans, repeated=repeated))
    elif pairs.open or pairs.interrupted:
        _Answers(drafts, graph).give(pairs)


def _rename(drafts: Drafts, graph: Graph, pairs: Pairs) -> None:
    """Give calls whose id an earlier one has a new one, and their results too."""
    spoken = _Spoken(graph)
    # From the end, so that of two calls in one line the first one keeps its id.
    for call in reversed(pairs.reused):
        twins = spoken.twins(call)
        name = (call.id, call.node.uuid, *((twins,) if twins else ()))
        new = f"{call.id}_{new_uuid(*name)[:8]}"
        used = "another call of the response has it" if twins else "an earlier response has used it"
        for node in (call.node, spoken.answer(call, twins)):
            if node is not None:
                blocks = _renamed(objects_in(message_of(drafts, node).get("content")), call.id, new)
                what = f"give a call an id of its own: {used}"
                _write(drafts, node, blocks, "tools.duplicate-use", what)
        spoken.forget(call)


def _renamed(blocks: list[dict[str, Any]], old: str, new: str) -> list[dict[str, Any]]:
    """Return blocks, the last one with an id under a new one."""
    for place in range(len(blocks) - 1, -1, -1):
        key = _IDS.get(str(blocks[place].get("type")), "")
        if key and blocks[place].get(key) == old:
            return [*blocks[:place], {**blocks[place], key: new}, *blocks[place + 1 :]]
    return blocks


class _Spoken:
    """The calls and results of a conversation by their ids, with their places."""

    def __init__(self, graph: Graph) -> None:
        self._messages = graph.messages
        self._calls: defaultdict[str, list[int]] = defaultdict(list)
        self._answers: defaultdict[str, list[int]] = defaultdict(list)
        self._places: dict[int, int] = {}
        for place, node in enumerate(graph.messages):
            self._places[node.index] = place
            for each in node.uses:
                self._calls[each].append(place)
            for each in node.results:
                self._answers[each].append(place)

    def forget(self, call: Block) -> None:
        """Leave out a call: it has another id now."""
        self._calls[call.id].remove(self._places[call.node.index])

    def twins(self, call: Block) -> int:
        """Return how many calls of the same response before this one have its id."""
        own = self._places[call.node.index]
        before = (self._messages[at] for at in self._calls[call.id] if at <= own)
        return sum(each is call.node or same_response(each, call.node) for each in before) - 1

    def answer(self, call: Block, twins: int) -> Node | None:
        """Return the message with the result of a call; the first one is that of the first twin."""
        own, answers = self._places[call.node.index], self._answers[call.id]
        at = bisect_right(answers, own) + twins
        if at >= len(answers):
            return None
        between = (self._messages[place] for place in self._calls[call.id] if place > own)
        others = any(self._places[each.index] < answers[at] for each in between)
        return None if twins and others else self._messages[answers[at]]


def _surplus(graph: Graph, pairs: Pairs) -> Iterator[Block]:
    """Yield the results that go where a call has several: all but one that the chain runs through.

    One that was only pulled in from beside may stand in the middle of a response, or before the
    last compaction; of several of those the one stays that is nearest to where a result belongs.
    """
    last = max((place for place, node in enumerate(graph.way) if node.is_boundary), default=0)
    way = {node.index for node in graph.way[last:]}
    calls = {result.id for result in pairs.repeated}
    holders: defaultdict[str, list[Node]] = defaultdict(list)
    callers: dict[str, Node] = {}
    for node in graph.messages:
        callers |= dict.fromkeys(calls.intersection(node.uses), node)
        for call in calls.intersection(node.results):
            holders[call] += [node] * node.results.count(call)
    for call, nodes in holders.items():
        caller = callers.get(call)
        nodes.sort(key=lambda node: (node.index not in way, _distance(graph, node, caller)))
        yield from (Block(node, call) for node in nodes[1:])


def _distance(graph: Graph, result: Node, caller: Node | None) -> int:
    """Return 0 for a result below the response with its call, 1 if it comes later, 2 if before."""
    if caller is None:
        return 2
    parent = graph.parent(result)
    if parent is not None and (parent is caller or same_response(parent, caller)):
        return 0
    return 1 if result.index > caller.index else 2


def _take_out(drafts: Drafts, pairs: Pairs) -> None:
    """Take out results that no call asked for, and second results of one call."""
    bad: defaultdict[int, list[tuple[Block, str]]] = defaultdict(list)
    for result in pairs.orphans:
        bad[result.node.index].append((result, "tools.orphan-result"))
    for result in pairs.repeated:
        bad[result.node.index].append((result, "tools.duplicate-result"))
    for found in bad.values():
        _without(drafts, found[0][0].node, found)


def _without(drafts: Drafts, node: Node, found: list[tuple[Block, str]]) -> None:
    unwanted = Counter(result.id for result, _ in found)
    kept: list[dict[str, Any]] = []
    # From the end, so that of two results of one call in one message the first one stays.
    for block in reversed(objects_in(message_of(drafts, node).get("content"))):
        name = str(block.get("tool_use_id", ""))
        if block.get("type") == "tool_result" and unwanted[name]:
            unwanted[name] -= 1
        else:
            kept.append(block)
    kept.reverse()
    finding = found[0][1]
    names = ", ".join(result.id for result, _ in found)
    second = finding == "tools.duplicate-result"
    said = f"a second result of a call ({names})" if second else f"a result of no call ({names})"
    if kept:
        lost = f"{said} in {node.uuid}"
        _write(drafts, node, kept, finding, f"take out {said}", lost=lost)
    else:
        drafts.set_aside(node, finding, f"set aside {said}")


class _Answers:
    """Results for calls that have none."""

    def __init__(self, drafts: Drafts, graph: Graph) -> None:
        self.drafts = drafts
        self.hanging = {
            (node.parent, call): node
            for node in drafts.transcript.nodes
            if node.is_result and not node.sidechain
            for call in node.results
        }
        self.boundaries = [node for node in drafts.transcript.nodes if node.is_boundary]
        self.uses = Counter(call for node in drafts.transcript.nodes for call in node.uses)
        self.below: defaultdict[str | None, list[Node]] = defaultdict(list)
        for node in graph.messages:
            self.below[node.parent].append(node)

    def give(self, pairs: Pairs) -> None:
        """Answer calls the way the client does, with an error, unless a result hangs beside."""
        for call in pairs.open:
            self._answer(call, "tools.unanswered")
        for call in pairs.interrupted:
            self._answer(call, "tools.interrupted")

    def _answer(self, call: Block, finding: str) -> None:
        beside = self.hanging.get((call.node.uuid, call.id))
        if beside is not None:
            what = "hang it behind the result beside it"
            if not self._go_through(call.node, beside.uuid, finding, what):
                self._tell_apart(call, beside)
            return
        record = self._synthetic(call)
        what = f"answer the call {call.id}: the session was cut off before its result"
        self.drafts.insert(call.node, record, finding, what)
        self._keep(call.node, record["uuid"], finding)
        self._go_through(call.node, record["uuid"], finding, "hang it behind the answer")

    def _keep(self, node: Node, answer: str, finding: str) -> None:
        """Let a compaction that kept a call keep its answer, too."""
        for boundary in self.boundaries:
            metadata = as_object(self.drafts.fields(boundary).get("compactMetadata")) or {}
            kept = as_object(metadata.get("preservedMessages")) or {}
            if node.uuid not in (as_list(kept.get("uuids")) or ()):
                continue
            lists = {
                name: [uuid for each in names for uuid in _with(each, node.uuid, answer)]
                for name in ("uuids", "allUuids")
                if (names := as_list(kept.get(name))) is not None
            }
            now = {**metadata, "preservedMessages": {**kept, **lists}}
            what = "keep the answer of a call that was kept"
            self.drafts.change(boundary, finding, what, {"compactMetadata": now})

    def _tell_apart(self, call: Block, result: Node) -> None:
        """Give a call and its result an id of their own, where one before a compaction has it.

        Such a result is not found by its id, although it hangs where it belongs.
        """
        if self.uses[call.id] > 1:
            new = f"{call.id}_{new_uuid(call.id, call.node.uuid)[:8]}"
            what = "give a call an id of its own: one that was summed up has it"
            for node in (call.node, result):
                blocks = objects_in(message_of(self.drafts, node).get("content"))
                blocks = _renamed(blocks, call.id, new)
                _write(self.drafts, node, blocks, "tools.duplicate-use", what)

    def _go_through(self, node: Node, result: str | None, finding: str, what: str) -> bool:
        """Let the conversation go on behind a result instead of beside it; False if it does."""
        changed = False
        for child in self.below.pop(node.uuid, ()):
            # The lines of one response hang on each other.
            same = child.message_id is not None and child.message_id == node.message_id
            if not same and not child.results:
                self.drafts.change(child, finding, what, {"parentUuid": result})
                changed = True
        return changed

    def _synthetic(self, call: Block) -> dict[str, Any]:
        node = call.node
        time = read_time(node.timestamp)
        block = {
            "type": "tool_result",
            "content": INTERRUPTED,
            "is_error": True,
            "tool_use_id": call.id,
        }
        return {
            "parentUuid": node.uuid,
            "isSidechain": False,
            **envelope_of(self.drafts.fields(node)),
            "type": "user",
            "message": {"role": "user", "content": [block]},
            "uuid": new_uuid("answer", node.uuid, call.id),
            "timestamp": time_text(just_after(time)) if time else node.timestamp,
            "sourceToolAssistantUUID": node.uuid,
        }


def _with(name: Any, uuid: str | None, answer: str) -> tuple[Any, ...]:
    return (name, answer) if name == uuid else (name,)


def _write(
    drafts: Drafts,
    node: Node,
    blocks: list[dict[str, Any]],
    finding: str,
    what: str,
    *,
    lost: str = "",
) -> None:
    fields = {"message": {**message_of(drafts, node), "content": blocks}}
    drafts.change(node, finding, what, fields, lost=lost)
