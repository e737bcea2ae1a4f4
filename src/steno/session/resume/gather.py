"""Pull in what a walk by parents misses: sibling tool calls, their results, what hangs on those.

A response with several tool calls is written as several lines, and from 2.1 on each result hangs
on its own call. The chain runs through only one of them; the others belong to the turn as well.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from steno.session.nodes import ROLES, Node
from steno.session.resume.walk import Loaded

__all__ = ["gather"]

_Run = tuple[int, int]


def gather(loaded: Loaded, chain: list[Node], *, first: bool = False) -> list[Node]:
    """Return the chain with the missing siblings put in their places.

    Results that are pulled in stand among the others in file order, or before them.
    """
    if _messages(chain) == _messages(loaded.nodes.values()):
        return chain
    weaver = _Weaver(loaded, chain)
    weaver.pull_in_calls()
    weaver.pull_in_results()
    if not weaver.inserts:
        return chain
    weaver.move_results()
    if first:
        weaver.put_first()
    return list(weaver.woven())


def _messages(nodes: Iterable[Node]) -> int:
    return len([node for node in nodes if node.type in ROLES])


class _Insert:
    """What is to stand behind one place of the chain."""

    def __init__(self) -> None:
        self.calls: list[Node] = []
        self.results: list[Node] = []


class _Weaver:
    """Works out what is missing from a chain, and behind which place of it each thing belongs."""

    def __init__(self, loaded: Loaded, chain: list[Node]) -> None:
        self.loaded = loaded
        self.chain = chain
        self.order = {node.uuid: place for place, node in enumerate(loaded.nodes.values())}
        self.on_chain = {node.uuid for node in chain}
        self.inserts: defaultdict[int, _Insert] = defaultdict(_Insert)
        self.moved: set[str | None] = set()
        self.runs_of, ends = _places(chain)
        self.place_of_use = {
            use: ends[node.uuid]
            for node in reversed(chain)
            if node.uuid in ends
            for use in node.uses
        }
        self.place_below = {chain[end].uuid: end for end in ends.values()}

    def pull_in_calls(self) -> None:
        """Find the lines of responses on the chain that are not on it themselves."""
        for node in self.loaded.nodes.values():
            runs = self.runs_of.get(node.message_id) if node.type == "assistant" else None
            if not runs or node.uuid in self.on_chain:
                continue
            start, last = self._run_before(runs, self.order[node.uuid])
            self.inserts[start].calls.append(node)
            if self.order[node.uuid] > self.order[self.chain[last].uuid]:
                self.place_below.pop(self.chain[last].uuid, None)
            self.place_below[node.uuid] = last
            for use in node.uses:
                self.place_of_use.setdefault(use, last)

    def pull_in_results(self) -> None:
        """Find the results of those responses, and the dead ends that hang on them."""
        calls = {node.uuid for insert in self.inserts.values() for node in insert.calls}
        taken = self.on_chain | calls
        below = _children(self.loaded, self.on_chain)
        continuing = _continuing(below)
        for node in self.loaded.nodes.values():
            place = self._place_of(node)
            if place is None or node.sidechain or node.uuid in self.on_chain:
                continue
            for each in (node, *_hanging(node, below, continuing)):
                if each.uuid not in taken:
                    taken.add(each.uuid)
                    self.inserts[place].results.append(each)

    def move_results(self) -> None:
        """Take along the results on the chain that belong behind a later line of their response."""
        places = {place for place, insert in self.inserts.items() if insert.results}
        for now, node in enumerate(self.chain):
            place = self._place_of(node) if node.is_result else None
            if place is not None and now < place and place in places:
                self.moved.add(node.uuid)
                self.inserts[place].results.append(node)
        for insert in self.inserts.values():
            insert.results.sort(key=lambda node: self.order[node.uuid])

    def put_first(self) -> None:
        """Let what was pulled in come before the results on the chain."""
        for insert in self.inserts.values():
            self.order.update(dict.fromkeys((node.uuid for node in insert.results), -1))

    def woven(self) -> Iterator[Node]:
        """Yield the chain with everything in its place."""
        calls: deque[Node] = deque()
        results: deque[Node] = deque()
        for place, node in enumerate(self.chain):
            if node.uuid in self.moved:
                continue
            here = self.order[node.uuid]
            same_run = calls and node.type == "assistant" and node.message_id == calls[0].message_id
            yield from self._taken(calls, here if same_run else None)
            if node.is_result:
                yield from self._taken(results, here)
            elif node.is_message and not same_run:
                yield from self._taken(results, None)
            yield node
            if place in self.inserts:
                calls.extend(self.inserts[place].calls)
                results.extend(self.inserts[place].results)
        yield from (*calls, *results)

    def _taken(self, waiting: deque[Node], before: int | None) -> Iterator[Node]:
        """Yield, and take off the list, what stands before that place; everything for None."""
        while waiting and (before is None or self.order[waiting[0].uuid] < before):
            yield waiting.popleft()

    def _place_of(self, node: Node) -> int | None:
        """Return behind which place a result, or what hangs on a call, belongs."""
        if not node.is_result:
            return self.place_below.get(node.uuid)
        called = [self.place_of_use[use] for use in node.results if use in self.place_of_use]
        return called[0] if called else self.place_below.get(node.parent)

    def _run_before(self, runs: list[_Run], place: int) -> _Run:
        """Return the last stretch that began before that place in the file, or else the first."""
        began = (run for run in reversed(runs) if self.order[self.chain[run[0]].uuid] < place)
        return next(began, runs[0])


def _places(chain: list[Node]) -> tuple[dict[str | None, list[_Run]], dict[str | None, int]]:
    """Return the stretches of each response, and where results of each of its lines belong.

    That is behind the response's last line before the next prompt.
    """
    runs_of: defaultdict[str | None, list[_Run]] = defaultdict(list)
    ends: dict[str | None, int] = {}
    since_prompt: defaultdict[str | None, list[str | None]] = defaultdict(list)
    runs = dict(_runs(chain))
    for place, node in enumerate(chain):
        if node.type == "user" and not node.results:
            since_prompt.clear()
        if place in runs and node.message_id is not None:
            last = runs[place]
            runs_of[node.message_id].append((place, last))
            lines = since_prompt[node.message_id]
            lines.extend(line.uuid for line in chain[place : last + 1])
            ends.update(dict.fromkeys(lines, last))
    return runs_of, ends


def _runs(chain: list[Node]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of neighbouring lines that belong to one response."""
    start: int | None = None
    for place, node in enumerate([*chain, None]):
        same = (
            start is not None
            and node is not None
            and node.type == "assistant"
            and node.message_id == chain[start].message_id
        )
        if start is not None and not same:
            yield start, place - 1
            start = None
        if start is None and node is not None and node.type == "assistant":
            start = place


def _children(loaded: Loaded, on_chain: set[str | None]) -> dict[str | None, list[Node]]:
    below: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in loaded.nodes.values():
        if node.uuid not in on_chain and not node.sidechain:
            below[node.parent].append(node)
    return below


def _continuing(below: dict[str | None, list[Node]]) -> set[str | None]:
    """Return the ids of all records that are, or lead to, a conversation of their own."""
    by_uuid = {node.uuid: node for nodes in below.values() for node in nodes}
    found: set[str | None] = set()
    for node in by_uuid.values():
        if node.type != "assistant" and (node.type != "user" or node.meta):
            continue
        above: Node | None = node
        while above is not None and above.uuid not in found:
            found.add(above.uuid)
            above = by_uuid.get(above.parent)
    return found


def _hanging(
    node: Node, below: dict[str | None, list[Node]], continuing: set[str | None]
) -> Iterator[Node]:
    """Yield the dead ends below a record: hook output and the like, but no other conversation."""
    stack = [child for child in below.get(node.uuid, ()) if child.uuid not in continuing][::-1]
    while stack:
        child = stack.pop()
        yield child
        stack.extend(reversed(below.get(child.uuid, ())))
