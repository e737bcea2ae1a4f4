"""From a leaf back to the root: what a client takes in of a file, and the chain it walks."""

from bisect import bisect_right

import msgspec

from steno.format.records import read_time
from steno.session.nodes import CONVERSATION, Node
from steno.session.resume.clients import Client
from steno.session.transcript import Transcript

__all__ = ["Loaded", "Marker", "take_in", "walk"]


class Marker(msgspec.Struct):
    """The last `last-prompt` record: where the session was left."""

    leaf: str | None
    explicit: bool = False
    stale: bool = False
    """Messages were appended behind it."""


class Loaded:
    """The records a client takes in, by id, in the order it holds them."""

    def __init__(self) -> None:
        self.nodes: dict[str | None, Node] = {}
        self.newest: Node | None = None
        self.marker: Marker | None = None
        self.passed: dict[str | None, str | None] = {}
        self._resolved: dict[str | None, str | None] = {}
        self._by_time: list[tuple[float, int, Node]] | None = None

    def parent(self, node: Node) -> str | None:
        """Return the id of the parent, records that were passed over left out."""
        uuid = node.parent
        if uuid not in self.passed:
            return uuid
        path: list[str | None] = []
        while uuid in self.passed and uuid not in self.nodes:
            if uuid in self._resolved:
                uuid = self._resolved[uuid]
                break
            self._resolved[uuid] = None  # what a ring of passed records ends in
            path.append(uuid)
            uuid = self.passed[uuid]
        self._resolved.update(dict.fromkeys(path, uuid))
        return uuid

    def earlier(self, node: Node, seconds: float, seen: set[str | None]) -> Node | None:
        """Return the unseen record nearest before `node` in time, within `seconds`."""
        moment = _epoch(node)
        if moment is None:
            return None
        timeline = self._timeline()
        place = bisect_right(timeline, (moment, 1))
        while place > 0:
            place -= 1
            stamp, _, candidate = timeline[place]
            if moment - stamp > seconds:
                return None
            if candidate.uuid not in seen:
                return candidate
        return None

    def _timeline(self) -> list[tuple[float, int, Node]]:
        """Return the conversation by time; of equal times the first in the file comes last."""
        if self._by_time is None:
            timed = [
                (moment, -order, node)
                for order, node in enumerate(self.nodes.values())
                if node.converses and (moment := _epoch(node)) is not None
            ]
            self._by_time = sorted(timed, key=lambda item: item[:2])
        return self._by_time


def take_in(transcript: Transcript, client: Client) -> Loaded:
    """Return what the client takes in: of records with one id the last, where the first stood."""
    loaded = Loaded()
    for node in transcript.nodes:
        if not client.can_parse(node):
            continue
        if node.type == "last-prompt":
            loaded.marker = _marker(transcript, node)
        elif node.type in client.links or _is_empty(node, client):
            loaded.passed[node.uuid] = node.parent
        elif _is_node(node, client) and client.accepts(node):
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
    """Whether a message without content is passed over like a link."""
    if node.has_content or not node.has_message:
        return False
    return node.is_message and "no content" not in client.refuses


def _is_node(node: Node, client: Client) -> bool:
    return node.type in CONVERSATION or (client.keeps_unknown and node.uuid is not None)


def _marker(transcript: Transcript, node: Node) -> Marker:
    envelope = transcript.record(node).envelope
    return Marker(envelope.leaf_uuid, bool(envelope.explicit))


def walk(loaded: Loaded, leaf: Node, client: Client) -> list[Node]:
    """Return the chain from the root to `leaf`; missing and circular parents are bridged."""
    chain: list[Node] = []
    seen: set[str | None] = set()
    node: Node | None = leaf
    while node is not None:
        chain.append(node)
        seen.add(node.uuid)
        uuid = loaded.parent(node) if node.parent in loaded.passed else node.parent
        if uuid is None:
            break
        parent = loaded.nodes.get(uuid) if uuid not in seen else None
        if parent is None and client.bridge_seconds is not None:
            parent = loaded.earlier(node, client.bridge_seconds, seen)
        node = parent
    chain.reverse()
    return chain


def _epoch(node: Node) -> float | None:
    moment = read_time(node.timestamp)
    return moment.timestamp() if moment else None
