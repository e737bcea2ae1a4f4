"""How each client generation reads a file: its leaf and the records that it resumes.

Equivalent to `resumed_chain` of `steno.session.resume.replay` for every client version, but shares the work between
versions that read the file in the same way.
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
    """Return the client versions grouped by identical reading behaviour, oldest first.

    The text that a client appends after the last record does not affect how it reads the file.
    """
    groups: dict[Client, list[str]] = {}
    for client in CLIENTS:
        habits = msgspec.structs.replace(client, version="", answers_only="")
        groups.setdefault(habits, []).append(client.version)
    return tuple(tuple(versions) for versions in groups.values())


GENERATIONS: Final = _generations()
"""Studied client versions, grouped by identical behaviour, oldest first."""
NEWEST_CLIENTS: Final = {versions: client_for(versions[-1]) for versions in GENERATIONS}
"""Behaviour of the newest version of each generation."""


class ClientReading(msgspec.Struct, frozen=True):
    """How one client version reads a file."""

    leaf: Node | None
    """Parent of the next prompt."""
    last: Node | None
    """Message from which the conversation continues: the leaf, or its nearest ancestor that is a message."""
    chain: list[Node] | None
    """Records that the client resumes, or None if it refuses the file. The order is unspecified, and records that are
    not links of the chain may be missing."""
    refused: str = ""
    """Reason for refusal: `no message`, `no leaf`, `no content`, `no model`, `no time` or `cycle`."""


class ClientReadings:
    """Readings of one file by all client versions."""

    def __init__(
        self, transcript: Transcript, all_records: LoadedRecords | None = None, parent_chain: Sequence[Node] = ()
    ) -> None:
        self.transcript = transcript
        self._all_records = all_records
        """All records with an ID, if already loaded."""
        self._parent_chain = list(parent_chain)
        """Parent chain of one leaf, if already known and without irregular parents."""
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
        """Return a key of the client behaviour that affects which records of this file are loaded."""
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
        """Records that every client version loads from a regular file; None for any other file.

        All records with an ID except progress records, which only have progress records as children.
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
        """Properties of the file on which client versions differ."""
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
        """Return whether all records with an ID are conversation records that every version loads."""
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
        # A walk that ends at a root did not meet a missing parent or a cycle, so bridging does not change it.
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
    """Return the latest record of the main conversation, or None if times do not compare as text."""
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
    """Return whether clients treat a record as part of the conversation."""
    return node.is_message or node.subtype == "local_command"


def _refusal_reasons(loaded: LoadedRecords, chain: list[Node]) -> list[str]:
    """Return the reasons on a chain for which some client version refuses to resume, most severe first."""
    messages = [node for node in chain if node.type in ROLES]
    parent = loaded.parent(chain[0])
    reasons: dict[str, object] = {
        "no content": [node for node in messages if not node.has_content],
        "no model": [node for node in messages if not node.model and node.type == "assistant"],
        "cycle": parent is not None and parent in loaded.nodes,
        "no time": [node for node in messages if node.timestamp is None],
    }
    return [name for name, holds in reasons.items() if holds]
