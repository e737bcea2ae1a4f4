"""The whole conversation: all its records, abandoned branches, and dead ends in place.

Claude Code drops records that it cannot use: lines after damage, messages without a time, dialects. These are all kept
here.

A response with several tool calls is a small tree (the parent of each result is its call, followed by hook output)
without any branch. So the records of one response are grouped first; a group that then leads to another message is a
branch, and one that leads nowhere stays next to its parent. No function recurses: a session may have a million records.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from steno.session.resume.clients import STENO
from steno.session.resume.record_chain import LeafMarker, LoadedRecords, choose_leaf, gather
from steno.session.transcript import CONVERSATION, Node, Transcript
from steno.session.turns.compactions import full_chain
from steno.session.turns.prompts import begins_turn, origin_of, unrecorded_queued_prompts
from steno.session.turns.usage import Totals, totals_of

BranchReason: TypeAlias = Literal["rewind", "edited", "dangling", "second root"]
"""rewind       the user went back after an answer and continued differently
edited       the user replaced a prompt before it was answered
dangling     the parent is missing
second root  the branch starts without a parent"""
_NO_BRANCH = -1


class Branch:
    """An abandoned part of the session, without the records of the conversation."""

    def __init__(self, transcript: Transcript, nodes: tuple[Node, ...], fork: Node | None, why: BranchReason) -> None:
        self.transcript = transcript
        self.nodes = nodes
        self.fork = fork
        """The record after which it leaves the conversation, or another branch; None at the root."""
        self.why: BranchReason = why

    def __repr__(self) -> str:
        return f"<Branch {self.why} {len(self.nodes)} records>"

    @cached_property
    def leaf(self) -> Node:
        """The last message of the branch."""
        messages = [node for node in self.nodes if _is_branch_message(node)]
        return (messages or self.nodes)[-1]

    @cached_property
    def turns(self) -> int:
        """Number of turns that start in the branch."""
        candidates = (node for node in self.nodes if _may_be_prompt(node))
        return sum(begins_turn(origin_of(self.transcript.record(node))) for node in candidates)

    @cached_property
    def usage(self) -> Totals:
        """Token usage of the branch."""
        return totals_of(self.transcript, self.nodes)


class ConversationLayout:
    """A conversation with its dead ends in place, and its branches."""

    def __init__(self, nodes: list[Node], branches: list[Branch]) -> None:
        self.nodes = nodes
        self.branches = branches


class _ResponseGroups:
    def __init__(self, nodes: list[Node]) -> None:
        self.group_of: dict[str | None, int] = {}
        self.members: list[list[Node]] = []
        self._by_message: dict[str, int] = {}
        self._by_use: dict[str, int] = {}
        for node in nodes:
            if not node.is_result:
                self._add(node, self._by_message.get(_message_id(node)))
        for node in nodes:
            if node.is_result:
                uses = (use for use in node.results if use in self._by_use)
                use = next(uses, None)
                self._add(node, None if use is None else self._by_use[use])
        for members in self.members:
            members.sort(key=_file_index)
        self.parents = [self._parent(group) for group in range(len(self.members))]

    def _add(self, node: Node, group: int | None) -> None:
        if group is None:
            group = len(self.members)
            self.members.append([])
        if _message_id(node):
            self._by_message.setdefault(_message_id(node), group)
        for use in node.uses:
            self._by_use.setdefault(use, group)
        self.members[group].append(node)
        self.group_of[node.uuid] = group

    def last(self, group: int) -> int:
        """Return the index of the last record of a group."""
        return self.members[group][-1].index

    def _parent(self, group: int) -> int | None:
        for node in self.members[group]:
            parent = self.group_of.get(node.parent)
            if parent is not None and parent != group:
                return parent
        return None


def split_branches(transcript: Transcript, loaded: LoadedRecords, conversation: list[Node]) -> ConversationLayout:
    """Split the records outside the conversation into dead ends and branches."""
    uuids = {node.uuid for node in conversation}
    main = [node for node in loaded.nodes.values() if not node.sidechain or node.uuid in uuids]
    outside = [node for node in main if node.uuid not in uuids]
    unlinked = _records_without_id(transcript)
    if not any(map(_is_branch_message, outside)):
        return ConversationLayout(list(_with_dead_ends(conversation, [*outside, *unlinked])), [])
    groups = _ResponseGroups(main)
    on_conversation = {groups.group_of[uuid] for uuid in uuids if uuid in groups.group_of}
    paths = _branch_paths(groups, on_conversation)
    branch_of_group = {group: number for number, path in enumerate(paths) for group in path}
    dead_ends: list[Node] = []
    parts: list[list[Node]] = [[] for _ in paths]
    for group in range(len(groups.members)):
        number = None if group in on_conversation else _branch_of(groups, group, on_conversation, branch_of_group)
        off_conversation = (node for node in groups.members[group] if node.uuid not in uuids)
        (dead_ends if number is None else parts[number]).extend(off_conversation)
    dead_ends.extend(unlinked)
    branches = [_make_branch(transcript, loaded, groups, path, part) for path, part in zip(paths, parts, strict=True)]
    return ConversationLayout(list(_with_dead_ends(conversation, dead_ends)), sorted(branches, key=_fork_index))


def _branch_paths(groups: _ResponseGroups, on_conversation: set[int]) -> list[list[int]]:
    """Return the branches as paths of groups from the leaf upwards; the newest extends furthest up."""
    with_messages = _groups_with_messages(groups, on_conversation)
    inner = {groups.parents[group] for group in with_messages}
    leaves = sorted((group for group in with_messages if group not in inner), key=groups.last, reverse=True)
    rings = sorted((group for group in with_messages if group in inner), key=groups.last, reverse=True)
    used: set[int] = set()
    paths: list[list[int]] = []
    for leaf in (*leaves, *rings):
        path: list[int] = []
        group: int | None = leaf
        while group in with_messages and group not in used:
            path.append(group)
            used.add(group)
            group = groups.parents[group]
        if path:
            paths.append(path)
    return paths


def _groups_with_messages(groups: _ResponseGroups, on_conversation: set[int]) -> set[int]:
    with_messages: set[int] = set()
    for group, members in enumerate(groups.members):
        if group in on_conversation or not any(map(_is_branch_message, members)):
            continue
        ancestor: int | None = group
        while ancestor is not None and ancestor not in on_conversation and ancestor not in with_messages:
            with_messages.add(ancestor)
            ancestor = groups.parents[ancestor]
    return with_messages


def _branch_of(
    groups: _ResponseGroups, group: int, on_conversation: set[int], branch_of_group: dict[int, int]
) -> int | None:
    """Return the branch of a group, or None for the conversation; results are cached on the way."""
    passed: set[int] = set()
    ancestor: int | None = group
    while (
        ancestor is not None
        and ancestor not in on_conversation
        and ancestor not in branch_of_group
        and ancestor not in passed
    ):
        passed.add(ancestor)
        ancestor = groups.parents[ancestor]
    branch = (
        _NO_BRANCH if ancestor is None or ancestor in on_conversation else branch_of_group.get(ancestor, _NO_BRANCH)
    )
    branch_of_group.update(dict.fromkeys(passed, branch))
    return None if branch == _NO_BRANCH else branch


def _make_branch(
    transcript: Transcript, loaded: LoadedRecords, groups: _ResponseGroups, path: list[int], nodes: list[Node]
) -> Branch:
    nodes.sort(key=_file_index)
    top = groups.members[path[-1]][0]
    parent = loaded.parent(top)
    fork = loaded.nodes.get(parent) if parent is not None else None
    reason: BranchReason = "rewind" if any(node.type == "assistant" for node in nodes) else "edited"
    if parent is None:
        reason = "second root"
    elif fork is None:
        reason = "dangling"
    return Branch(transcript, tuple(nodes), fork, reason)


def _records_without_id(transcript: Transcript) -> Iterator[Node]:
    """Yield conversation records without an ID, which cannot be linked."""
    yield from unrecorded_queued_prompts(transcript)
    for node in transcript.nodes:
        if node.uuid is None and node.type in CONVERSATION and not node.sidechain:
            yield node


def _with_dead_ends(conversation: list[Node], dead_ends: list[Node]) -> Iterator[Node]:
    """Yield the conversation with each dead end after its parent, else in file order."""
    if not dead_ends:
        yield from conversation
        return
    names = {node.uuid for node in (*conversation, *dead_ends) if node.uuid}
    indexes = sorted(node.index for node in conversation)
    children: defaultdict[str | int | None, list[Node]] = defaultdict(list)
    for node in sorted(dead_ends, key=_file_index):
        has_parent = node.parent in names and node.parent != node.uuid
        before = bisect_right(indexes, node.index)
        children[node.parent if has_parent else (indexes[before - 1] if before else None)].append(node)
    yield from _interleave(conversation, children)


def _interleave(conversation: list[Node], children: dict[str | int | None, list[Node]]) -> Iterator[Node]:
    yield from _dead_ends(children.pop(None, []), children)
    for node in conversation:
        yield node
        for key in (node.uuid, node.index):
            if key in children:
                yield from _dead_ends(children.pop(key), children)
    # Dead ends that are only linked to each other.
    while children:
        yield from _dead_ends(children.pop(next(iter(children))), children)


def _dead_ends(ends: Iterable[Node], children: dict[str | int | None, list[Node]]) -> Iterator[Node]:
    stack = list(ends)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if node.uuid is not None:
            stack.extend(reversed(children.pop(node.uuid, [])))


def _is_branch_message(node: Node) -> bool:
    if node.type == "user":
        return not node.meta
    return node.type == "assistant"


def _may_be_prompt(node: Node) -> bool:
    return node.type == "user" and not node.meta and not node.results


def _message_id(node: Node) -> str:
    return node.message_id or "" if node.type == "assistant" else ""


def _file_index(node: Node) -> int:
    return node.index


def _fork_index(branch: Branch) -> tuple[int, int]:
    return (-1 if branch.fork is None else branch.fork.index, branch.nodes[0].index)


def load_all_records(transcript: Transcript) -> LoadedRecords:
    """Return all records with an ID; of records with the same ID, the last."""
    loaded = LoadedRecords()
    loaded.nodes.update(transcript.by_uuid)
    # In reverse order, because only the last of each is used.
    loaded.newest = next(_conversation_records(loaded, reversed(transcript.nodes)), None)
    marker = next((node for node in reversed(transcript.nodes) if node.type == "last-prompt"), None)
    if marker is not None:
        later = list(_conversation_records(loaded, transcript.nodes[marker.index + 1 :]))
        if not any(node.is_boundary for node in later):
            envelope = transcript.record(marker).envelope
            loaded.marker = LeafMarker(envelope.leaf_uuid, bool(envelope.explicit), bool(later))
    return loaded


def _conversation_records(loaded: LoadedRecords, nodes: Iterable[Node]) -> Iterator[Node]:
    return (node for node in nodes if node.converses and loaded.nodes.get(node.uuid) is node)


def conversation_leaf(loaded: LoadedRecords) -> Node | None:
    """Return the leaf of the conversation, in any dialect."""
    return choose_leaf(loaded, STENO)


def full_conversation(transcript: Transcript, loaded: LoadedRecords, leaf: Node) -> list[Node]:
    """Return the records from the first to `leaf`, with siblings gathered, across all compactions."""
    return gather(loaded, full_chain(transcript, loaded, leaf))


def build_layout(transcript: Transcript, loaded: LoadedRecords, leaf: Node | None) -> ConversationLayout:
    """Return the conversation up to `leaf` with its dead ends in place, and the branches."""
    conversation = full_conversation(transcript, loaded, leaf) if leaf is not None else []
    return split_branches(transcript, loaded, conversation)
