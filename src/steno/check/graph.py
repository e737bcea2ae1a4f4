"""How the records of a file hang together, and where they do not; shared by rules and repair."""

from collections.abc import Container
from functools import cached_property
from typing import Final

from steno.check.ancestry import Ancestry
from steno.check.pairs import Pairs, pair_up
from steno.check.readings import Readings
from steno.session.nodes import ROLES, Node
from steno.session.resume.clients import STENO, Client
from steno.session.resume.gather import gather
from steno.session.resume.segments import since_compaction
from steno.session.resume.walk import Loaded, walk
from steno.session.story.layout import story_leaf, take_all
from steno.session.story.title_compactions import TitleCompactions
from steno.session.transcript import Transcript

__all__ = ["NO_LEAF", "Graph"]

NO_LEAF: Final = "00000000-0000-0000-0000-000000000000"
"""What `last-prompt` names after a rewind: no leaf at all."""


class _Sorted:
    """The members of a graph by what their parents are like, each list in file order."""

    def __init__(self) -> None:
        self.parentless: list[Node] = []
        self.dangling: list[Node] = []
        self.selfish: list[Node] = []
        self.forward: list[Node] = []


class Graph:
    """The parents of a transcript's records, looked at from every side. Nothing recurses."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript

    @property
    def by_uuid(self) -> dict[str, Node]:
        """The records by id; of several with one id the last, as for the real client."""
        return self.transcript.by_uuid

    @cached_property
    def members(self) -> list[Node]:
        """The records of the graph that count: they have an id, and no later one has the same."""
        last = self.by_uuid
        if len(self._named) == len(last):
            return self._named
        return [node for node in self._named if node.uuid and last[node.uuid] is node]

    @cached_property
    def _named(self) -> list[Node]:
        return [node for node in self.transcript.nodes if node.uuid]

    @cached_property
    def repeats(self) -> list[tuple[Node, Node]]:
        """Records whose id a later one has: (the earlier, the last of that id)."""
        last = self.by_uuid
        if len(self.members) == len(self._named):
            return []
        return [
            (node, last[node.uuid])
            for node in self._named
            if node.uuid and last[node.uuid] is not node
        ]

    # Parents

    def parent(self, node: Node) -> Node | None:
        """Return the record that a record names as its parent, if it is in the file."""
        return self.by_uuid.get(node.parent) if node.parent is not None else None

    @cached_property
    def _sorted(self) -> _Sorted:
        """The members by what their parents are like, in one pass: most files have none odd."""
        found = _Sorted()
        named = self.by_uuid
        for node in self.members:
            above = named.get(node.parent) if node.parent is not None else None
            if above is not None and above.index < node.index:
                continue
            if node.parent is None:
                found.parentless.append(node)
            elif above is None:
                found.dangling.append(node)
            elif above is node:
                found.selfish.append(node)
            else:
                found.forward.append(node)
        return found

    @property
    def _is_orderly(self) -> bool:
        """Whether every parent that is named stands in the file, before its children."""
        return not (self.dangling or self.selfish or self.forward)

    @property
    def dangling(self) -> list[Node]:
        """Members that name a parent which is not in the file."""
        return self._sorted.dangling

    @property
    def selfish(self) -> list[Node]:
        """Members that name themselves as their parent."""
        return self._sorted.selfish

    @property
    def forward(self) -> list[Node]:
        """Members whose parent stands behind them in the file."""
        return self._sorted.forward

    @cached_property
    def rings(self) -> list[list[Node]]:
        """Parents that lead back to where they began, each ring once; self-parents are none."""
        rings: list[list[Node]] = []
        if not self.forward:
            return rings
        done: set[int] = set()
        for start in self.members:
            path: dict[int, int] = {}
            trail: list[Node] = []
            node: Node | None = start
            while node is not None and node.index not in done and node.index not in path:
                path[node.index] = len(trail)
                trail.append(node)
                node = self.parent(node)
            if node is not None and node.index in path:
                ring = trail[path[node.index] :]
                if len(ring) > 1:
                    rings.append(ring)
            done.update(path)
        return rings

    @cached_property
    def roots(self) -> list[Node]:
        """Members of the main conversation without a parent, in file order."""
        return [node for node in self._sorted.parentless if node.converses]

    @cached_property
    def cut_off(self) -> list[Node]:
        """Roots that cannot begin a conversation, behind other messages: their parent was lost.

        An answer, or the result of a tool call, always follows something. An answer may follow a
        boundary that nothing hangs on: one published description has it so.
        """
        first = next((node for node in self.members if node.is_message and node.converses), None)
        return [
            node
            for node in self.roots
            if node is not first
            and (node.is_result or (node.type == "assistant" and not self._restarts(node)))
        ]

    def _restarts(self, node: Node) -> bool:
        """Whether a record without a parent begins anew behind a compaction."""
        return node.index in self.title_compactions.boundaries

    @cached_property
    def title_compactions(self) -> TitleCompactions:
        """The compactions of a published description, and what follows them."""
        return TitleCompactions(self.transcript)

    # The conversation

    @cached_property
    def loaded(self) -> Loaded:
        """Everything with an id, however damaged the line it stands on."""
        return take_all(self.transcript)

    @cached_property
    def leaf(self) -> Node | None:
        """The record the conversation goes on from, damaged lines included."""
        return story_leaf(self.loaded)

    @cached_property
    def chain(self) -> list[Node]:
        """The parents of the leaf from the root on, missing ones bridged, siblings gathered."""
        return gather(self.loaded, self.way) if self.way else []

    @cached_property
    def way(self) -> list[Node]:
        """The parents of the leaf from the root on, missing ones bridged."""
        return walk(self.loaded, self.leaf, STENO) if self.leaf is not None else []

    @cached_property
    def conversation(self) -> list[Node]:
        """What a resume should send: the chain since the last compaction."""
        return since_compaction(self.transcript, self.loaded, self.chain, STENO)

    def beside(self, node: Node, parent: str | None, gone: Container[object]) -> Node | None:
        """Return what was pulled in right before a record of the way, once some records are gone.

        Lines and results of a response are found beside the way as long as it runs through one of
        them. Where that one goes, the way has to run through those that are left. They must hang
        on what is to be the `parent` otherwise: all else is not of this place.
        """
        place = self._places.get(node.index)
        if place is None or node.index not in self._way_places:
            return None
        earlier = (self.chain[at] for at in range(place - 1, -1, -1))
        before = next((each for each in earlier if each.uuid not in gone), None)
        if before is None or before.index in self._way_places:
            return None
        leads = self.ancestry.leads
        return before if leads(before.uuid, parent) and not leads(before.uuid, node.uuid) else None

    @cached_property
    def ancestry(self) -> Ancestry:
        """Which records hang on which in the end."""
        return Ancestry(self.members, self.by_uuid)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {node.index: place for place, node in enumerate(self.chain)}

    @cached_property
    def _way_places(self) -> frozenset[int]:
        return frozenset(node.index for node in self.way)

    @cached_property
    def messages(self) -> list[Node]:
        """The messages of the conversation."""
        return [node for node in self.conversation if node.type in ROLES]

    def lost(self, client: Client) -> list[Node] | None:
        """Return the messages that a client would not go by; None when it refuses the file."""
        chain = self.readings.of(client).chain
        if chain is None:
            return None
        taken = {node.index for node in chain}
        return [node for node in self.messages if node.index not in taken]

    @cached_property
    def readings(self) -> Readings:
        """What each generation of the client makes of the file."""
        # Where no parent has to be guessed, clients with the same leaf go the same way.
        return Readings(self.transcript, self.loaded, self.way if self._is_orderly else [])

    @cached_property
    def sent(self) -> frozenset[int]:
        """The places of the records that a resume should send."""
        return frozenset(node.index for node in self.conversation)

    @cached_property
    def pairs(self) -> Pairs:
        """The tool calls and results of the conversation that do not pair up."""
        return pair_up(self.conversation)

    def matters(self, node: Node) -> bool:
        """Whether a flaw of this record is one of the conversation, as it is or as it was meant.

        What was compacted away, taken back or said by a sub-agent does not matter to a resume.
        """
        return node.index in self.sent or node.index in self._unreachable_places

    @cached_property
    def _unreachable_places(self) -> frozenset[int]:
        return frozenset(node.index for node in self.unreachable)

    @cached_property
    def unreachable(self) -> list[Node]:
        """Messages that no way leads to: neither the conversation, nor a branch of it.

        Another prompt without a parent is a branch, taken back at the very beginning, unless the
        conversation itself begins where a parent was lost.
        """
        if self._is_connected:
            return []
        tops = self.tops
        known = {tops[node.index] for node in self.chain if node.index in tops}
        if self.chain and not self._is_broken(self.chain[0]):
            known |= {tops[node.index] for node in self.roots if not self._is_broken(node)}
        known |= {top for top in set(tops.values()) if self.transcript.nodes[top].sidechain}
        return [
            node
            for node in self.members
            if tops[node.index] not in known and node.is_message and node.converses
        ]

    @property
    def _is_connected(self) -> bool:
        """Whether every record plainly leads up to a beginning, so that none is out of reach."""
        if not self._is_orderly or self.cut_off or not self.chain:
            return False
        return all(
            node.converses or (node.sidechain and node.logical_parent is None)
            for node in self._sorted.parentless
        )

    def _is_broken(self, node: Node) -> bool:
        """Whether a record that nothing was found above cannot be a beginning."""
        return node.parent is not None or node.index in self._cut_off_places

    @cached_property
    def _cut_off_places(self) -> frozenset[int]:
        return frozenset(node.index for node in self.cut_off)

    @cached_property
    def tops(self) -> dict[int, int]:
        """For each member the place of the record that its parents lead to, past boundaries."""
        tops: dict[int, int] = {}
        named = self.by_uuid
        for start in self.members:
            near = named.get(start.parent) if start.parent is not None else None
            if near is not None and near.index in tops:
                tops[start.index] = tops[near.index]
                continue
            trail: list[int] = []
            seen: set[int] = set()
            node = start
            while node.index not in tops and node.index not in seen:
                trail.append(node.index)
                seen.add(node.index)
                above = self.parent(node)
                if above is None and node.logical_parent is not None:
                    above = self.by_uuid.get(node.logical_parent)
                if above is None:
                    break
                node = above
            tops.update(dict.fromkeys(trail, tops.get(node.index, node.index)))
        return tops
