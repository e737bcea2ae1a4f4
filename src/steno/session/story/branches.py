"""What is off the current conversation: abandoned branches, and the small dead ends beside it.

A response with several tool calls is a small tree of its own (each result hangs on its call, hook
output on that), and none of it is a branch. So the records of one response are first taken
together; what then still leads away to another message is a branch, and what leads nowhere belongs
where it hangs. Nothing here recurses: a session may have a million records.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from steno.session.nodes import CONVERSATION, Node
from steno.session.resume.walk import Loaded
from steno.session.story.prompts import STARTS, origin_of
from steno.session.story.queued import absorbed
from steno.session.story.usage import Totals, totals_of
from steno.session.transcript import Transcript

__all__ = ["Branch", "Layout", "Why", "lay_out"]

Why: TypeAlias = Literal["rewind", "edited", "dangling", "second root"]
"""rewind       the user went back, after an answer, and went on differently
edited       the user took a prompt back before it was answered
dangling     its parent is not in the file
second root  it begins without a parent
"""
_NOBODY = -1


class Branch:
    """An abandoned part of the session: only what is not in the conversation."""

    def __init__(
        self, transcript: Transcript, nodes: tuple[Node, ...], fork: Node | None, why: Why
    ) -> None:
        self.transcript = transcript
        self.nodes = nodes
        self.fork = fork
        """The record it leaves the conversation, or another branch, behind; None at the root."""
        self.why: Why = why

    def __repr__(self) -> str:
        return f"<Branch {self.why} {len(self.nodes)} records>"

    @cached_property
    def leaf(self) -> Node:
        """The record it ends with."""
        messages = [node for node in self.nodes if _goes_on(node)]
        return (messages or self.nodes)[-1]

    @cached_property
    def turns(self) -> int:
        """How many turns begin in it."""
        asked = (node for node in self.nodes if _may_ask(node))
        return sum(origin_of(self.transcript.record(node)) in STARTS for node in asked)

    @cached_property
    def usage(self) -> Totals:
        """What it cost."""
        return totals_of(self.transcript, self.nodes)


class Layout:
    """A conversation with its dead ends in place, and the branches off it."""

    def __init__(self, nodes: list[Node], branches: list[Branch]) -> None:
        self.nodes = nodes
        self.branches = branches


class _Groups:
    """The records of a file, those of one response taken together, as a tree."""

    def __init__(self, nodes: list[Node]) -> None:
        self.of: dict[str | None, int] = {}
        self.members: list[list[Node]] = []
        self._by_message: dict[str, int] = {}
        self._by_use: dict[str, int] = {}
        for node in nodes:
            if not node.is_result:
                self._put(node, self._by_message.get(_message(node)))
        for node in nodes:
            if node.is_result:
                uses = (use for use in node.results if use in self._by_use)
                use = next(uses, None)
                self._put(node, None if use is None else self._by_use[use])
        for members in self.members:
            members.sort(key=_place)
        self.parents = [self._parent(group) for group in range(len(self.members))]

    def _put(self, node: Node, group: int | None) -> None:
        if group is None:
            group = len(self.members)
            self.members.append([])
        if _message(node):
            self._by_message.setdefault(_message(node), group)
        for use in node.uses:
            self._by_use.setdefault(use, group)
        self.members[group].append(node)
        self.of[node.uuid] = group

    def last(self, group: int) -> int:
        """Return where in the file a group ends."""
        return self.members[group][-1].index

    def _parent(self, group: int) -> int | None:
        for node in self.members[group]:
            parent = self.of.get(node.parent)
            if parent is not None and parent != group:
                return parent
        return None


def lay_out(transcript: Transcript, loaded: Loaded, conversation: list[Node]) -> Layout:
    """Sort everything that is not in the conversation into dead ends and branches."""
    here = {node.uuid for node in conversation}
    main = [node for node in loaded.nodes.values() if not node.sidechain or node.uuid in here]
    outside = [node for node in main if node.uuid not in here]
    strays = _strays(transcript)
    if not any(map(_goes_on, outside)):
        return Layout(list(_placed(conversation, [*outside, *strays])), [])
    groups = _Groups(main)
    on = {groups.of[uuid] for uuid in here if uuid in groups.of}
    paths = _paths(groups, on)
    owner = {group: number for number, path in enumerate(paths) for group in path}
    beside: list[Node] = []
    parts: list[list[Node]] = [[] for _ in paths]
    for group in range(len(groups.members)):
        number = None if group in on else _owner(groups, group, on, owner)
        off = (node for node in groups.members[group] if node.uuid not in here)
        (beside if number is None else parts[number]).extend(off)
    beside.extend(strays)
    branches = [
        _branch(transcript, loaded, groups, path, part)
        for path, part in zip(paths, parts, strict=True)
    ]
    return Layout(list(_placed(conversation, beside)), sorted(branches, key=_fork_place))


def _paths(groups: _Groups, on: set[int]) -> list[list[int]]:
    """Return the branches as paths of groups, each from its leaf up; the newest goes furthest up."""
    alive = _alive(groups, on)
    inner = {groups.parents[group] for group in alive}
    leaves = sorted((group for group in alive if group not in inner), key=groups.last, reverse=True)
    rings = sorted((group for group in alive if group in inner), key=groups.last, reverse=True)
    taken: set[int] = set()
    paths: list[list[int]] = []
    for leaf in (*leaves, *rings):
        path: list[int] = []
        group: int | None = leaf
        while group in alive and group not in taken:
            path.append(group)
            taken.add(group)
            group = groups.parents[group]
        if path:
            paths.append(path)
    return paths


def _alive(groups: _Groups, on: set[int]) -> set[int]:
    """Return the groups off the conversation that are, or lead to, a message."""
    alive: set[int] = set()
    for group, members in enumerate(groups.members):
        if group in on or not any(map(_goes_on, members)):
            continue
        above: int | None = group
        while above is not None and above not in on and above not in alive:
            alive.add(above)
            above = groups.parents[above]
    return alive


def _owner(groups: _Groups, group: int, on: set[int], owner: dict[int, int]) -> int | None:
    """Return the branch a group belongs to, None for the conversation; remembered on the way."""
    passed: set[int] = set()
    above: int | None = group
    while above is not None and above not in on and above not in owner and above not in passed:
        passed.add(above)
        above = groups.parents[above]
    found = _NOBODY if above is None or above in on else owner.get(above, _NOBODY)
    owner.update(dict.fromkeys(passed, found))
    return None if found == _NOBODY else found


def _branch(
    transcript: Transcript, loaded: Loaded, groups: _Groups, path: list[int], nodes: list[Node]
) -> Branch:
    nodes.sort(key=_place)
    top = groups.members[path[-1]][0]
    parent = loaded.parent(top)
    fork = loaded.nodes.get(parent) if parent is not None else None
    why: Why = "rewind" if any(node.type == "assistant" for node in nodes) else "edited"
    if parent is None:
        why = "second root"
    elif fork is None:
        why = "dangling"
    return Branch(transcript, tuple(nodes), fork, why)


def _strays(transcript: Transcript) -> Iterator[Node]:
    """Yield what would be conversation but has no id to be linked by."""
    yield from absorbed(transcript)
    for node in transcript.nodes:
        if node.uuid is None and node.type in CONVERSATION and not node.sidechain:
            yield node


def _placed(conversation: list[Node], beside: list[Node]) -> Iterator[Node]:
    """Yield the conversation, each dead end behind what it hangs on, else where the file has it."""
    if not beside:
        yield from conversation
        return
    names = {node.uuid for node in (*conversation, *beside) if node.uuid}
    places = sorted(node.index for node in conversation)
    below: defaultdict[str | int | None, list[Node]] = defaultdict(list)
    for node in sorted(beside, key=_place):
        hangs = node.parent in names and node.parent != node.uuid
        before = bisect_right(places, node.index)
        below[node.parent if hangs else (places[before - 1] if before else None)].append(node)
    yield from _with_ends(conversation, below)


def _with_ends(
    conversation: list[Node], below: dict[str | int | None, list[Node]]
) -> Iterator[Node]:
    yield from _ends(below.pop(None, []), below)
    for node in conversation:
        yield node
        for place in (node.uuid, node.index):
            if place in below:
                yield from _ends(below.pop(place), below)
    # Dead ends that only hang on each other.
    while below:
        yield from _ends(below.pop(next(iter(below))), below)


def _ends(ends: Iterable[Node], below: dict[str | int | None, list[Node]]) -> Iterator[Node]:
    stack = list(ends)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if node.uuid is not None:
            stack.extend(reversed(below.pop(node.uuid, [])))


def _goes_on(node: Node) -> bool:
    """Whether a record is a message that makes a branch worth the name."""
    if node.type == "user":
        return not node.meta
    return node.type == "assistant"


def _may_ask(node: Node) -> bool:
    return node.type == "user" and not node.meta and not node.results


def _message(node: Node) -> str:
    return node.message_id or "" if node.type == "assistant" else ""


def _place(node: Node) -> int:
    return node.index


def _fork_place(branch: Branch) -> tuple[int, int]:
    return (-1 if branch.fork is None else branch.fork.index, branch.nodes[0].index)
