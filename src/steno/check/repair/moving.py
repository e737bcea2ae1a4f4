"""Results that stand elsewhere than behind their call are hung on it."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from steno.check.graph import Graph
from steno.check.pairs import Block, Pairs
from steno.check.repair.edits import Drafts, new_uuid
from steno.check.repair.records import envelope_of, message_of, objects_in
from steno.session.nodes import Node

__all__ = ["move_results", "reattach"]

_HANG: Final = "hang the result behind its call"


def move_results(drafts: Drafts, graph: Graph, pairs: Pairs) -> None:
    """Hang results right behind their call that stand before it, or behind another response."""
    found = (
        (pairs.early, "tools.result-before-use"),
        (pairs.late, "tools.result-late"),
    )
    calls = {call: node for node in graph.messages for call in node.uses}
    for results, finding in found:
        lines: defaultdict[int, set[str]] = defaultdict(set)
        for result in results:
            lines[result.node.index].add(result.id)
        for index, ids in lines.items():
            line = _Line(drafts, graph, graph.transcript.nodes[index], finding)
            line.move(ids, calls)
        if drafts:
            # What moved may have brought others to their places.
            return


class _Line:
    """A line with results that stand elsewhere."""

    def __init__(self, drafts: Drafts, graph: Graph, node: Node, finding: str) -> None:
        self.drafts = drafts
        self.graph = graph
        self.node = node
        self.finding = finding

    def move(self, ids: set[str], calls: Mapping[str, Node]) -> None:
        """Move results to their calls: the line, if all are of one response, or else parts of it."""
        responses: defaultdict[str | None, list[str]] = defaultdict(list)
        for each in dict.fromkeys(self.node.results):
            if each in ids:
                responses[_response(calls[each])].append(each)
        *parts, last = responses.values()
        stay = [
            each
            for each in self.node.results
            if each not in ids
            and (each not in calls or _response(calls[each]) != _response(calls[last[0]]))
        ]
        if stay:
            parts, last = [*parts, last], []
        for part in parts:
            self._part(part, _last_of(calls, part))
        if parts:
            self._take_out({each for part in parts for each in part})
        if last:
            self._whole(last, _last_of(calls, last))

    def _whole(self, ids: list[str], call: Node) -> None:
        if self.node.parent == call.uuid:
            return
        # The call must not hang on nothing but the result.
        if self.graph.parent(call) is self.node and self.node.parent is None:
            blocks = objects_in(message_of(self.drafts, self.node).get("content"))
            if not all(_answers(block, ids) for block in blocks):
                # The words beside it begin the conversation.
                self._part(ids, call)
                self._take_out(set(ids))
                return
            what = "set aside a result that cannot be hung on its call: nothing else comes before"
            self.drafts.set_aside(self.node, self.finding, what)
            return
        self.drafts.unlink(self.node)
        self.drafts.change(self.node, self.finding, _HANG, {"parentUuid": call.uuid})

    def _part(self, ids: list[str], call: Node) -> None:
        """Write results into a record of their own."""
        fields = self.drafts.fields(self.node)
        message = message_of(self.drafts, self.node)
        blocks = [block for block in objects_in(message.get("content")) if _answers(block, ids)]
        record = {
            "parentUuid": call.uuid,
            "isSidechain": False,
            **envelope_of(fields),
            "type": "user",
            "message": {**message, "content": blocks},
            "uuid": new_uuid("part", self.node.uuid, *ids),
            "timestamp": fields.get("timestamp"),
            "sourceToolAssistantUUID": call.uuid,
        }
        what = f"{_HANG}, apart from what else the line has"
        after = max(self.node, call, key=lambda node: node.index)
        self.drafts.insert(after, record, self.finding, what)

    def _take_out(self, ids: set[str]) -> None:
        message = message_of(self.drafts, self.node)
        kept = [block for block in objects_in(message.get("content")) if not _answers(block, ids)]
        what = "take out results that are hung behind their call"
        fields = {"message": {**message, "content": kept}}
        self.drafts.change(self.node, self.finding, what, fields)


def _answers(block: dict[str, Any], ids: Container[object]) -> bool:
    return block.get("type") == "tool_result" and block.get("tool_use_id") in ids


def _response(call: Node) -> str | None:
    return call.message_id or call.uuid


def _last_of(calls: Mapping[str, Node], ids: Iterable[str]) -> Node:
    """Return the last line of a response that holds one of some calls."""
    return max((calls[each] for each in ids), key=lambda node: node.index)


def reattach(drafts: Drafts, graph: Graph, orphans: Iterable[Block]) -> bool:
    """Hang results on calls that are beside the way, where the way loses nothing by it.

    That is, where the call hangs on what the result hung on before. Whatever hangs on the result
    then hangs on all that it hung on, and on more; so several can be moved at once, as long as
    none gets to hang on itself.
    """
    known = {node.index for node in graph.chain} if orphans else set[int]()
    calls = {
        call: node
        for node in (graph.members if orphans else ())
        if node.converses and node.index not in known
        for call in node.uses
    }
    parents: dict[str | None, str | None] = {}
    responses: set[str | None] = set()
    for result in orphans:
        node, call = result.node, calls.get(result.id)
        # What else is of that response is in its place then, perhaps.
        if call is None or node.uuid in parents or _response(call) in responses:
            continue
        if node.parent == call.uuid:
            # It is in its place already, and pulled in from there: the call is not sent.
            continue
        leads = graph.ancestry.leads
        if not leads(call.uuid, node.parent) or _passes(graph, parents, call, node):
            continue
        parents[node.uuid] = call.uuid
        responses.add(_response(call))
        what = "hang the result on its call"
        drafts.change(node, "tools.orphan-result", what, {"parentUuid": call.uuid})
    return bool(parents)


def _passes(
    graph: Graph, parents: Mapping[str | None, str | None], call: Node, result: Node
) -> bool:
    """Whether the way up from a call comes by its result before it comes to what that hangs on."""
    seen: set[str | None] = set()
    uuid = call.uuid
    while uuid != result.parent and uuid not in seen:
        if uuid == result.uuid:
            return True
        seen.add(uuid)
        above = graph.by_uuid.get(uuid or "")
        uuid = parents.get(uuid, above.parent if above is not None else None)
    return uuid in seen
