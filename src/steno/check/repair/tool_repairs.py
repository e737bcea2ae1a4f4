"""Repair stages that pair tool calls and results: each call gets one result, directly after it."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

from steno.check.record_graph import RecordGraph, ToolBlock, ToolPairs, same_response
from steno.check.repair.edits import EditPlan, envelope_of, message_of, new_uuid, objects_in
from steno.check.repair.record_repairs import just_after
from steno.format.lenient_json import as_list, as_object
from steno.format.records import read_time, time_text
from steno.session.resume.entries import INTERRUPTED_CALL
from steno.session.transcript import Node

_MOVE_TEXT: Final = "move the tool result directly after its call"


def move_results(plan: EditPlan, graph: RecordGraph, pairs: ToolPairs) -> None:
    """Move results directly after their call if they come before it or after another response."""
    findings_by_kind = ((pairs.early, "tools.result-before-use"), (pairs.late, "tools.result-late"))
    calls = {call: node for node in graph.messages for call in node.uses}
    for results, finding in findings_by_kind:
        lines: defaultdict[int, set[str]] = defaultdict(set)
        for result in results:
            lines[result.node.index].add(result.id)
        for index, ids in lines.items():
            line = _ResultLine(plan, graph, graph.transcript.nodes[index], finding)
            line.move(ids, calls)
        if plan:
            # Moved results can change the positions of others, so pair again first.
            return


class _ResultLine:
    """A record with misplaced results."""

    def __init__(self, plan: EditPlan, graph: RecordGraph, node: Node, finding: str) -> None:
        self.drafts = plan
        self.graph = graph
        self.node = node
        self.finding = finding

    def move(self, ids: set[str], calls: Mapping[str, Node]) -> None:
        """Move results to their calls: the whole record, or parts of it if they belong to several responses."""
        responses: defaultdict[str | None, list[str]] = defaultdict(list)
        for call_id in dict.fromkeys(self.node.results):
            if call_id in ids:
                responses[_response_id(calls[call_id])].append(call_id)
        *parts, last = responses.values()
        stay = [
            each
            for each in self.node.results
            if each not in ids and (each not in calls or _response_id(calls[each]) != _response_id(calls[last[0]]))
        ]
        if stay:
            parts, last = [*parts, last], []
        for part in parts:
            self._move_part(part, _last_line_of(calls, part))
        if parts:
            self._remove_results({each for part in parts for each in part})
        if last:
            self._move_line(last, _last_line_of(calls, last))

    def _move_line(self, ids: list[str], call: Node) -> None:
        if self.node.parent == call.uuid:
            return
        # The call must not lose its only ancestor.
        if self.graph.parent(call) is self.node and self.node.parent is None:
            blocks = objects_in(message_of(self.drafts, self.node).get("content"))
            if not all(_is_result_of(block, ids) for block in blocks):
                # The other blocks of the record start the conversation.
                self._move_part(ids, call)
                self._remove_results(set(ids))
                return
            description = "set aside a tool result that cannot be linked to its call: no earlier record"
            self.drafts.set_aside(self.node, self.finding, description)
            return
        self.drafts.unlink(self.node)
        self.drafts.change(self.node, self.finding, _MOVE_TEXT, {"parentUuid": call.uuid})

    def _move_part(self, ids: list[str], call: Node) -> None:
        """Write results into a new record."""
        fields = self.drafts.fields(self.node)
        message = message_of(self.drafts, self.node)
        blocks = [block for block in objects_in(message.get("content")) if _is_result_of(block, ids)]
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
        description = f"{_MOVE_TEXT}, separate from the other blocks of its record"
        after = max(self.node, call, key=lambda node: node.index)
        self.drafts.insert(after, record, self.finding, description)

    def _remove_results(self, ids: set[str]) -> None:
        message = message_of(self.drafts, self.node)
        remaining = [block for block in objects_in(message.get("content")) if not _is_result_of(block, ids)]
        description = "remove tool results that were moved after their call"
        fields = {"message": {**message, "content": remaining}}
        self.drafts.change(self.node, self.finding, description, fields)


def _is_result_of(block: dict[str, Any], ids: Container[object]) -> bool:
    return block.get("type") == "tool_result" and block.get("tool_use_id") in ids


def _response_id(call: Node) -> str | None:
    return call.message_id or call.uuid


def _last_line_of(calls: Mapping[str, Node], ids: Iterable[str]) -> Node:
    """Return the last record of a response that contains one of the calls."""
    return max((calls[call_id] for call_id in ids), key=lambda node: node.index)


def reattach_orphans(plan: EditPlan, graph: RecordGraph, orphans: Iterable[ToolBlock]) -> bool:
    """Relink results to calls outside the chain, if the chain loses no records.

    That is the case if the call descends from the result's current parent. Descendants of the result keep all their
    ancestors, so several results can be moved at once, as long as no cycle results.
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
        # The other results of that response may be in place after this move.
        if call is None or node.uuid in parents or _response_id(call) in responses:
            continue
        if node.parent == call.uuid:
            # The result is already linked to its call, which is not sent.
            continue
        leads = graph.ancestry.descends_from
        if not leads(call.uuid, node.parent) or _passes_result(graph, parents, call, node):
            continue
        parents[node.uuid] = call.uuid
        responses.add(_response_id(call))
        description = "relink the tool result to its call"
        plan.change(node, "tools.orphan-result", description, {"parentUuid": call.uuid})
    return bool(parents)


def _passes_result(graph: RecordGraph, parents: Mapping[str | None, str | None], call: Node, result: Node) -> bool:
    """Return whether the ancestors of a call include its result before the result's parent."""
    seen: set[str | None] = set()
    uuid = call.uuid
    while uuid != result.parent and uuid not in seen:
        if uuid == result.uuid:
            return True
        seen.add(uuid)
        record = graph.by_uuid.get(uuid or "")
        uuid = parents.get(uuid, record.parent if record is not None else None)
    return uuid in seen


_ID_FIELDS: Final = {"tool_use": "id", "tool_result": "tool_use_id"}


def repair_tools(plan: EditPlan) -> None:
    """Pair calls and results along the conversation, one kind of finding at a time."""
    graph = plan.graph
    pairs = graph.pairs
    if plan.hides_records:
        # Missing calls or results may be on a line that was too long to read.
        return
    if pairs.reused:
        _rename_calls(plan, graph, pairs)
        return
    move_results(plan, graph, pairs)
    if plan or reattach_orphans(plan, graph, pairs.orphans):
        return
    if pairs.orphans or pairs.repeated:
        repeated = tuple(_surplus_results(graph, pairs))
        _remove_results(plan, ToolPairs(orphans=pairs.orphans, repeated=repeated))
    elif pairs.open or pairs.interrupted:
        _MissingResults(plan, graph).add_results(pairs)


def _rename_calls(plan: EditPlan, graph: RecordGraph, pairs: ToolPairs) -> None:
    """Give a new ID to each call with the ID of an earlier one, and to its results."""
    positions = _ToolPositions(graph)
    # In reverse order, so that the first of two calls in a record keeps its ID.
    for call in reversed(pairs.reused):
        twins = positions.count_same_ids(call)
        name = (call.id, call.node.uuid, *((twins,) if twins else ()))
        new = f"{call.id}_{new_uuid(*name)[:8]}"
        used = (
            "another call of the response has the same ID"
            if twins
            else "an earlier response has a call with the same ID"
        )
        for node in (call.node, positions.result_of(call, twins)):
            if node is not None:
                blocks = _with_renamed_id(objects_in(message_of(plan, node).get("content")), call.id, new)
                description = f"give a tool call a unique ID: {used}"
                _write_blocks(plan, node, blocks, "tools.duplicate-use", description)
        positions.remove_call(call)


def _with_renamed_id(blocks: list[dict[str, Any]], old: str, new: str) -> list[dict[str, Any]]:
    """Return blocks with the last use of an ID renamed."""
    for index in range(len(blocks) - 1, -1, -1):
        key = _ID_FIELDS.get(str(blocks[index].get("type")), "")
        if key and blocks[index].get(key) == old:
            return [*blocks[:index], {**blocks[index], key: new}, *blocks[index + 1 :]]
    return blocks


class _ToolPositions:
    """Positions of the calls and results of a conversation by ID."""

    def __init__(self, graph: RecordGraph) -> None:
        self._messages = graph.messages
        self._calls: defaultdict[str, list[int]] = defaultdict(list)
        self._answers: defaultdict[str, list[int]] = defaultdict(list)
        self._places: dict[int, int] = {}
        for index, node in enumerate(graph.messages):
            self._places[node.index] = index
            for call_id in node.uses:
                self._calls[call_id].append(index)
            for call_id in node.results:
                self._answers[call_id].append(index)

    def remove_call(self, call: ToolBlock) -> None:
        """Remove a call that was renamed."""
        self._calls[call.id].remove(self._places[call.node.index])

    def count_same_ids(self, call: ToolBlock) -> int:
        """Return the number of earlier calls with the same ID in the same response."""
        own_position = self._places[call.node.index]
        before = (self._messages[position] for position in self._calls[call.id] if position <= own_position)
        return sum(node is call.node or same_response(node, call.node) for node in before) - 1

    def result_of(self, call: ToolBlock, twins: int) -> Node | None:
        """Return the message with the result of a call; results belong to equal calls in order."""
        own_position, answers = self._places[call.node.index], self._answers[call.id]
        at = bisect_right(answers, own_position) + twins
        if at >= len(answers):
            return None
        between = (self._messages[position] for position in self._calls[call.id] if position > own_position)
        has_others = any(self._places[node.index] < answers[at] for node in between)
        return None if twins and has_others else self._messages[answers[at]]


def _surplus_results(graph: RecordGraph, pairs: ToolPairs) -> Iterator[ToolBlock]:
    """Yield the surplus results of calls with several results: all but one on the parent chain.

    A gathered result may be in the middle of a response or before the last compaction. If no result is on the parent
    chain, the one nearest to its expected position is kept.
    """
    last = max((index for index, node in enumerate(graph.parent_chain) if node.is_boundary), default=0)
    chain_indexes = {node.index for node in graph.parent_chain[last:]}
    calls = {result.id for result in pairs.repeated}
    holders: defaultdict[str, list[Node]] = defaultdict(list)
    callers: dict[str, Node] = {}
    for node in graph.messages:
        callers |= dict.fromkeys(calls.intersection(node.uses), node)
        for call in calls.intersection(node.results):
            holders[call] += [node] * node.results.count(call)
    for call, nodes in holders.items():
        caller = callers.get(call)
        nodes.sort(key=lambda node: (node.index not in chain_indexes, _distance(graph, node, caller)))
        yield from (ToolBlock(node, call) for node in nodes[1:])


def _distance(graph: RecordGraph, result: Node, caller: Node | None) -> int:
    """Return 0 for a result below the response of its call, 1 if it comes later, 2 if earlier."""
    if caller is None:
        return 2
    parent = graph.parent(result)
    if parent is not None and (parent is caller or same_response(parent, caller)):
        return 0
    return 1 if result.index > caller.index else 2


def _remove_results(plan: EditPlan, pairs: ToolPairs) -> None:
    """Remove results without a call, and second results of a call."""
    unwanted: defaultdict[int, list[tuple[ToolBlock, str]]] = defaultdict(list)
    for result in pairs.orphans:
        unwanted[result.node.index].append((result, "tools.orphan-result"))
    for result in pairs.repeated:
        unwanted[result.node.index].append((result, "tools.duplicate-result"))
    for results in unwanted.values():
        _remove_from_message(plan, results[0][0].node, results)


def _remove_from_message(plan: EditPlan, node: Node, results: list[tuple[ToolBlock, str]]) -> None:
    unwanted = Counter(result.id for result, _ in results)
    remaining: list[dict[str, Any]] = []
    # In reverse order, so that the first of two results in a message is kept.
    for block in reversed(objects_in(message_of(plan, node).get("content"))):
        name = str(block.get("tool_use_id", ""))
        if block.get("type") == "tool_result" and unwanted[name]:
            unwanted[name] -= 1
        else:
            remaining.append(block)
    remaining.reverse()
    finding = results[0][1]
    names = ", ".join(result.id for result, _ in results)
    second = finding == "tools.duplicate-result"
    description = f"a second tool result ({names})" if second else f"a tool result without a call ({names})"
    if remaining:
        lost = f"{description} in {node.uuid}"
        _write_blocks(plan, node, remaining, finding, f"remove {description}", lost=lost)
    else:
        plan.set_aside(node, finding, f"set aside {description}")


class _MissingResults:
    """Adds results to calls without one."""

    def __init__(self, plan: EditPlan, graph: RecordGraph) -> None:
        self.drafts = plan
        self.results_by_parent = {
            (node.parent, call): node
            for node in plan.transcript.nodes
            if node.is_result and not node.sidechain
            for call in node.results
        }
        self.boundaries = [node for node in plan.transcript.nodes if node.is_boundary]
        self.uses = Counter(call for node in plan.transcript.nodes for call in node.uses)
        self.children: defaultdict[str | None, list[Node]] = defaultdict(list)
        for node in graph.messages:
            self.children[node.parent].append(node)

    def add_results(self, pairs: ToolPairs) -> None:
        """Answer calls with an error as Claude Code does, unless a result is on a sibling record."""
        for call in pairs.open:
            self._add_result(call, "tools.unanswered")
        for call in pairs.interrupted:
            self._add_result(call, "tools.interrupted")

    def _add_result(self, call: ToolBlock, finding: str) -> None:
        sibling = self.results_by_parent.get((call.node.uuid, call.id))
        if sibling is not None:
            description = "relink to the tool result on the sibling record"
            if not self._continue_after_result(call.node, sibling.uuid, finding, description):
                self._give_own_ids(call, sibling)
            return
        record = self._synthetic(call)
        description = f"add a tool result for call {call.id}: the session ended before its result"
        self.drafts.insert(call.node, record, finding, description)
        self._keep_in_compactions(call.node, record["uuid"], finding)
        self._continue_after_result(call.node, record["uuid"], finding, "relink to the added result")

    def _keep_in_compactions(self, node: Node, answer: str, finding: str) -> None:
        """Keep the added result of a call that a compaction preserved."""
        for boundary in self.boundaries:
            metadata = as_object(self.drafts.fields(boundary).get("compactMetadata")) or {}
            preserved = as_object(metadata.get("preservedMessages")) or {}
            if node.uuid not in (as_list(preserved.get("uuids")) or ()):
                continue
            lists = {
                name: [uuid for uuid_in_list in names for uuid in _uuid_with_answer(uuid_in_list, node.uuid, answer)]
                for name in ("uuids", "allUuids")
                if (names := as_list(preserved.get(name))) is not None
            }
            new_metadata = {**metadata, "preservedMessages": {**preserved, **lists}}
            description = "preserve the result of a preserved tool call"
            self.drafts.change(boundary, finding, description, {"compactMetadata": new_metadata})

    def _give_own_ids(self, call: ToolBlock, result: Node) -> None:
        """Give a call and its result a new ID if a call before a compaction has the same ID.

        Otherwise the result is not found by its ID although it is linked to its call.
        """
        if self.uses[call.id] > 1:
            new = f"{call.id}_{new_uuid(call.id, call.node.uuid)[:8]}"
            description = "give a tool call a unique ID: a compacted call has the same ID"
            for node in (call.node, result):
                blocks = objects_in(message_of(self.drafts, node).get("content"))
                blocks = _with_renamed_id(blocks, call.id, new)
                _write_blocks(self.drafts, node, blocks, "tools.duplicate-use", description)

    def _continue_after_result(self, node: Node, result: str | None, finding: str, description: str) -> bool:
        """Relink the successors of a call to its result; return whether any record changed."""
        changed = False
        for child in self.children.pop(node.uuid, ()):
            # The records of one response stay linked to each other.
            same = child.message_id is not None and child.message_id == node.message_id
            if not same and not child.results:
                self.drafts.change(child, finding, description, {"parentUuid": result})
                changed = True
        return changed

    def _synthetic(self, call: ToolBlock) -> dict[str, Any]:
        node = call.node
        time = read_time(node.timestamp)
        block = {"type": "tool_result", "content": INTERRUPTED_CALL, "is_error": True, "tool_use_id": call.id}
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


def _uuid_with_answer(name: Any, uuid: str | None, answer: str) -> tuple[Any, ...]:
    return (name, answer) if name == uuid else (name,)


def _write_blocks(
    plan: EditPlan, node: Node, blocks: list[dict[str, Any]], finding: str, description: str, *, lost: str = ""
) -> None:
    fields = {"message": {**message_of(plan, node), "content": blocks}}
    plan.change(node, finding, description, fields, lost=lost)
