"""Tool calls: each gets one result, right behind it, and no result is without its call."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from steno.check.graph import Graph
from steno.check.pairs import Block, Pairs
from steno.check.repair.edits import Drafts, new_uuid
from steno.check.repair.records import envelope_of, message_of, objects_in
from steno.check.repair.shape import just_after, stamp
from steno.format.records import read_time
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
    elif pairs.early:
        _move(drafts, graph, pairs.early, "tools.result-before-use")
    elif pairs.late:
        _move(drafts, graph, pairs.late, "tools.result-late")
    elif _reattach(drafts, graph, pairs):
        pass
    elif pairs.orphans or pairs.repeated:
        repeated = tuple(_surplus(graph, pairs))
        _take_out(drafts, Pairs(orphans=pairs.orphans, repeated=repeated))
    elif pairs.open or pairs.interrupted:
        _Answers(drafts, graph).give(pairs)


def _rename(drafts: Drafts, graph: Graph, pairs: Pairs) -> None:
    """Give calls whose id an earlier response has used a new one, and their results too."""
    places = {node.index: place for place, node in enumerate(graph.messages)}
    answers: defaultdict[str, list[int]] = defaultdict(list)
    for place, node in enumerate(graph.messages):
        for each in node.results:
            answers[each].append(place)
    for call in pairs.reused:
        new = f"{call.id}_{new_uuid(call.id, call.node.uuid)[:8]}"
        behind = answers[call.id]
        at = bisect_right(behind, places[call.node.index])
        answer = graph.messages[behind[at]] if at < len(behind) else None
        for node in (call.node, *((answer,) if answer is not None else ())):
            blocks = [
                _renamed(block, call.id, new)
                for block in objects_in(message_of(drafts, node).get("content"))
            ]
            what = "give a call an id of its own: an earlier response has used it"
            _write(drafts, node, blocks, "tools.duplicate-use", what)


def _renamed(block: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    key = _IDS.get(str(block.get("type")), "")
    return {**block, key: new} if key and block.get(key) == old else block


def _move(drafts: Drafts, graph: Graph, results: Iterable[Block], finding: str) -> None:
    """Hang results that stand elsewhere right behind their call."""
    calls = {call: node for node in graph.messages for call in node.uses}
    for result in results:
        call = calls[result.id]
        if result.node.parent == call.uuid:
            continue
        if len(result.node.results) > 1 or not _free(graph, call, result.node):
            _take_out(drafts, Pairs(orphans=(result,)))
            continue
        drafts.unlink(result.node)
        what = "hang the result behind its call"
        fields = {"parentUuid": call.uuid}
        drafts.change(result.node, finding, what, fields)


def _free(graph: Graph, call: Node, result: Node) -> bool:
    """Whether the result can hang on the call: the call must not hang on nothing but it."""
    return graph.parent(call) is not result or result.parent is not None


def _reattach(drafts: Drafts, graph: Graph, pairs: Pairs) -> bool:
    """Hang a result on its call, where the call is beside the way and the way loses nothing by it.

    That is, where the call hangs on what the result hung on before. One at a time: others may hang
    on this one.
    """
    if not pairs.orphans:
        return False
    known = {node.index for node in graph.chain}
    calls = {
        call: node
        for node in graph.members
        if node.converses and node.index not in known
        for call in node.uses
    }
    for result in pairs.orphans:
        call = calls.get(result.id)
        above = graph.parents(call) if call is not None else set[str | None]()
        if call is None or result.node.parent not in above or result.node.uuid in above:
            continue
        what = "hang the result on its call"
        drafts.change(result.node, "tools.orphan-result", what, {"parentUuid": call.uuid})
        return True
    return False


def _surplus(graph: Graph, pairs: Pairs) -> Iterator[Block]:
    """Yield the results that go where a call has several: all but one that the chain runs through.

    One that was only pulled in from beside may stand in the middle of a response.
    """
    way = {node.index for node in graph.way}
    calls = {result.id for result in pairs.repeated}
    holders: defaultdict[str, list[Node]] = defaultdict(list)
    for node in graph.messages:
        for call in calls.intersection(node.results):
            holders[call] += [node] * node.results.count(call)
    for call, nodes in holders.items():
        nodes.sort(key=lambda node: node.index not in way)
        yield from (Block(node, call) for node in nodes[1:])


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
            for call in node.results
            if not node.sidechain
        }
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
            self._go_through(call.node, beside.uuid, finding, "hang it behind the result beside it")
            return
        record = self._synthetic(call)
        what = f"answer the call {call.id}: the session was cut off before its result"
        self.drafts.insert(call.node, record, finding, what)
        self._go_through(call.node, record["uuid"], finding, "hang it behind the answer")

    def _go_through(self, node: Node, result: str | None, finding: str, what: str) -> None:
        """Let the conversation go on behind a result instead of beside it."""
        for child in self.below.pop(node.uuid, ()):
            # The lines of one response hang on each other.
            same = child.message_id is not None and child.message_id == node.message_id
            if not same and not child.results:
                self.drafts.change(child, finding, what, {"parentUuid": result})

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
            "timestamp": stamp(just_after(time)) if time else node.timestamp,
            "sourceToolAssistantUUID": node.uuid,
        }


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
