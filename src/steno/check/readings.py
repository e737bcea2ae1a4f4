"""What each generation of the client makes of a file: where it goes on from, and by which records.

The same as `session.resume.replay.resumed_chain`, but for all clients at once: what two of them
would read alike is read once.
"""

import re
from collections.abc import Hashable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final

import msgspec

from steno.session.nodes import CONVERSATION, ROLES, Node
from steno.session.resume.clients import CLIENTS, LATEST, Client, client_for
from steno.session.resume.gather import gather
from steno.session.resume.leaf import choose_leaf
from steno.session.resume.segments import since_compaction
from steno.session.resume.walk import Loaded, take_in, walk
from steno.session.transcript import Transcript

_UNBRIDGED: Final = msgspec.structs.replace(LATEST, bridge_seconds=None)
_TIME_LENGTH: Final = 24
_TIME: Final = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)
_ends_line: Final = attrgetter("ends_line")
_is_whole: Final = attrgetter("whole")
_has_message: Final = attrgetter("has_message")

__all__ = ["GENERATIONS", "NEWEST", "Reading", "Readings", "speaks"]


def _generations() -> tuple[tuple[str, ...], ...]:
    """Return the versions of the clients, those that read a file alike together, oldest first.

    What they say themselves behind the last record says nothing about the file.
    """
    groups: dict[Client, list[str]] = {}
    for client in CLIENTS:
        habits = msgspec.structs.replace(client, version="", answers_only="")
        groups.setdefault(habits, []).append(client.version)
    return tuple(tuple(versions) for versions in groups.values())


GENERATIONS: Final = _generations()
"""The versions that were studied, those of the same habits together, oldest first."""
NEWEST: Final = {versions: client_for(versions[-1]) for versions in GENERATIONS}
"""For each generation the habits of the newest."""


class Reading(msgspec.Struct, frozen=True):
    """How one client reads a file."""

    leaf: Node | None
    """The record it would hang the next prompt on."""
    last: Node | None
    """The message it would go on from: the leaf, or the nearest message above it."""
    chain: list[Node] | None
    """The records it goes by; None when it refuses the file. Of the order nothing is said, and
    notes that are no link of the chain may be missing."""
    refused: str = ""
    """Why: `no message`, `no leaf`, `no content`, `no model`, `no time`, `cycle`."""


class Readings:
    """The readings of one file."""

    def __init__(
        self,
        transcript: Transcript,
        everything: Loaded | None = None,
        way: Sequence[Node] = (),
    ) -> None:
        self.transcript = transcript
        self._everything = everything
        """All records with an id, where that is known already."""
        self._way = list(way)
        """The parents of one leaf, where that is known already, and none of them odd."""
        self._loaded: dict[Hashable, Loaded] = {}
        self._walks: dict[Hashable, list[Node]] = {}
        self._flaws: dict[int, list[str]] = {}
        self._chains: dict[Hashable, list[Node]] = {}
        self._leaves: dict[Hashable, Node | None] = {}
        self._readings: dict[str, Reading] = {}

    def of(self, client: Client) -> Reading:
        """Return how a client reads the file."""
        if client.version not in self._readings:
            self._readings[client.version] = self._read(client)
        return self._readings[client.version]

    def _read(self, client: Client) -> Reading:
        key = self._key(client)
        if key not in self._loaded:
            plain = None if client.keeps_unknown else self._plain
            self._loaded[key] = plain or take_in(self.transcript, client)
        loaded = self._loaded[key]
        if not any(speaks(node) and not node.sidechain for node in loaded.nodes.values()):
            return Reading(None, None, None, "no message")
        leaf = self._leaf(loaded, key, client)
        if leaf is None:
            return Reading(None, None, None, "no leaf")
        walked = self._walked(loaded, (key, leaf.index), leaf, client)
        last = next((node for node in reversed(walked) if node.is_message), None)
        for reason in self._reasons(loaded, walked):
            if reason in client.refuses:
                return Reading(leaf, last, None, reason)
        return Reading(leaf, last, self._kept(loaded, walked, client))

    def _key(self, client: Client) -> Hashable:
        """Return what the client's habits come down to on this file, as to what is taken in."""
        odd = self._odd
        return (
            client.splits_glued or "glued" not in odd,
            client.needs_time_as_text and "untimed" in odd,
            "no content" in client.refuses and "empty" in odd,
            tuple(sorted(kind for kind in client.links if kind in odd)),
            client.keeps_unknown,
        )

    @cached_property
    def _plain(self) -> Loaded | None:
        """What all clients take in of a file with nothing odd in it; None of any other.

        That is every record with an id, but for progress: nothing but more of it hangs on that.
        """
        if self._everything is None or "left out" in self._odd:
            return None
        plain = Loaded()
        plain.newest, plain.marker = self._everything.newest, self._everything.marker
        found = self._everything.nodes.items()
        plain.nodes = {uuid: node for uuid, node in found if node.type != "progress"}
        return plain

    @cached_property
    def _odd(self) -> set[str]:
        """What in the file the clients differ about."""
        nodes = self.transcript.nodes
        messages = [node for node in nodes if node.type in ROLES]
        progress = {node.uuid for node in nodes if node.type == "progress"}
        found: dict[str, object] = {
            "glued": not all(map(_ends_line, nodes)),
            "untimed": {node.timestamp.__class__ for node in messages} - {str},
            "empty": [node for node in messages if not node.has_content and node.has_message],
            "boundary": [node for node in nodes if node.subtype == "compact_boundary"],
            "progress": progress
            and [node for node in nodes if node.parent in progress and node.type != "progress"],
        }
        odd = {name for name, holds in found.items() if holds}
        if odd - {"boundary"} or not self._all_taken_in(messages):
            odd.add("left out")
        return odd

    def _all_taken_in(self, messages: list[Node]) -> bool:
        """Whether the records with an id are those that clients make a conversation of."""
        nodes = self.transcript.nodes
        if not all(map(_is_whole, nodes)) or not all(map(_has_message, messages)):
            return False
        named = [node for node in nodes if node.uuid]
        apart = {node.type for node in named} - CONVERSATION - {"progress"}
        if apart or len(named) != len(self.transcript.by_uuid):
            return False
        return CONVERSATION.isdisjoint({node.type for node in nodes if not node.uuid})

    def _leaf(self, loaded: Loaded, key: Hashable, client: Client) -> Node | None:
        marked = loaded.marker is not None
        habits = (
            key,
            client.leaf,
            client.obeys_last_prompt and marked,
            client.gathers and marked,
            client.refuses_agents_leaf and marked,
        )
        if habits not in self._leaves:
            latest = _latest(loaded) if client.leaf == "timestamp" and not habits[2] else None
            self._leaves[habits] = latest or choose_leaf(loaded, client)
        return self._leaves[habits]

    def _walked(
        self, loaded: Loaded, start: tuple[Hashable, int], leaf: Node, client: Client
    ) -> list[Node]:
        if start not in self._walks:
            known = loaded is self._plain and self._way and self._way[-1] is leaf
            self._walks[start] = self._way if known else walk(loaded, leaf, _UNBRIDGED)
        plain = self._walks[start]
        # A walk that ends at a beginning met no parent that is missing or was passed already.
        if client.bridge_seconds is None or loaded.parent(plain[0]) is None:
            return plain
        habits = (*start, client.bridge_seconds)
        if habits not in self._walks:
            self._walks[habits] = walk(loaded, leaf, client)
        return self._walks[habits]

    def _reasons(self, loaded: Loaded, walked: list[Node]) -> list[str]:
        if id(walked) not in self._flaws:
            self._flaws[id(walked)] = _flaws(loaded, walked)
        return self._flaws[id(walked)]

    def _kept(self, loaded: Loaded, walked: list[Node], client: Client) -> list[Node]:
        compacted = "boundary" in self._odd and bool(
            [node for node in walked if node.subtype and node.is_boundary]
        )
        habits = (
            id(walked),
            client.gathers,
            compacted and (client.honours_preserved, client.ignores_last_boundary),
        )
        if habits not in self._chains:
            chain = gather(loaded, walked) if client.gathers else walked
            if compacted:
                chain = since_compaction(self.transcript, loaded, chain, client)
            self._chains[habits] = chain
        return self._chains[habits]


def _latest(loaded: Loaded) -> Node | None:
    """Return the record of the main conversation with the latest time, if times compare as text."""
    found, latest = None, ""
    for node in loaded.nodes.values():
        time = node.timestamp
        if node.sidechain:
            continue
        if not isinstance(time, str) or len(time) != _TIME_LENGTH:
            return None
        if time > latest:
            found, latest = node, time
    return found if _TIME.fullmatch(latest) else None


def speaks(node: Node) -> bool:
    """Whether clients take a record for part of what was said."""
    return node.is_message or node.subtype == "local_command"


def _flaws(loaded: Loaded, chain: list[Node]) -> list[str]:
    """Return what on a chain makes some client fail instead of resuming, the gravest first."""
    messages = [node for node in chain if node.type in ROLES]
    above = loaded.parent(chain[0])
    reasons: dict[str, object] = {
        "no content": [node for node in messages if not node.has_content],
        "no model": [node for node in messages if not node.model and node.type == "assistant"],
        "cycle": above is not None and above in loaded.nodes,
        "no time": [node for node in messages if node.timestamp is None],
    }
    return [name for name, holds in reasons.items() if holds]
