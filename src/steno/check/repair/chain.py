"""The chain: lost parents are bridged as the real client bridges them, rings are cut."""

from typing import Final, TypeAlias

from steno.check.graph import Graph
from steno.check.repair.bridge import Bridge, weakest
from steno.check.repair.edits import Drafts
from steno.session.nodes import Node
from steno.session.resume.clients import Client

__all__ = ["mend_chain"]

_BEGIN: Final = "let it begin the conversation: nothing comes before it"
_NO_PARENT: Final = "fields.no-parent"
_RING: Final = "chain.cycle"
_FALSE_BEGINNING: Final = "chain.unreachable"
_Broken: TypeAlias = tuple[str, Node, str]
"""The finding, the record, and why it needs another parent."""


def mend_chain(drafts: Drafts, *, client: Client) -> None:
    """Give every record a parent that is there, without rings, and the client a way to them all."""
    broken = _broken(drafts, drafts.graph)
    if broken:
        _bridge(drafts, broken)
    if not drafts:
        _begin_at_boundaries(drafts, drafts.graph)
    if not drafts:
        _straighten(drafts, drafts.graph, client)


def _begin_at_boundaries(drafts: Drafts, graph: Graph) -> None:
    """Unlink compactions from records that come after them: these are not what was summed up."""
    for node in graph.forward:
        if node.is_boundary and node.logical_parent in graph.by_uuid:
            what = "let the compaction begin anew: its parent comes after it"
            drafts.change(node, "chain.forward", what, {"parentUuid": None})


def _bridge(drafts: Drafts, broken: list[_Broken]) -> None:
    bridge = Bridge(drafts.graph, [node for _, node, _ in broken])
    for finding, node, why in broken:
        parent = bridge.above(node)
        uuid = parent.uuid if parent is not None else None
        if finding == _FALSE_BEGINNING and uuid is None:
            _begin_below(drafts, node)
        elif uuid != node.parent or finding == _NO_PARENT:
            said = why if finding == _RING else f"{_hung(node, parent)}: {why}"
            said = said if parent is not None else _BEGIN
            drafts.change(node, finding, said, {"parentUuid": uuid})
    # Each that is cut may bring about others, but none is cut twice.
    for node in bridge.cut:
        parent = bridge.above(node)
        what = _hung(node, parent) if parent is not None else "let it begin the conversation"
        what = f"{what}: it hung on a record that comes after it"
        uuid = parent.uuid if parent is not None else None
        drafts.change(node, "chain.forward", what, {"parentUuid": uuid})


def _begin_below(drafts: Drafts, top: Node) -> None:
    """Let the conversation begin below a record that none begins with and that nothing precedes."""
    for node in drafts.graph.members:
        if node.converses and node.parent == top.uuid:
            drafts.change(node, _FALSE_BEGINNING, _BEGIN, {"parentUuid": None})


def _hung(node: Node, parent: Node | None) -> str:
    """Return in words what becomes of a record that gets another parent."""
    answers = parent is not None and not set(parent.uses).isdisjoint(node.results)
    return f"hang it on {'its call' if answers else 'the record before'}"


def _broken(drafts: Drafts, graph: Graph) -> list[_Broken]:
    """Return the records whose parent is of no use, in file order."""
    found: dict[int, _Broken] = {}
    # A parent that is not there may stand on a line that was too long to be read.
    for node in [] if drafts.hides_records else _lost_parents(graph):
        why = "its parent is not in the file"
        found[node.index] = ("chain.dangling", node, why)
    for node in graph.selfish:
        why = "it names itself as its parent"
        found[node.index] = ("chain.self-parent", node, why)
    for ring in graph.rings:
        first = weakest(ring)
        why = f"cut the ring of {len(ring):,} records that are each other's parents"
        found[first.index] = (_RING, first, why)
    for node in graph.cut_off:
        why = "an answer always follows something"
        found[node.index] = ("chain.lost-parent", node, why)
    for node in _false_beginnings(graph):
        why = "no conversation begins with a record of its type"
        found[node.index] = (_FALSE_BEGINNING, node, why)
    for node in _nameless_parents(drafts, graph):
        why = "it names no parent"
        found[node.index] = (_NO_PARENT, node, why)
    return [found[index] for index in sorted(found)]


def _lost_parents(graph: Graph) -> list[Node]:
    """Return what names a parent that is not in the file, where a message depends on it."""
    if not graph.dangling:
        return []
    leading = _leading(graph)
    return [node for node in graph.dangling if node.index in leading]


def _false_beginnings(graph: Graph) -> list[Node]:
    """Return the records without a parent that messages lead up to and no client begins with."""
    tops = {graph.tops[node.index] for node in graph.unreachable}
    above = [graph.transcript.nodes[top] for top in sorted(tops)]
    return [node for node in above if node.parent is None and not node.converses]


def _nameless_parents(drafts: Drafts, graph: Graph) -> list[Node]:
    """Return the messages without a parent's field; the first of a file needs none."""
    first = next((node for node in drafts.transcript.nodes if node.is_message), None)
    return [
        node
        for node in graph.roots
        if node is not first and node.is_message and "parentUuid" not in drafts.fields(node)
    ]


def _leading(graph: Graph) -> set[int]:
    """Return the records that are messages or lead to one."""
    leading: set[int] = set()
    for start in graph.members:
        node: Node | None = start if start.is_message else None
        while node is not None and node.index not in leading:
            leading.add(node.index)
            node = graph.parent(node)
    return leading


def _straighten(drafts: Drafts, graph: Graph, client: Client) -> None:
    """Chain the conversation one record after the other, for a client that would lose part of it.

    Clients before 2.1.200 go by parents alone, and so lose all but one of parallel results.
    """
    if not graph.lost(client):
        return
    before: Node | None = None
    for node in graph.conversation:
        if node.is_boundary or not node.converses:
            continue
        if before is not None and node.parent != before.uuid:
            what = f"hang it on the record before, for {client.version} to find it"
            drafts.change(node, "chain.unreachable", what, {"parentUuid": before.uuid})
        before = node
