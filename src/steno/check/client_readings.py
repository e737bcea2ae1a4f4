"""How each generation of the client reads a file: its leaf, and the records it resumes.

The same as `resumed_chain` of `steno.session.resume.replay`, but for all clients at once: what two of them read alike
is read once.
"""

import re
from collections.abc import Hashable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final

import msgspec

from steno.format.records import ROLES
from steno.session.resume.clients import CLIENTS, LATEST, Client, client_for
from steno.session.resume.record_chain import LoadedRecords, choose_leaf, gather, load_records, since_compaction, walk
from steno.session.transcript import CONVERSATION, Node, Transcript

_UNBRIDGED: Final = msgspec.structs.replace(LATEST, bridge_seconds=None)
_TIME_LENGTH: Final = 24
_TIME: Final = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)
_ends_line: Final = attrgetter("ends_line")
_is_whole: Final = attrgetter("whole")
_has_message: Final = attrgetter("has_message")


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
NEWEST_CLIENTS: Final = {versions: client_for(versions[-1]) for versions in GENERATIONS}
"""For each generation the habits of the newest."""


class ClientReading(msgspec.Struct, frozen=True):
    """How one client reads a file."""

    leaf: Node | None
    """The record it would hang the next prompt on."""
    last: Node | None
    """The message it would go on from: the leaf, or the nearest message above it."""
    chain: list[Node] | None
    """The records it goes by; None when it refuses the file. Of the order nothing is said, and notes that are no link
    of the chain may be missing."""
    refused: str = ""
    """Why: `no message`, `no leaf`, `no content`, `no model`, `no time`, `cycle`."""


class ClientReadings:
    """The readings of one file."""

    def __init__(
        self, transcript: Transcript, all_records: LoadedRecords | None = None, parent_chain: Sequence[Node] = ()
    ) -> None:
        self.transcript = transcript
        self._all_records = all_records
        """All records with an id, where that is known already."""
        self._parent_chain = list(parent_chain)
        """The parents of one leaf, where that is known already, and none of them odd."""
        self._loaded: dict[Hashable, LoadedRecords] = {}
        self._walks: dict[Hashable, list[Node]] = {}
        self._flaws: dict[int, list[str]] = {}
        self._chains: dict[Hashable, list[Node]] = {}
        self._leaves: dict[Hashable, Node | None] = {}
        self._readings: dict[str, ClientReading] = {}

    def of(self, client: Client) -> ClientReading:
        """Return how a client reads the file."""
        if client.version not in self._readings:
            self._readings[client.version] = self._read(client)
        return self._readings[client.version]

    def _read(self, client: Client) -> ClientReading:
        key = self._key(client)
        if key not in self._loaded:
            common = None if client.keeps_unknown else self._common_records
            self._loaded[key] = common or load_records(self.transcript, client)
        loaded = self._loaded[key]
        if not any(is_conversation(node) and not node.sidechain for node in loaded.nodes.values()):
            return ClientReading(None, None, None, "no message")
        leaf = self._leaf(loaded, key, client)
        if leaf is None:
            return ClientReading(None, None, None, "no leaf")
        walked = self._walk(loaded, (key, leaf.index), leaf, client)
        last = next((node for node in reversed(walked) if node.is_message), None)
        for reason in self._reasons_to_refuse(loaded, walked):
            if reason in client.refuses:
                return ClientReading(leaf, last, None, reason)
        return ClientReading(leaf, last, self._resumed_chain(loaded, walked, client))

    def _key(self, client: Client) -> Hashable:
        """Return what the client's habits come down to on this file, as to what is taken in."""
        differences = self._differences
        return (
            client.splits_glued or "glued" not in differences,
            client.needs_time_as_text and "untimed" in differences,
            "no content" in client.refuses and "empty" in differences,
            tuple(sorted(kind for kind in client.links if kind in differences)),
            client.keeps_unknown,
        )

    @cached_property
    def _common_records(self) -> LoadedRecords | None:
        """What all clients take in of a file with nothing odd in it; None of any other.

        That is every record with an id, but for progress: nothing but more of it hangs on that.
        """
        if self._all_records is None or "left out" in self._differences:
            return None
        common = LoadedRecords()
        common.newest, common.marker = self._all_records.newest, self._all_records.marker
        records = self._all_records.nodes.items()
        common.nodes = {uuid: node for uuid, node in records if node.type != "progress"}
        return common

    @cached_property
    def _differences(self) -> set[str]:
        """What in the file the clients differ about."""
        nodes = self.transcript.nodes
        messages = [node for node in nodes if node.type in ROLES]
        progress = {node.uuid for node in nodes if node.type == "progress"}
        conditions: dict[str, object] = {
            "glued": not all(map(_ends_line, nodes)),
            "untimed": {node.timestamp.__class__ for node in messages} - {str},
            "empty": [node for node in messages if not node.has_content and node.has_message],
            "boundary": [node for node in nodes if node.subtype == "compact_boundary"],
            "progress": progress and [node for node in nodes if node.parent in progress and node.type != "progress"],
        }
        differences = {name for name, holds in conditions.items() if holds}
        if differences - {"boundary"} or not self._is_all_loaded(messages):
            differences.add("left out")
        return differences

    def _is_all_loaded(self, messages: list[Node]) -> bool:
        """Whether the records with an id are those that clients make a conversation of."""
        nodes = self.transcript.nodes
        if not all(map(_is_whole, nodes)) or not all(map(_has_message, messages)):
            return False
        with_uuid = [node for node in nodes if node.uuid]
        other_types = {node.type for node in with_uuid} - CONVERSATION - {"progress"}
        if other_types or len(with_uuid) != len(self.transcript.by_uuid):
            return False
        return CONVERSATION.isdisjoint({node.type for node in nodes if not node.uuid})

    def _leaf(self, loaded: LoadedRecords, key: Hashable, client: Client) -> Node | None:
        has_marker = loaded.marker is not None
        habits = (
            key,
            client.leaf,
            client.obeys_last_prompt and has_marker,
            client.gathers and has_marker,
            client.refuses_agents_leaf and has_marker,
        )
        if habits not in self._leaves:
            latest = _latest_record(loaded) if client.leaf == "timestamp" and not habits[2] else None
            self._leaves[habits] = latest or choose_leaf(loaded, client)
        return self._leaves[habits]

    def _walk(self, loaded: LoadedRecords, start: tuple[Hashable, int], leaf: Node, client: Client) -> list[Node]:
        if start not in self._walks:
            known = loaded is self._common_records and self._parent_chain and self._parent_chain[-1] is leaf
            self._walks[start] = self._parent_chain if known else walk(loaded, leaf, _UNBRIDGED)
        plain = self._walks[start]
        # A walk that ends at a beginning met no parent that is missing or was passed already.
        if client.bridge_seconds is None or loaded.parent(plain[0]) is None:
            return plain
        habits = (*start, client.bridge_seconds)
        if habits not in self._walks:
            self._walks[habits] = walk(loaded, leaf, client)
        return self._walks[habits]

    def _reasons_to_refuse(self, loaded: LoadedRecords, walked: list[Node]) -> list[str]:
        if id(walked) not in self._flaws:
            self._flaws[id(walked)] = _refusal_reasons(loaded, walked)
        return self._flaws[id(walked)]

    def _resumed_chain(self, loaded: LoadedRecords, walked: list[Node], client: Client) -> list[Node]:
        compacted = "boundary" in self._differences and bool(
            [node for node in walked if node.subtype and node.is_boundary]
        )
        habits = (id(walked), client.gathers, compacted and (client.honours_preserved, client.ignores_last_boundary))
        if habits not in self._chains:
            chain = gather(loaded, walked) if client.gathers else walked
            if compacted:
                chain = since_compaction(self.transcript, loaded, chain, client)
            self._chains[habits] = chain
        return self._chains[habits]


def _latest_record(loaded: LoadedRecords) -> Node | None:
    """Return the record of the main conversation with the latest time, if times compare as text."""
    record, latest_time = None, ""
    for node in loaded.nodes.values():
        time = node.timestamp
        if node.sidechain:
            continue
        if not isinstance(time, str) or len(time) != _TIME_LENGTH:
            return None
        if time > latest_time:
            record, latest_time = node, time
    return record if _TIME.fullmatch(latest_time) else None


def is_conversation(node: Node) -> bool:
    """Whether clients take a record for part of what was said."""
    return node.is_message or node.subtype == "local_command"


def _refusal_reasons(loaded: LoadedRecords, chain: list[Node]) -> list[str]:
    """Return what on a chain makes some client fail instead of resuming, the gravest first."""
    messages = [node for node in chain if node.type in ROLES]
    parent = loaded.parent(chain[0])
    reasons: dict[str, object] = {
        "no content": [node for node in messages if not node.has_content],
        "no model": [node for node in messages if not node.model and node.type == "assistant"],
        "cycle": parent is not None and parent in loaded.nodes,
        "no time": [node for node in messages if node.timestamp is None],
    }
    return [name for name, holds in reasons.items() if holds]
