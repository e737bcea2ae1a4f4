"""Which record a session goes on from."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from steno.format.records import read_time
from steno.session.nodes import Node
from steno.session.resume.clients import Client
from steno.session.resume.walk import Loaded, walk

__all__ = ["choose_leaf"]


def choose_leaf(loaded: Loaded, client: Client) -> Node | None:
    """Return the record that the client would hang the next prompt on."""
    newest = _newest(loaded, client)
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
        return _trailing(loaded, marked)
    tip = _tip(loaded, client)
    if newest is not None and tip is not None and _goes_on_from(loaded, tip, marked, client):
        return newest
    return marked


def _trailing(loaded: Loaded, marked: Node) -> Node:
    """Return the last of the notes that hang on a record and lead to no message."""
    below = _children(loaded)
    while True:
        notes = [node for node in below.get(marked.uuid, ()) if node.uuid not in below]
        if not notes or notes[-1].is_message:
            return marked
        marked = notes[-1]


def _tip(loaded: Loaded, client: Client) -> Node | None:
    """Return the record that the client takes for the last one, be it a message's or not."""
    if client.leaf == "timestamp":
        return max(_main(loaded), key=_when, default=None)
    last = loaded.newest
    # Once a client has said where it left the session, it looks no further than the file's end.
    if client.leaf == "last record" or last is None or loaded.marker is not None:
        return last
    return _latest_below(loaded, last)


def _newest(loaded: Loaded, client: Client) -> Node | None:
    last, tip = loaded.newest, _tip(loaded, client)
    if client.leaf != "file order" or last is None or tip is None:
        return tip
    if _leads_to_message(loaded, tip):
        return tip
    below = _children(loaded)
    leading = _below_messages(loaded, below)
    tips = (node for node in reversed(loaded.nodes.values()) if node.uuid not in below)
    return next((tip for tip in tips if tip.converses and tip.uuid in leading), last)


def _main(loaded: Loaded) -> Iterable[Node]:
    return (node for node in loaded.nodes.values() if not node.sidechain)


def _when(node: Node) -> float:
    moment = read_time(node.timestamp)
    return moment.timestamp() if moment else 0.0


def _latest_below(loaded: Loaded, top: Node) -> Node:
    """Return the latest of a record and its descendants; of equally late ones the deepest."""
    above = {node.parent for node in loaded.nodes.values()}
    if top.uuid not in above and top.uuid not in loaded.passed.values():
        return top
    below = _children(loaded)
    latest, seen = top, {top.uuid}
    level = [top]
    while level:
        level = [
            node for each in level for node in below.get(each.uuid, ()) if node.uuid not in seen
        ]
        for node in level:
            seen.add(node.uuid)
            if str(node.timestamp or "") >= str(latest.timestamp or ""):
                latest = node
    return latest


def _below_messages(loaded: Loaded, below: dict[str | None, list[Node]]) -> set[str | None]:
    """Return the ids of all messages and their descendants."""
    found: set[str | None] = set()
    waiting = [node for node in loaded.nodes.values() if node.is_message]
    while waiting:
        node = waiting.pop()
        if node.uuid not in found:
            found.add(node.uuid)
            waiting.extend(below.get(node.uuid, ()))
    return found


def _children(loaded: Loaded) -> dict[str | None, list[Node]]:
    below: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in loaded.nodes.values():
        if node.converses:
            below[loaded.parent(node)].append(node)
    return dict(below)


def _leads_to_message(loaded: Loaded, node: Node) -> bool:
    return any(each.is_message for each in _ancestry(loaded, node))


def _goes_on_from(loaded: Loaded, newest: Node, marked: Node, client: Client) -> bool:
    """Whether the newest leaf continues the marked conversation, by parents that are there."""
    chain = walk(loaded, newest, msgspec.structs.replace(client, bridge_seconds=None))
    if client.gathers and any(set(marked.results) & set(node.uses) for node in chain):
        return True
    return any(node is marked for node in chain)


def _ancestry(loaded: Loaded, node: Node | None) -> Iterable[Node]:
    seen: set[str | None] = set()
    while node is not None and node.uuid not in seen:
        yield node
        seen.add(node.uuid)
        node = loaded.nodes.get(loaded.parent(node))
