"""Pull in what a walk by parents misses: sibling tool calls, their results, what hangs on those.

A response with several tool calls is written as several lines, and from 2.1 on each result hangs
on its own call. The chain runs through only one of them; the others belong to the turn as well.
"""

from collections import defaultdict
from collections.abc import Iterator

from steno.session.nodes import Node
from steno.session.resume.walk import Loaded

__all__ = ["gather"]


class _Insert:
    """What is to stand behind one place of the chain."""

    def __init__(self) -> None:
        self.calls: list[Node] = []
        self.results: list[Node] = []


def gather(loaded: Loaded, chain: list[Node], *, first: bool = False) -> list[Node]:
    """Return the chain with the missing siblings put in their places.

    Results that are pulled in stand among the others in file order, or before them.
    """
    inserts = _missing(loaded, chain)
    if not inserts:
        return chain
    order = {node.uuid: place for place, node in enumerate(loaded.nodes.values())}
    if first:
        order.update({node.uuid: -1 for insert in inserts.values() for node in insert.results})
    return list(_woven(chain, inserts, order))


def _missing(loaded: Loaded, chain: list[Node]) -> dict[int, _Insert]:
    order = {node.uuid: place for place, node in enumerate(loaded.nodes.values())}
    runs_of, ends = _places(chain)
    place_of_use = {
        use: ends[node.uuid] for node in reversed(chain) if node.uuid in ends for use in node.uses
    }
    last_lines = {chain[end].uuid: end for end in ends.values()}
    on_chain = {node.uuid for node in chain}
    inserts: defaultdict[int, _Insert] = defaultdict(_Insert)
    call_places: dict[str | None, int] = {}
    for node in loaded.nodes.values():
        runs = runs_of.get(node.message_id) if node.type == "assistant" else None
        if runs and node.uuid not in on_chain:
            first, last = _run_before(runs, order[node.uuid], chain, order)
            inserts[first].calls.append(node)
            call_places[node.uuid] = last
            for use in node.uses:
                place_of_use.setdefault(use, last)
    taken = on_chain | {node.uuid for insert in inserts.values() for node in insert.calls}
    below = _children(loaded, on_chain)
    for node in loaded.nodes.values():
        if node.uuid in on_chain or node.sidechain:
            continue
        place = _place_of(node, place_of_use, last_lines, call_places)
        if place is None:
            continue
        for each in (node, *_hanging(node, below)):
            if each.uuid not in taken:
                taken.add(each.uuid)
                inserts[place].results.append(each)
    return dict(inserts)


def _place_of(
    node: Node,
    place_of_use: dict[str, int],
    last_lines: dict[str | None, int],
    call_places: dict[str | None, int],
) -> int | None:
    """Return behind which place a record off the chain belongs, if it is a call or a result."""
    if not node.is_result:
        return call_places.get(node.uuid)
    called = [place_of_use[use] for use in node.results if use in place_of_use]
    return called[0] if called else last_lines.get(node.parent)


_Run = tuple[int, int]


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


def _run_before(
    runs: list[_Run], place: int, chain: list[Node], order: dict[str | None, int]
) -> _Run:
    """Return the last stretch that began before that place in the file, or else the first."""
    return next((run for run in reversed(runs) if order[chain[run[0]].uuid] < place), runs[0])


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


def _hanging(result: Node, below: dict[str | None, list[Node]]) -> Iterator[Node]:
    """Yield the dead ends below a result: hook output and the like, but no other conversation."""
    for child in below.get(result.uuid, ()):
        branch = list(_subtree(child, below))
        if not any(_goes_on(node) for node in branch):
            yield from branch


def _goes_on(node: Node) -> bool:
    return node.type == "assistant" or (node.type == "user" and not node.meta)


def _subtree(root: Node, below: dict[str | None, list[Node]]) -> Iterator[Node]:
    stack = [root]
    seen: set[str | None] = set()
    while stack:
        node = stack.pop()
        if node.uuid in seen:
            continue
        seen.add(node.uuid)
        yield node
        stack.extend(reversed(below.get(node.uuid, ())))


def _woven(
    chain: list[Node], inserts: dict[int, _Insert], order: dict[str | None, int]
) -> Iterator[Node]:
    """Yield the chain with the inserts, calls and results each in the given order."""
    calls: list[Node] = []
    results: list[Node] = []
    for place, node in enumerate(chain):
        same_run = calls and node.type == "assistant" and node.message_id == calls[0].message_id
        yield from _taken(calls, order[node.uuid] if same_run else None, order)
        if node.is_result:
            yield from _taken(results, order[node.uuid], order)
        elif node.is_message and not same_run:
            yield from _taken(results, None, order)
        yield node
        if place in inserts:
            calls.extend(inserts[place].calls)
            results.extend(inserts[place].results)
    yield from (*calls, *results)


def _taken(waiting: list[Node], before: int | None, order: dict[str | None, int]) -> Iterator[Node]:
    """Yield, and take off the list, what stands before that place; everything for None."""
    while waiting and (before is None or order[waiting[0].uuid] < before):
        yield waiting.pop(0)
