"""Selects the records that a client version resumes: loading, leaf, chain, siblings, compactions.

A response with several tool calls is written as several records, and from 2.1 on the parent of each result is its own
call. The chain passes through only one of them; `gather` adds the others. `since_compaction` keeps the part after the
last boundary, with the messages that the compaction preserved.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from steno.format.records import ROLES, read_time
from steno.session.resume.clients import Client
from steno.session.transcript import CONVERSATION, Node, Transcript


class LeafMarker(msgspec.Struct):
    """The last `last-prompt` record, which names the leaf."""

    leaf: str | None
    explicit: bool = False
    stale: bool = False
    """Whether messages were appended after it."""


class LoadedRecords:
    """The records that a client version loads, by ID, in its order."""

    def __init__(self) -> None:
        self.nodes: dict[str | None, Node] = {}
        self.newest: Node | None = None
        self.marker: LeafMarker | None = None
        self.skipped: dict[str | None, str | None] = {}
        self._resolved: dict[str | None, str | None] = {}
        self._by_time: list[tuple[float, int, Node]] | None = None

    def parent(self, node: Node) -> str | None:
        """Return the ID of the parent, with skipped records resolved."""
        uuid = node.parent
        if uuid not in self.skipped:
            return uuid
        path: list[str | None] = []
        while uuid in self.skipped and uuid not in self.nodes:
            if uuid in self._resolved:
                uuid = self._resolved[uuid]
                break
            self._resolved[uuid] = None  # end of a cycle of skipped records
            path.append(uuid)
            uuid = self.skipped[uuid]
        self._resolved.update(dict.fromkeys(path, uuid))
        return uuid

    def nearest_before(self, node: Node, seconds: float, seen: set[str | None]) -> Node | None:
        """Return the unseen record nearest before `node` in time, within `seconds`."""
        moment = _epoch(node)
        if moment is None:
            return None
        timeline = self._timeline()
        index = bisect_right(timeline, (moment, 1))
        while index > 0:
            index -= 1
            time, _, candidate = timeline[index]
            if moment - time > seconds:
                return None
            if candidate.uuid not in seen:
                return candidate
        return None

    def _timeline(self) -> list[tuple[float, int, Node]]:
        """Return the conversation sorted by time; of equal times, the first in the file comes last."""
        if self._by_time is None:
            timed = [
                (moment, -order, node)
                for order, node in enumerate(self.nodes.values())
                if node.converses and (moment := _epoch(node)) is not None
            ]
            self._by_time = sorted(timed, key=lambda item: item[:2])
        return self._by_time


def load_records(transcript: Transcript, client: Client) -> LoadedRecords:
    """Return the records that a client version loads; the last of each ID, at the position of the first."""
    loaded = LoadedRecords()
    for node in transcript.nodes:
        if not client.can_parse(node):
            continue
        if node.type == "last-prompt":
            loaded.marker = _read_marker(transcript, node)
        elif node.type in client.links or _is_empty(node, client):
            loaded.skipped[node.uuid] = node.parent
        elif _is_loadable(node, client) and client.accepts(node):
            loaded.nodes[node.uuid] = node
            if node.sidechain or node.type not in CONVERSATION:
                continue
            loaded.newest = node
            if node.is_boundary:
                loaded.marker = None
            elif loaded.marker is not None:
                loaded.marker.stale = True
    return loaded


def _is_empty(node: Node, client: Client) -> bool:
    """Return whether a message without content is skipped like a link."""
    if node.has_content or not node.has_message:
        return False
    return node.is_message and "no content" not in client.refuses


def _is_loadable(node: Node, client: Client) -> bool:
    return node.type in CONVERSATION or (client.keeps_unknown and node.uuid is not None)


def _read_marker(transcript: Transcript, node: Node) -> LeafMarker:
    envelope = transcript.record(node).envelope
    return LeafMarker(envelope.leaf_uuid, bool(envelope.explicit))


def walk(loaded: LoadedRecords, leaf: Node, client: Client) -> list[Node]:
    """Return the chain from the root to `leaf`, with missing and circular parents bridged."""
    chain: list[Node] = []
    seen: set[str | None] = set()
    node: Node | None = leaf
    while node is not None:
        chain.append(node)
        seen.add(node.uuid)
        uuid = loaded.parent(node) if node.parent in loaded.skipped else node.parent
        if uuid is None:
            break
        parent = loaded.nodes.get(uuid) if uuid not in seen else None
        if parent is None and client.bridge_seconds is not None:
            parent = loaded.nearest_before(node, client.bridge_seconds, seen)
        node = parent
    chain.reverse()
    return chain


def _epoch(node: Node) -> float | None:
    moment = read_time(node.timestamp)
    return moment.timestamp() if moment else None


def choose_leaf(loaded: LoadedRecords, client: Client) -> Node | None:
    """Return the record that the client version would use as parent of the next prompt."""
    newest = _newest_leaf(loaded, client)
    marker = loaded.marker if client.obeys_last_prompt else None
    if marker is None:
        return newest
    marked = loaded.nodes.get(marker.leaf)
    explicit = marker.explicit and not marker.stale
    if marked is not None and marked.sidechain and explicit and client.refuses_agents_leaf:
        return None
    if marked is None or not marked.converses or not _leads_to_message(loaded, marked):
        return newest
    if explicit:
        return _last_note(loaded, marked)
    tip = _last_record(loaded, client)
    if newest is not None and tip is not None and _continues(loaded, tip, marked, client):
        return newest
    return marked


def _last_note(loaded: LoadedRecords, marked: Node) -> Node:
    """Return the last note below a record that leads to no message."""
    children = _children_of(loaded)
    while True:
        notes = [node for node in children.get(marked.uuid, ()) if node.uuid not in children]
        if not notes or notes[-1].is_message:
            return marked
        marked = notes[-1]


def _last_record(loaded: LoadedRecords, client: Client) -> Node | None:
    """Return the record that the client version considers the last, whether it is a message or not."""
    if client.leaf == "timestamp":
        return max((node for node in loaded.nodes.values() if not node.sidechain), key=_epoch_or_zero, default=None)
    last = loaded.newest
    # With a `last-prompt` record, Claude Code considers only the last record of the file.
    if client.leaf == "last record" or last is None or loaded.marker is not None:
        return last
    return _latest_descendant(loaded, last)


def _newest_leaf(loaded: LoadedRecords, client: Client) -> Node | None:
    last, tip = loaded.newest, _last_record(loaded, client)
    if client.leaf != "file order" or last is None or tip is None:
        return tip
    if _leads_to_message(loaded, tip):
        return tip
    children = _children_of(loaded)
    leading = _messages_with_descendants(loaded, children)
    tips = (node for node in reversed(loaded.nodes.values()) if node.uuid not in children)
    return next((tip for tip in tips if tip.converses and tip.uuid in leading), last)


def _epoch_or_zero(node: Node) -> float:
    moment = read_time(node.timestamp)
    return moment.timestamp() if moment else 0.0


def _latest_descendant(loaded: LoadedRecords, top: Node) -> Node:
    """Return the latest of a record and its descendants; of equal times, the deepest."""
    parents = {node.parent for node in loaded.nodes.values()}
    if top.uuid not in parents and top.uuid not in loaded.skipped.values():
        return top
    children = _children_of(loaded)
    latest, seen = top, {top.uuid}
    level = [top]
    while level:
        level = [node for parent in level for node in children.get(parent.uuid, ()) if node.uuid not in seen]
        for node in level:
            seen.add(node.uuid)
            if str(node.timestamp or "") >= str(latest.timestamp or ""):
                latest = node
    return latest


def _messages_with_descendants(loaded: LoadedRecords, children: dict[str | None, list[Node]]) -> set[str | None]:
    uuids: set[str | None] = set()
    queue = [node for node in loaded.nodes.values() if node.is_message]
    while queue:
        node = queue.pop()
        if node.uuid not in uuids:
            uuids.add(node.uuid)
            queue.extend(children.get(node.uuid, ()))
    return uuids


def _children_of(loaded: LoadedRecords) -> dict[str | None, list[Node]]:
    children: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in loaded.nodes.values():
        if node.converses:
            children[loaded.parent(node)].append(node)
    return dict(children)


def _leads_to_message(loaded: LoadedRecords, node: Node) -> bool:
    return any(ancestor.is_message for ancestor in _ancestors(loaded, node))


def _continues(loaded: LoadedRecords, newest: Node, marked: Node, client: Client) -> bool:
    """Return whether the newest leaf descends from the marked record, through existing parents."""
    chain = walk(loaded, newest, msgspec.structs.replace(client, bridge_seconds=None))
    if client.gathers and any(set(marked.results) & set(node.uses) for node in chain):
        return True
    return any(node is marked for node in chain)


def _ancestors(loaded: LoadedRecords, node: Node | None) -> Iterable[Node]:
    seen: set[str | None] = set()
    while node is not None and node.uuid not in seen:
        yield node
        seen.add(node.uuid)
        node = loaded.nodes.get(loaded.parent(node))


_LineRange = tuple[int, int]


def gather(loaded: LoadedRecords, chain: list[Node], *, first: bool = False) -> list[Node]:
    """Return the chain with missing siblings inserted.

    Gathered results are sorted into the others by file order, or placed first.
    """
    if _count_messages(chain) == _count_messages(loaded.nodes.values()):
        return chain
    inserter = _SiblingInserter(loaded, chain)
    inserter.add_calls()
    inserter.add_results()
    if not inserter.insertions:
        return chain
    inserter.move_results()
    if first:
        inserter.put_added_first()
    return list(inserter.merged_chain())


def _count_messages(nodes: Iterable[Node]) -> int:
    return len([node for node in nodes if node.type in ROLES])


class _Insertion:
    def __init__(self) -> None:
        self.calls: list[Node] = []
        self.results: list[Node] = []


class _SiblingInserter:
    """Computes the siblings that a chain lacks, and their positions."""

    def __init__(self, loaded: LoadedRecords, chain: list[Node]) -> None:
        self.loaded = loaded
        self.chain = chain
        self.order = {node.uuid: index for index, node in enumerate(loaded.nodes.values())}
        self.on_chain = {node.uuid for node in chain}
        self.insertions: defaultdict[int, _Insertion] = defaultdict(_Insertion)
        self.moved: set[str | None] = set()
        self.ranges_of, ends = _ranges_and_ends(chain)
        self.index_of_call = {
            use: ends[node.uuid] for node in reversed(chain) if node.uuid in ends for use in node.uses
        }
        self.index_below = {chain[end].uuid: end for end in ends.values()}

    def add_calls(self) -> None:
        """Add the records of the chain's responses that are not on the chain."""
        for node in self.loaded.nodes.values():
            runs = self.ranges_of.get(node.message_id) if node.type == "assistant" else None
            if not runs or node.uuid in self.on_chain:
                continue
            start, last = self._range_before(runs, self.order[node.uuid])
            self.insertions[start].calls.append(node)
            if self.order[node.uuid] > self.order[self.chain[last].uuid]:
                self.index_below.pop(self.chain[last].uuid, None)
            self.index_below[node.uuid] = last
            for use in node.uses:
                self.index_of_call.setdefault(use, last)

    def add_results(self) -> None:
        """Add the results of those responses, and their dead ends."""
        calls = {node.uuid for insert in self.insertions.values() for node in insert.calls}
        present = self.on_chain | calls
        children = _children_off_chain(self.loaded, self.on_chain)
        continuing = _leading_to_messages(children)
        for node in self.loaded.nodes.values():
            index = self._insertion_index(node)
            if index is None or node.sidechain or node.uuid in self.on_chain:
                continue
            for record in (node, *_dead_ends_below(node, children, continuing)):
                if record.uuid not in present:
                    present.add(record.uuid)
                    self.insertions[index].results.append(record)

    def move_results(self) -> None:
        """Move results on the chain that belong after a later record of their response."""
        with_results = {index for index, insert in self.insertions.items() if insert.results}
        for current_index, node in enumerate(self.chain):
            place = self._insertion_index(node) if node.is_result else None
            if place is not None and current_index < place and place in with_results:
                self.moved.add(node.uuid)
                self.insertions[place].results.append(node)
        for insert in self.insertions.values():
            insert.results.sort(key=lambda node: self.order[node.uuid])

    def put_added_first(self) -> None:
        """Sort gathered results before the results on the chain."""
        for insert in self.insertions.values():
            self.order.update(dict.fromkeys((node.uuid for node in insert.results), -1))

    def merged_chain(self) -> Iterator[Node]:
        """Yield the chain with all insertions."""
        calls: deque[Node] = deque()
        results: deque[Node] = deque()
        for index, node in enumerate(self.chain):
            if node.uuid in self.moved:
                continue
            position = self.order[node.uuid]
            same_run = calls and node.type == "assistant" and node.message_id == calls[0].message_id
            yield from self._pop_before(calls, position if same_run else None)
            if node.is_result:
                yield from self._pop_before(results, position)
            elif node.is_message and not same_run:
                yield from self._pop_before(results, None)
            yield node
            if index in self.insertions:
                calls.extend(self.insertions[index].calls)
                results.extend(self.insertions[index].results)
        yield from (*calls, *results)

    def _pop_before(self, pending: deque[Node], before: int | None) -> Iterator[Node]:
        """Yield and remove the pending records before a file position, or all if it is None."""
        while pending and (before is None or self.order[pending[0].uuid] < before):
            yield pending.popleft()

    def _insertion_index(self, node: Node) -> int | None:
        """Return the chain index after which a result, or a child of a call, belongs."""
        if not node.is_result:
            return self.index_below.get(node.uuid)
        called = [self.index_of_call[use] for use in node.results if use in self.index_of_call]
        return called[0] if called else self.index_below.get(node.parent)

    def _range_before(self, ranges: list[_LineRange], position: int) -> _LineRange:
        """Return the last range that starts before a file position, else the first."""
        began = (line_range for line_range in reversed(ranges) if self.order[self.chain[line_range[0]].uuid] < position)
        return next(began, ranges[0])


def _ranges_and_ends(chain: list[Node]) -> tuple[dict[str | None, list[_LineRange]], dict[str | None, int]]:
    """Return the chain ranges of each response, and the index after which results of each record belong.

    That index is the response's last record before the next prompt.
    """
    runs_of: defaultdict[str | None, list[_LineRange]] = defaultdict(list)
    ends: dict[str | None, int] = {}
    since_prompt: defaultdict[str | None, list[str | None]] = defaultdict(list)
    runs = dict(_line_ranges(chain))
    for index, node in enumerate(chain):
        if node.type == "user" and not node.results:
            since_prompt.clear()
        if index in runs and node.message_id is not None:
            last = runs[index]
            runs_of[node.message_id].append((index, last))
            lines = since_prompt[node.message_id]
            lines.extend(line.uuid for line in chain[index : last + 1])
            ends.update(dict.fromkeys(lines, last))
    return runs_of, ends


def _line_ranges(chain: list[Node]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of adjacent records that belong to one response."""
    start: int | None = None
    for index, node in enumerate([*chain, None]):
        same = (
            start is not None
            and node is not None
            and node.type == "assistant"
            and node.message_id == chain[start].message_id
        )
        if start is not None and not same:
            yield start, index - 1
            start = None
        if start is None and node is not None and node.type == "assistant":
            start = index


def _children_off_chain(loaded: LoadedRecords, on_chain: set[str | None]) -> dict[str | None, list[Node]]:
    children: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in loaded.nodes.values():
        if node.uuid not in on_chain and not node.sidechain:
            children[node.parent].append(node)
    return children


def _leading_to_messages(children: dict[str | None, list[Node]]) -> set[str | None]:
    by_uuid = {node.uuid: node for nodes in children.values() for node in nodes}
    uuids: set[str | None] = set()
    for node in by_uuid.values():
        if node.type != "assistant" and (node.type != "user" or node.meta):
            continue
        ancestor: Node | None = node
        while ancestor is not None and ancestor.uuid not in uuids:
            uuids.add(ancestor.uuid)
            ancestor = by_uuid.get(ancestor.parent)
    return uuids


def _dead_ends_below(node: Node, children: dict[str | None, list[Node]], continuing: set[str | None]) -> Iterator[Node]:
    """Yield the dead ends below a record, such as hook output, excluding other conversations."""
    stack = [child for child in children.get(node.uuid, ()) if child.uuid not in continuing][::-1]
    while stack:
        child = stack.pop()
        yield child
        stack.extend(reversed(children.get(child.uuid, ())))


def since_compaction(transcript: Transcript, loaded: LoadedRecords, chain: list[Node], client: Client) -> list[Node]:
    """Return the part of a chain that the client version keeps: everything after the last boundary.

    Messages that the compaction preserved are before the boundary in the file, but after the summary in the
    conversation.
    """
    # Most records have no subtype, so the check is skipped for them.
    boundaries = [index for index, node in enumerate(chain) if node.subtype and node.is_boundary]
    for place in reversed(boundaries):
        if place == len(chain) - 1 and client.ignores_last_boundary:
            continue
        rest = chain[place + 1 :]
        if not client.honours_preserved:
            return rest
        kept_messages = preserved_messages(transcript, loaded, chain[place])
        names = {node.uuid for node in kept_messages}
        rest = [node for node in rest if node.uuid not in names]
        summary = next((at for at, node in enumerate(rest, 1) if node.is_message), 0)
        return [*rest[:summary], *kept_messages, *rest[summary:]]
    return chain


def preserved_messages(transcript: Transcript, loaded: LoadedRecords, boundary: Node) -> list[Node]:
    """Return the earlier records that a compaction preserved unchanged, in order."""
    metadata = _object(transcript.record(boundary).fields.get("compactMetadata"))
    names = _object(metadata.get("preservedMessages")).get("uuids")
    if isinstance(names, list):
        uuids = [name for name in cast("list[Any]", names) if isinstance(name, str)]
        return [loaded.nodes[uuid] for uuid in uuids if uuid in loaded.nodes]
    segment = _object(metadata.get("preservedSegment"))
    return _chain_between(loaded, segment.get("headUuid"), segment.get("tailUuid"))


def _chain_between(loaded: LoadedRecords, head: Any, tail: Any) -> list[Node]:
    chain: list[Node] = []
    seen: set[str | None] = set()
    node = loaded.nodes.get(tail) if isinstance(tail, str) else None
    while node is not None and node.uuid not in seen:
        chain.append(node)
        seen.add(node.uuid)
        if node.uuid == head:
            return chain[::-1]
        node = loaded.nodes.get(loaded.parent(node))
    return []


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
