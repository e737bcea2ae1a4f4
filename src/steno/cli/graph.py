"""The tree of records as a rail drawing: what hangs on what, and where the session stands.

A line of records that follow each other stays in its column. Where several hang on one, the side
branches are drawn first, indented behind a rail, and the one the conversation takes goes on below.
Nothing recurses: a session may be a million records deep.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from steno.cli.records import excerpt
from steno.safe.terminal import Line, cut, one_line, pad
from steno.session.nodes import Node
from steno.session.session import Session

__all__ = ["graph_json", "graph_lines"]

_DEEPEST = 12
_KIND = 27


class _Place(msgspec.Struct):
    node: Node
    rails: tuple[str, ...]
    first: str = ""
    """What is drawn in front of the first record of a side branch."""
    depth: int = 0
    """How many side branches it lies inside of; rails end at some depth, this does not."""


def graph_lines(session: Session, width: int) -> Iterator[Line]:
    """Yield one line per record that has an id, each below the one it hangs on."""
    taken = {node.uuid for node in session.conversation()}
    leaf = session.leaf
    for place in _places(session):
        on = place.node.uuid in taken
        yield _line(session, place, width, on=on, leaf=place.node is leaf)


def graph_json(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the same records in the same order as objects."""
    taken = {node.uuid for node in session.conversation()}
    leaf = session.leaf
    for place in _places(session):
        node = place.node
        yield {
            "uuid": node.uuid,
            "parent": node.parent,
            "kind": session.transcript.record(node).kind,
            "offset": node.offset,
            "depth": place.depth,
            "sidechain": node.sidechain,
            "taken": node.uuid in taken,
            "leaf": node is leaf,
        }


def _places(session: Session) -> Iterator[_Place]:
    """Yield every record that has an id once, where it is to be drawn."""
    nodes = [node for node in session.transcript.nodes if node.uuid]
    children, roots = _tree(nodes, session)
    chain = _chain(session)
    drawn: set[int] = set()
    waiting = [_Place(node, ()) for node in reversed(roots)]
    # Records that go round in circles have no root: the first of those left begins.
    left = iter(nodes)
    while True:
        if not waiting:
            lost = next((node for node in left if node.index not in drawn), None)
            if lost is None:
                return
            waiting.append(_Place(lost, ()))
        place = waiting.pop()
        node = place.node
        if node.index in drawn:
            continue
        drawn.add(node.index)
        yield place
        # Of several records with one id, the first has the children.
        below = [child for child in children.pop(node.uuid or "", ()) if child.index not in drawn]
        waiting += _below(below, place, chain)


def _tree(nodes: list[Node], session: Session) -> tuple[dict[str, list[Node]], list[Node]]:
    known = session.transcript.by_uuid
    children: dict[str, list[Node]] = {}
    roots: list[Node] = []
    for node in nodes:
        if node.parent and node.parent in known and node.parent != node.uuid:
            children.setdefault(node.parent, []).append(node)
        else:
            roots.append(node)
    return children, roots


def _chain(session: Session) -> set[str | None]:
    """Return the ids from the leaf up, by parents alone."""
    chain: set[str | None] = set()
    node = session.leaf
    while node is not None and node.uuid not in chain:
        chain.add(node.uuid)
        node = session.transcript.by_uuid.get(node.parent or "")
    return chain


def _below(children: list[Node], above: _Place, chain: set[str | None]) -> Iterator[_Place]:
    """Yield the places of a record's children, the last to be drawn first."""
    if not children:
        return
    going_on = next((child for child in reversed(children) if child.uuid in chain), children[-1])
    rails = above.rails
    yield _Place(going_on, rails, depth=above.depth)
    deeper = (*rails, "│ ") if len(rails) < _DEEPEST else rails
    for child in reversed(children):
        if child is not going_on:
            yield _Place(child, deeper, "├─", above.depth + 1)


def _line(session: Session, place: _Place, width: int, *, on: bool, leaf: bool) -> Line:
    node = place.node
    record = session.transcript.record(node)
    rails = "".join(place.rails[:-1] if place.first else place.rails) + place.first
    mark = "◆" if leaf else "●" if on else "·"
    column = min(_KIND, width // 3)
    kind = one_line(record.kind, column)
    room = width - len(rails) - 14 - column
    notes = cut(_notes(node, session, leaf=leaf), room)
    is_deleted = node.type == "deleted"
    said = "" if is_deleted else excerpt(record, max(room - len(notes), 0))
    style = "" if on else "magenta" if node.sidechain else "dim"
    return [
        (rails, "dim"),
        (mark, "bold blue" if leaf else style),
        " ",
        (one_line((node.uuid or "")[:8]), "bold" if on else "dim"),
        "  ",
        (pad(kind, column), style),
        "  ",
        (said, "dim"),
        (notes, "bold blue" if leaf else "yellow"),
    ]


def _notes(node: Node, session: Session, *, leaf: bool) -> str:
    if leaf:
        return "  goes on here"
    if node.parent and node.parent not in session.transcript.by_uuid:
        return "  its parent is not in the file"
    return ""
